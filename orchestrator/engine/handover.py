"""The first step of a run: the workspace goes to the phone, and the run begins there."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import anyio
import structlog
from anyio import to_thread

from builder_bridge.build import BuildSpec, RunId
from builder_bridge.errors import BridgeError, PhoneLost, PhoneUnavailable, WorkspaceFault
from builder_bridge.secret import NO_SECRETS, Secrets
from orchestrator.engine.patience import Patience
from orchestrator.engine.phone import PhonePort
from orchestrator.engine.resources import EngineResources, Stores
from orchestrator.engine.sharing import get_shared
from orchestrator.errors import Refusal
from orchestrator.store import builds as build_store
from orchestrator.store import phones as phone_store
from orchestrator.store.records import BuildRow, Outcome, PhoneRow, RunRow

T = TypeVar("T")
log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Assignment:
    """A run as its steps need it: the build, the run, and how its phone is reached."""

    build: BuildRow
    run: RunRow
    route: str | None

    @property
    def run_id(self) -> RunId:
        """The run's name on the phone."""
        return RunId(self.run.id)


async def load(stores: Stores, build_id: str, run_id: str) -> Assignment:
    """Read what a step needs from the database."""

    def read(connection: Any) -> Assignment:
        build = build_store.must_get(connection, build_id)
        run = build_store.get_run(connection, run_id)
        if run is None:
            raise LookupError(f"run {run_id} vanished from the database")
        phone = phone_store.get(connection, run.phone)
        return Assignment(build, run, route_of(build, phone))

    return await stores.database.read(read)


def route_of(build: BuildRow, phone: PhoneRow | None) -> str | None:
    """Say by which route a build's runs are reached: the one asked for, else its phone's."""
    asked: str | None = build.spec.get("route")
    return asked if asked is not None or phone is None else phone.route


async def hand_over(resources: EngineResources, build_id: str, run_id: str) -> dict[str, Any]:
    """Submit the run; give `{}` once it runs, or the outcome of a build that never will.

    The phone knows the run id or it does not, so submitting again never starts a second build.
    """
    stores = resources.stores
    job = await load(stores, build_id, run_id)
    if job.build.cancel_asked:
        return {"outcome": Outcome.CANCELLED.value, "cause": "cancelled before the phone was asked"}
    await mark(stores, build_id, "scan")
    began_s = time.monotonic()
    try:
        snapshot = await get_shared(stores, job.build)
    except Refusal as fault:
        cause = f"{fault.reason_code}: {fault}"
        return {"outcome": Outcome.REFUSED.value, "cause": cause, "hint": fault.hint}
    secrets: Secrets | None = NO_SECRETS
    if job.build.spec.get("secrets"):
        secrets = await to_thread.run_sync(stores.secrets.get, build_id)
    if secrets is None:
        cause = "secrets_gone: the secrets of this build are no longer kept on this host"
        return {
            "outcome": Outcome.REFUSED.value,
            "cause": cause,
            "hint": "Ask for the build anew, with them.",
        }
    scan_s = time.monotonic() - began_s
    await mark(stores, build_id, "upload")
    began_s = time.monotonic()

    async def submit(port: PhonePort) -> str:
        await port.submit(job.run_id, spec_of(job.build), snapshot, secrets)
        return port.route_name

    route = await with_patience(resources, job, submit, "upload", stop_on_cancel=True)
    if isinstance(route, WorkspaceFault) and await to_thread.run_sync(
        stores.workspaces.drop_damaged, job.build.fingerprint
    ):
        log.warning("workspace.was_damaged", fingerprint=job.build.fingerprint, fault=str(route))
        return {
            **given_up(route),
            "hint": "What was kept of the workspace was damaged and is gone; send it again.",
        }
    if isinstance(route, BridgeError):
        return given_up(route)
    if route is None:
        return {"outcome": Outcome.CANCELLED.value, "cause": "cancelled during the hand-over", "fence": True}
    seconds = {"scan": scan_s, "upload": time.monotonic() - began_s}
    await stores.database.run(lambda c: build_store.add_stage_s(c, run_id, seconds))
    await stores.database.run(lambda c: build_store.update_run(c, run_id, route=route, state="submitted"))
    log.info("run.submitted", serial=job.run.phone, route=route, upload_s=round(seconds["upload"], 3))
    return {}


async def with_patience(
    resources: EngineResources,
    job: Assignment,
    work: Callable[[PhonePort], Awaitable[T]],
    stage: str,
    *,
    stop_on_cancel: bool = False,
) -> T | BridgeError | None:
    """Do something on the run's phone, connecting again for as long as that is worth it.

    Gives the fault once it is not, and None where the build was cancelled while it was tried. What
    may be cancelled is given up at the build's deadline, too. What is waited for is the reason of the
    build in its `stage`.
    """
    deadline_s = job.run.created_s + float(job.build.spec["deadline_s"])
    care = resources.stores.settings.care
    patience = Patience(care.gone_after_s, care.reconnect_max_s, time.monotonic())
    while True:
        try:
            async with resources.lines.use(job.run.phone, job.route) as port:
                patience.saw_phone(time.monotonic())
                return await work(port)
        except BridgeError as fault:
            wait_s = patience.next_wait_s(fault, time.monotonic())
            if wait_s is None or (stop_on_cancel and time.time() > deadline_s):
                return fault
            await mark_fault(resources.stores, job, stage, fault, patience)
        await anyio.sleep(wait_s)
        if stop_on_cancel and (await load(resources.stores, job.build.id, job.run.id)).build.cancel_asked:
            return None


async def mark_fault(
    stores: Stores, job: Assignment, stage: str, fault: BridgeError, patience: Patience
) -> None:
    """Say once what a build waits for now, however often it is tried again."""
    if patience.is_news(fault):
        log.warning("phone.faulted", serial=job.run.phone, code=fault.code, fault=str(fault))
        await mark(stores, job.build.id, stage, f"trying again: {fault}")


async def mark(stores: Stores, build_id: str, stage: str, reason: str | None = None) -> None:
    """Say which stage a build is in, and wake who watches it."""
    await stores.database.run(lambda c: build_store.set_stage(c, build_id, stage, reason))
    stores.ring_build(build_id)


def spec_of(build: BuildRow) -> BuildSpec:
    """Rebuild the spec from its stored form."""
    spec = dict(build.spec)
    for ours in ("place", "route", "secrets", "host"):
        spec.pop(ours, None)
    return BuildSpec(**{**spec, "tasks": tuple(spec["tasks"]), "args": tuple(spec["args"])})


def given_up(fault: BridgeError) -> dict[str, Any]:
    """Turn a fault that no waiting cures into the end of a build."""
    gone = isinstance(fault, PhoneLost | PhoneUnavailable)
    outcome = Outcome.LOST if gone or fault.may_have_run else Outcome.REFUSED
    return {
        "outcome": outcome.value,
        "cause": f"{fault.code}: {fault}",
        "hint": fault.hint,
        "fence": outcome is Outcome.LOST,
    }
