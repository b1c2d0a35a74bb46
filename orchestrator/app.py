"""Puts the service together. Every resource is opened and closed by the lifespan of one app."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext

import anyio
from fastapi import FastAPI
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from orchestrator import elsewhere, openapi, problem
from orchestrator.access import AccessCheck
from orchestrator.bell import Bells
from orchestrator.desk import FrontDesk
from orchestrator.engine.engine import data_folder_lock, open_engine
from orchestrator.engine.phone import OpenPhone
from orchestrator.engine.resources import Stores
from orchestrator.errors import NotReady
from orchestrator.feed import BuildFeed
from orchestrator.intake import Intake
from orchestrator.mcp_doors import MCP_PATH, LazyMcp
from orchestrator.metrics import Measured, Metrics
from orchestrator.routes import agents, artifacts, builds, health, logs, pages, phones, workspaces
from orchestrator.routes.context import Service
from orchestrator.settings import Settings
from orchestrator.stalled import StalledBodies
from orchestrator.store.artifacts import open_artifact_store
from orchestrator.store.database import Database, sqlite_url
from orchestrator.store.logs import LogBook
from orchestrator.store.secrets import SecretStore
from orchestrator.store.workspaces import WorkspaceStore
from orchestrator.telemetry import OFF, make_telemetry

TITLE = "Pocketbuild"
VERSION = "0.1.0"


def create_app(settings: Settings, open_phone: OpenPhone) -> FastAPI:
    """Make the app of one service; `open_phone` is how it reaches phones.

    The app works on the data folder of the settings, which it holds for itself from start to end.
    """
    database = Database(database_url(settings))
    metrics = Metrics()
    telemetry = make_telemetry() if settings.telemetry else None

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with (
            nullcontext() if telemetry is None else telemetry.sending(),
            open_service(settings, database, open_phone, metrics) as service,
            anyio.create_task_group() as tasks,
        ):
            app.state.service = service
            app.state.mcp = LazyMcp(app, tasks, VERSION)
            app.state.tasks = tasks
            try:
                yield
            finally:
                app.state.service = app.state.mcp = app.state.agents = None
                tasks.cancel_scope.cancel()

    app = FastAPI(
        title=TITLE,
        version=VERSION,
        summary="Build Android projects on phones, offline.",
        lifespan=lifespan,
        # What the framework would serve here loads its script and style from elsewhere.
        docs_url=None,
        redoc_url=None,
        telemetry=OFF if telemetry is None else telemetry.config,
        generate_unique_id_function=lambda route: route.name,
    )
    openapi.register(app)
    problem.register(app)
    elsewhere.register(app)
    for router in (
        builds.router,
        logs.router,
        artifacts.router,
        workspaces.router,
        phones.router,
        agents.router,
        health.router,
        pages.router,
    ):
        # A limit of the whole app would answer before the access check does.
        app.include_router(router, max_body_size=settings.limits.body_bytes)
    app.include_router(workspaces.upload_router, max_body_size=settings.limits.upload_bytes)
    mcp = Route(MCP_PATH, endpoint=_Mcp(app), max_body_size=settings.limits.body_bytes)
    app.router.routes.append(mcp)
    app.add_middleware(StalledBodies, idle_s=settings.limits.upload_idle_s)
    app.add_middleware(problem.PlainErrorsAsProblems)
    app.add_middleware(AccessCheck, settings=settings, database=database)
    app.add_middleware(Measured, metrics=metrics)
    return app


class _Mcp:
    """Hands MCP requests to the app that the lifespan opened."""

    def __init__(self, app: FastAPI) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        inner: LazyMcp | None = getattr(self._app.state, "mcp", None)
        if inner is None:
            raise NotReady("the service is starting or stopping")
        # The SDK would answer what goes wrong with a body in its own way, or in the middle of its answer.
        messages = [await receive()]
        while messages[-1].get("more_body", False):
            messages.append(await receive())
        messages.reverse()

        async def replay() -> Message:
            return messages.pop() if messages else await receive()

        await inner(scope, replay, send)


@asynccontextmanager
async def open_service(
    settings: Settings, database: Database, open_phone: OpenPhone, metrics: Metrics
) -> AsyncIterator[Service]:
    """Open stores and engine for the block; builds on phones go on after it."""
    data_dir = settings.data_dir
    async with AsyncExitStack() as stack:
        stack.enter_context(data_folder_lock(data_dir, settings.lab.host_id))
        stack.callback(database.close)
        await database.migrate()
        bells = Bells()
        scratch = data_dir / "scratch"
        scratch.mkdir(parents=True, exist_ok=True)
        stores = Stores(
            settings=settings,
            lab_id=await database.lab_id(),
            database=database,
            logs=LogBook(data_dir / "logs", bells),
            workspaces=WorkspaceStore(data_dir / "workspaces"),
            artifacts=open_artifact_store(settings.artifacts_url, data_dir / "artifacts"),
            bells=bells,
            scratch=scratch,
            secrets=SecretStore(data_dir / "secrets"),
        )
        engine = await stack.enter_async_context(open_engine(stores, open_phone))
        desk = FrontDesk(stores)
        feed = BuildFeed(stores, desk, engine.closing)
        yield Service(stores, engine, desk, Intake(stores), feed, metrics, VERSION)
        engine.closing.set()


def database_url(settings: Settings) -> str:
    """Say which database a service uses: the one that is set, or the file in its data folder."""
    if settings.database_url is not None:
        return settings.database_url.get_secret_value()
    return sqlite_url(settings.data_dir)
