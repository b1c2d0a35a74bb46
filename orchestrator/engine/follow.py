"""The long step of a run: its log comes here byte for byte until the run is over.

The offset to read on from is the size of the log file here, so neither a replay nor a new
connection loses or doubles a byte. Beside it a watcher carries cancel and deadline to the phone.
"""

import time
from typing import Any

import anyio
import structlog
from anyio import to_thread

from builder_bridge.build import BuildState, LogChunk, StateChanged
from builder_bridge.errors import BridgeError, UnknownRun
from builder_bridge.log.frames import FramesFault
from orchestrator import bell
from orchestrator.engine import handover
from orchestrator.engine.handover import Assignment
from orchestrator.engine.patience import Patience
from orchestrator.engine.phone import following
from orchestrator.engine.resources import EngineResources
from orchestrator.store import builds as build_store
from orchestrator.store.logs import LogWriter
from orchestrator.store.records import Outcome

log = structlog.get_logger(__name__)
STOP_RETRY_S = 1.0
STAGE_OF_STATE = {
    BuildState.RECEIVING: "upload",
    BuildState.RECEIVED: "upload",
    BuildState.UNPACKING: "unpack",
    BuildState.RUNNING: "gradle",
    BuildState.FROZEN: "gradle",
    BuildState.COLLECTING: "collect",
}


async def follow(resources: EngineResources, build_id: str, run_id: str) -> dict[str, Any]:
    """Read the run to its end; give its final state, and what stopped it where something did."""
    job = await handover.load(resources.stores, build_id, run_id)
    stop = _Stop()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_watch, resources, job, stop)
        with resources.stores.logs.appending(run_id) as writer:
            began_at = writer.offset
            ended = await _read_to_end(resources, job, writer)
        tasks.cancel_scope.cancel()
    if ended.get("state") == BuildState.CANCELLED and stop.outcome is not None:
        ended["outcome"] = stop.outcome.value
    return {**ended, "resumed_at": began_at, "log_size_bytes": writer.offset}


class _Stop:
    outcome: Outcome | None = None


async def _read_to_end(resources: EngineResources, job: Assignment, writer: LogWriter) -> dict[str, Any]:
    care = resources.stores.settings.care
    patience = Patience(care.gone_after_s, care.reconnect_max_s, time.monotonic())
    while True:
        try:
            async with resources.lines.use(job.run.phone, job.route) as port:
                last: StateChanged | None = None
                async with following(port, job.run_id, writer.offset) as events:
                    async for event in events:
                        patience.saw_phone(time.monotonic())
                        match event:
                            case LogChunk(offset, data):
                                writer.append(offset, data)
                            case StateChanged():
                                last = event
                                await _note(resources, job, event)
                if last is not None and last.state.is_final:
                    return {"state": last.state.value, "cause": last.detail}
        except BridgeError as fault:
            wait_s = patience.next_wait_s(fault, time.monotonic())
            if wait_s is None:
                return handover.given_up(fault)
            await handover.mark_fault(resources.stores, job, "gradle", fault, patience)
            await anyio.sleep(wait_s)


async def _note(resources: EngineResources, job: Assignment, event: StateChanged) -> None:
    stores = resources.stores
    await stores.database.run(
        lambda c: build_store.update_run(c, job.run.id, state=event.state.value, detail=event.detail)
    )
    stage = STAGE_OF_STATE.get(event.state)
    if stage is not None:
        reason = event.detail or (
            "the phone does not schedule it" if event.state is BuildState.FROZEN else None
        )
        await handover.mark(stores, job.build.id, stage, reason)
    log.info("run.state_changed", state=event.state.value, detail=event.detail)


async def _watch(resources: EngineResources, job: Assignment, stop: _Stop) -> None:
    """Wait for the cancel flag or the deadline, then tell the phone until it has heard."""
    stores = resources.stores
    ring = stores.bells.of(f"build:{job.build.id}")
    deadline_s = job.run.created_s + float(job.build.spec["deadline_s"])
    while stop.outcome is None:
        rung = ring.listen()
        build = (await handover.load(stores, job.build.id, job.run.id)).build
        if build.cancel_asked:
            stop.outcome = Outcome.CANCELLED
        elif time.time() >= deadline_s:
            stop.outcome = Outcome.TIMED_OUT
        else:
            await bell.wait(rung, min(stores.settings.dispatch_poll_s, max(0.05, deadline_s - time.time())))
    log.info("run.stop_asked", reason=stop.outcome.value)
    while True:
        try:
            async with resources.lines.use(job.run.phone, job.route) as port:
                # The cause goes through the phone's shell, where a word has no underscore.
                await port.cancel(job.run_id, stop.outcome.value.replace("_", "-"))
                return
        except UnknownRun:
            return
        except BridgeError as fault:
            if not fault.is_passing:
                log.warning("run.stop_failed", code=fault.code, fault=str(fault))
                return
        await anyio.sleep(STOP_RETRY_S)


async def heal_log(resources: EngineResources, job: Assignment, sha256: str, size_bytes: int) -> bool:
    """Read the log again from its first byte where it is not the phone's; say whether it is now."""
    logs = resources.stores.logs

    def is_right() -> bool:
        try:
            return logs.size_bytes(job.run.id) == size_bytes and logs.sha256(job.run.id) == sha256
        except FramesFault:
            return False

    if await to_thread.run_sync(is_right):
        return True
    log.warning("log.differed", kept_bytes=logs.kept_bytes(job.run.id), wanted_bytes=size_bytes)
    await to_thread.run_sync(logs.remove, job.run.id)
    with logs.appending(job.run.id) as writer:
        ended = await _read_to_end(resources, job, writer)
    return "state" in ended and await to_thread.run_sync(is_right)
