"""Builds: ask for one, look at them, wait, cancel, retry."""

import hashlib
from pathlib import PurePosixPath
from typing import Annotated

from fastapi import APIRouter, Header, Query, Response

from builder_bridge.build import BuildSpec
from builder_bridge.secret import Secrets
from builder_bridge.workspace.snapshot import Snapshot
from orchestrator.access import Permission, Principal
from orchestrator.desk import BuildView, need
from orchestrator.engine.sharing import share
from orchestrator.errors import BadRequest
from orchestrator.replies import build_fields
from orchestrator.routes.context import PrincipalDep, RequestIdDep, Service, ServiceDep
from orchestrator.schema import BuildAccepted, BuildPage, BuildReply, BuildRequest
from orchestrator.secret_intake import take_secrets
from orchestrator.store import builds as build_store
from orchestrator.store.builds import Filter
from orchestrator.store.manifest import ManifestFile
from orchestrator.store.records import BuildRow, Outcome, Phase
from orchestrator.wish import Wish

router = APIRouter(prefix="/v1/builds", tags=["builds"])
MAX_WAIT_S = 300.0
CURSOR = r"^[0-9]{1,12}\.[0-9]{1,9}_[0-9a-z-]{1,64}$"
"""When the last build of a page was made, and its id."""
IdempotencyKey = Annotated[
    str | None, Header(min_length=1, max_length=200, pattern=r"^[\x21-\x7e]+$", examples=["ci-4711-debug"])
]


@router.post("", status_code=201, responses={200: {"description": "A build that was there already."}})
async def create_build(
    body: BuildRequest,
    service: ServiceDep,
    principal: PrincipalDep,
    request_id: RequestIdDep,
    response: Response,
    idempotency_key: IdempotencyKey = None,
) -> BuildAccepted:
    """Ask for a build of a workspace's present state.

    Takes the workspace in (milliseconds for one that is known), queues the build and returns. The
    same content and options join the build under way or give the one that ended by itself.
    """
    need(principal, Permission.WRITE)
    snapshot = await _take_in(service, principal, body)
    secrets = await take_secrets(service.stores, principal, body)
    await share(service.stores, snapshot)
    wish = Wish(
        snapshot=snapshot,
        spec=BuildSpec(
            tasks=tuple(body.tasks),
            args=tuple(body.args),
            clean=body.clean,
            project_dir=_inside(body.project_dir),
            deadline_s=min(body.deadline_s, service.stores.settings.limits.deadline_s),
        ),
        pool=body.pool,
        phone=body.phone,
        route=body.route,
        needs=dict(body.needs),
        priority=body.priority,
        force=body.force,
        secrets=secrets,
    )
    key = None if idempotency_key is None else (idempotency_key, _digest_of(body, snapshot, secrets))
    receipt = await service.desk.submit(principal, wish, request_id, key)
    response.status_code = 200 if receipt.is_joined else 201
    response.headers["location"] = f"/v1/builds/{receipt.build.id}"
    return BuildAccepted(**build_fields(receipt.build), is_joined=receipt.is_joined)


@router.get("")
async def list_builds(
    service: ServiceDep,
    principal: PrincipalDep,
    state: Phase | None = None,
    outcome: Outcome | None = None,
    project: Annotated[str | None, Query(max_length=200)] = None,
    owner: Annotated[str | None, Query(max_length=200)] = None,
    workspace: Annotated[str | None, Query(pattern="^[0-9a-f]{64}$")] = None,
    cursor: Annotated[str | None, Query(pattern=CURSOR, description="The `next` of a page.")] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> BuildPage:
    """List builds, newest first; a token without `admin` sees its owner's only."""
    need(principal, Permission.READ)
    wanted = Filter(
        owner=owner if principal.is_admin else principal.owner,
        project=project,
        state=state,
        outcome=outcome,
        fingerprint=workspace,
        before=None if cursor is None else _read_cursor(cursor),
        limit=limit + 1,
    )
    found = await service.stores.database.read(lambda c: build_store.find(c, wanted))
    page, rest = found[:limit], found[limit:]
    return BuildPage(
        builds=[BuildReply(**build_fields(build)) for build in page],
        next=_write_cursor(page[-1]) if rest else None,
    )


@router.get("/{build_id}")
async def get_build(
    build_id: str,
    service: ServiceDep,
    principal: PrincipalDep,
    wait_s: Annotated[float, Query(ge=0, le=MAX_WAIT_S)] = 0.0,
) -> BuildReply:
    """Show a build with its runs and artifacts; with `wait_s`, as soon as it has ended."""
    if wait_s:
        await service.desk.wait(principal, build_id, wait_s, lambda build: build.is_finished)
    return _shown(await service.desk.view(principal, build_id))


@router.post("/{build_id}/cancel")
async def cancel_build(build_id: str, service: ServiceDep, principal: PrincipalDep) -> BuildReply:
    """Ask for the end of a build; one that has ended is left as it is."""
    return BuildReply(**build_fields(await service.desk.cancel(principal, build_id)))


@router.post("/{build_id}/retry", status_code=201)
async def retry_build(
    build_id: str, service: ServiceDep, principal: PrincipalDep, request_id: RequestIdDep
) -> BuildAccepted:
    """Build the same content with the same options once more, as a new build."""
    receipt = await service.desk.retry(principal, build_id, request_id)
    return BuildAccepted(**build_fields(receipt.build), is_joined=receipt.is_joined)


def _shown(view: BuildView) -> BuildReply:
    return BuildReply(**build_fields(view.build, view.runs, view.artifacts))


def _digest_of(body: BuildRequest, snapshot: Snapshot, secrets: Secrets) -> str:
    # Written out, a secret is a row of stars: its seal tells it from another.
    told = body.model_dump_json() + snapshot.fingerprint + secrets.seal
    return hashlib.sha256(told.encode()).hexdigest()


async def _take_in(service: Service, principal: Principal, body: BuildRequest) -> Snapshot:
    named = [source for source in (body.path, body.workspace, body.files) if source is not None]
    if len(named) != 1:
        raise BadRequest("exactly one of path, workspace and files says what is built")
    if body.path is not None:
        return await service.intake.from_folder(body.path, body.name)
    name = body.name or "workspace"
    if body.workspace is not None:
        owned = await service.desk.workspace_name(principal, body.workspace)
        return await service.intake.known(principal.owner, body.workspace, body.name or owned)
    files = [ManifestFile(file.path, file.sha256, file.is_executable) for file in body.files or []]
    snapshot = await service.intake.from_blobs(principal.owner, name, files)
    await service.desk.own_workspace(principal, snapshot)
    return snapshot


def _inside(project_dir: str) -> str:
    path = PurePosixPath(project_dir)
    if path.is_absolute() or ".." in path.parts:
        raise BadRequest(f"project_dir {project_dir!r} is not inside the workspace")
    return str(path)


def _write_cursor(build: BuildRow) -> str:
    return f"{build.created_s!r}_{build.id}"


def _read_cursor(cursor: str) -> tuple[float, str]:
    created, _, build_id = cursor.partition("_")
    return float(created), build_id
