"""The durable life of one run: hand over, follow, collect, explain, finish.

The workflow runs only on the host that owns the phone. After a crash it is replayed from its top:
finished steps give their stored output, the interrupted one starts again, so each is safe to
repeat. The order and the names of the steps are part of what is stored: a step may be added only
behind `DBOS.patch_async`, or runs under way could not be taken up by the new version.
"""

from collections.abc import Awaitable
from importlib import import_module
from typing import Any

import anyio
import structlog
from anyio import to_thread
from dbos import DBOS, StepOptions

from orchestrator.engine import ending, follow, handover
from orchestrator.engine.outage import is_outage
from orchestrator.engine.resources import current

_HARVEST = "orchestrator.engine.harvest"
"""Loaded with the first build that ends, beside the loop: it brings the whole reader of logs."""

StepOutput = dict[str, Any]
"""What the engine stores of a step; plain JSON."""


RETRY: StepOptions = {
    "retries_allowed": True,
    "max_attempts": 40,
    "interval_seconds": 0.25,
    "backoff_rate": 1.3,
    "should_retry": is_outage,
}


@DBOS.step(**RETRY)
async def hand_over(build_id: str, run_id: str) -> StepOutput:
    """Bring the workspace to the phone and start the run there."""
    return await _unless_closing(handover.hand_over(current(), build_id, run_id))


@DBOS.step(**RETRY)
async def follow_log(build_id: str, run_id: str) -> StepOutput:
    """Copy the log until the run is over; watch the cancel flag and the deadline."""
    return await _unless_closing(follow.follow(current(), build_id, run_id))


@DBOS.step(**RETRY)
async def collect(build_id: str, run_id: str) -> StepOutput:
    """Bring result and artifacts into the store."""
    harvest = await to_thread.run_sync(import_module, _HARVEST)
    return await _unless_closing(harvest.collect(current(), build_id, run_id))


@DBOS.step(**RETRY)
async def explain(build_id: str, run_id: str, ended: StepOutput) -> StepOutput:
    """Read the whole log and keep the digest."""
    harvest = await to_thread.run_sync(import_module, _HARVEST)
    return await _unless_closing(harvest.explain(current(), build_id, run_id, ended))


@DBOS.step(**RETRY)
async def finish(build_id: str, run_id: str, ended: StepOutput) -> StepOutput:
    """End the build and free the phone in one transaction, or queue the next attempt."""
    return await _unless_closing(ending.finish(current(), build_id, run_id, ended))


@DBOS.workflow(max_recovery_attempts=100_000)
async def run_on_phone(build_id: str, run_id: str, request_id: str | None) -> StepOutput:
    """Do one attempt of a build on the phone that it has leased."""
    structlog.contextvars.bind_contextvars(build_id=build_id, run_id=run_id, request_id=request_id)
    closing = current().closing
    try:
        ended = await _attempt(build_id, run_id)
    except Exception as fault:  # noqa: BLE001 - the outermost frame: a held phone must be given back
        if closing.is_set():
            await anyio.sleep_forever()
        structlog.get_logger().exception("run.broke")
        ended = ending.broken(fault)
    return await finish(build_id, run_id, ended)


async def _attempt(build_id: str, run_id: str) -> StepOutput:
    ended = await hand_over(build_id, run_id)
    if "outcome" in ended:
        return ended
    ended = await follow_log(build_id, run_id)
    if ended.get("outcome") != "lost":
        ended = {**ended, **await collect(build_id, run_id)}
    return {**ended, **await explain(build_id, run_id, ended)}


async def _unless_closing(work: Awaitable[StepOutput]) -> StepOutput:
    """Do the work; while the engine closes, park instead of failing, so that a replay does it."""
    closing = current().closing
    try:
        return await work
    except Exception:
        if closing.is_set():
            await anyio.sleep_forever()
        raise
