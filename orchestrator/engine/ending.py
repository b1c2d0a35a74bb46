"""The last step of a run: the build ends and its phone is freed, or the next attempt is queued."""

import time
import uuid
from typing import Any

import sqlalchemy as sa
import structlog
from anyio import to_thread

from builder_bridge.build import BuildState
from orchestrator.engine import lease
from orchestrator.engine.resources import EngineResources, Stores
from orchestrator.store import builds as build_store
from orchestrator.store.records import BuildRow, Outcome, Phase
from orchestrator.store.tables import builds, webhooks

log = structlog.get_logger(__name__)
MAX_ATTEMPTS = 2
"""How often a build is begun whose run died on the phone: a reboot, or killed by Android."""


async def finish(
    resources: EngineResources, build_id: str, run_id: str, ended: dict[str, Any]
) -> dict[str, Any]:
    """Write how it ended and give the phone back, in one transaction; doing it again changes nothing."""
    stores = resources.stores
    outcome = outcome_of(ended)
    build = await stores.database.run(lambda c: _end(c, stores, build_id, run_id, ended, outcome))
    if build.is_finished:
        await to_thread.run_sync(stores.secrets.remove, build_id)
    stores.ring_build(build_id)
    stores.bells.ring("builds")
    stores.bells.ring("phones")  # one that was busy since the service started has never been asked how it is
    log.info(
        "build.ended" if build.is_finished else "build.requeued", outcome=outcome.value, cause=build.cause
    )
    return {"outcome": outcome.value}


def outcome_of(ended: dict[str, Any]) -> Outcome:
    """Say in one word how a run ended, from what its steps gave."""
    if "outcome" in ended:
        return Outcome(ended["outcome"])
    match BuildState(ended["state"]):
        case BuildState.DONE:
            return Outcome.SUCCEEDED if ended.get("exit_code") == 0 else Outcome.FAILED
        case BuildState.FAILED:
            return Outcome.FAILED if ended.get("exit_code") is not None else Outcome.REFUSED
        case BuildState.CANCELLED:
            return Outcome.CANCELLED
        case BuildState.TIMED_OUT:
            return Outcome.TIMED_OUT
        case _:
            return Outcome.LOST


def broken(fault: Exception) -> dict[str, Any]:
    """Describe the end of a run that a fault of this program ended."""
    return {
        "outcome": Outcome.LOST.value,
        "cause": f"the service failed: {type(fault).__name__}: {fault}",
        "fence": True,
        "is_final": True,
    }


def end_unplaced(connection: sa.Connection, stores: Stores, build: BuildRow, cause: str) -> None:
    """End a build that has no phone yet, as cancelled."""
    _close(connection, stores, build, Outcome.CANCELLED, {"cause": cause}, time.time())


def _end(
    connection: sa.Connection,
    stores: Stores,
    build_id: str,
    run_id: str,
    ended: dict[str, Any],
    outcome: Outcome,
) -> BuildRow:
    build = build_store.must_get(connection, build_id)
    run = build_store.get_run(connection, run_id)
    if run is None or run.finished_s is not None or build.run_id != run_id:
        return build
    now_s = time.time()
    build_store.update_run(
        connection,
        run_id,
        state=ended.get("state", outcome.value),
        detail=ended.get("cause"),
        finished_s=now_s,
        log_size_bytes=stores.logs.size_bytes(run_id),
        log_sha256=ended.get("log_sha256"),
    )
    if ended.get("fence"):
        lease.fence(connection, build_id, run_id)
    else:
        lease.release(connection, build_id)
    again = outcome is Outcome.LOST and build.attempt < MAX_ATTEMPTS and not build.cancel_asked
    if again and not ended.get("is_final"):
        queue_again(connection, build, f"attempt {build.attempt} was lost: {ended.get('cause')}")
    else:
        _close(connection, stores, build, outcome, ended, now_s)
    return build_store.must_get(connection, build_id)


def queue_again(connection: sa.Connection, build: BuildRow, reason: str) -> None:
    """Put a build back into the queue with the next attempt's number."""
    connection.execute(
        builds.update()
        .where(builds.c.id == build.id)
        .values(state=Phase.QUEUED.value, stage="queue", attempt=build.attempt + 1, reason=reason)
    )


def _close(
    connection: sa.Connection,
    stores: Stores,
    build: BuildRow,
    outcome: Outcome,
    ended: dict[str, Any],
    now_s: float,
) -> None:
    made = sum(artifact.size_bytes for artifact in build_store.artifacts_of(connection, build.id))
    connection.execute(
        builds.update()
        .where(builds.c.id == build.id)
        .values(
            state=Phase.FINISHED.value,
            stage="end",
            outcome=outcome.value,
            exit_code=ended.get("exit_code"),
            cause=ended.get("cause"),
            reason=ended.get("hint"),
            finished_s=now_s,
            size_bytes=made + stores.logs.kept_bytes(build.run_id),
        )
    )
    for url in stores.settings.webhooks.urls:
        connection.execute(
            webhooks.insert().values(
                id=f"msg_{uuid.uuid4().hex}",
                url=url,
                build_id=build.id,
                host=stores.settings.lab.host_id,
                tries=0,
                due_s=now_s,
            )
        )
