"""Rows of the database as replies of the HTTP API."""

from datetime import UTC, datetime
from typing import Any

from orchestrator.engine.placement import PRIORITIES
from orchestrator.schema import ArtifactReply, PhoneReply, RunReply
from orchestrator.store.records import ArtifactRow, BuildRow, PhoneRow, RunRow


def moment(seconds: float | None) -> datetime | None:
    """Turn seconds since 1970 into a time with its zone."""
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def run_reply(run: RunRow) -> RunReply:
    """Show a run."""
    created = moment(run.created_s)
    assert created is not None
    return RunReply(
        id=run.id,
        attempt=run.attempt,
        phone=run.phone,
        host=run.host,
        route=run.route,
        state=run.state,
        detail=run.detail,
        created=created,
        finished=moment(run.finished_s),
        log_size_bytes=run.log_size_bytes,
        log_sha256=run.log_sha256,
        stage_s={name: round(seconds, 4) for name, seconds in run.stage_s.items()},
    )


def build_fields(
    build: BuildRow, runs: list[RunRow] | None = None, artifacts: list[ArtifactRow] | None = None
) -> dict[str, Any]:
    """Give the fields of a reply about a build."""
    names = {number: name for name, number in PRIORITIES.items()}
    return {
        "id": build.id,
        "owner": build.owner,
        "project": build.project,
        "workspace": build.fingerprint,
        "tasks": build.spec["tasks"],
        "args": build.spec["args"],
        "state": build.state,
        "stage": build.stage,
        "reason": build.reason,
        "outcome": build.outcome,
        "exit_code": build.exit_code,
        "cause": build.cause,
        "phone": build.phone,
        "pool": build.pool,
        "priority": names.get(build.priority, str(build.priority)),
        "attempt": build.attempt,
        "is_cancel_asked": bool(build.cancel_asked),
        "secrets": build.spec.get("secrets", []),
        "created": moment(build.created_s),
        "started": moment(build.started_s),
        "finished": moment(build.finished_s),
        "runs": [run_reply(run) for run in runs or []],
        "artifacts": [artifact_reply(artifact) for artifact in artifacts or []],
    }


def artifact_reply(artifact: ArtifactRow) -> ArtifactReply:
    """Show an artifact."""
    return ArtifactReply(
        number=artifact.number,
        path=artifact.path,
        kind=artifact.kind,
        variant=artifact.variant,
        size_bytes=artifact.size_bytes,
        sha256=artifact.sha256,
    )


def phone_reply(phone: PhoneRow, build: str | None, queue: int, resting: str | None) -> PhoneReply:
    """Show a phone; `build` is the id of its build where the reader may know it, `resting` why it rests."""
    return PhoneReply(
        address=phone.address,
        serial=phone.serial,
        host=phone.host,
        pool=phone.pool,
        route=phone.route,
        state=phone.state,
        reason=phone.reason,
        build=build,
        is_busy=phone.build_id is not None,
        queue=queue,
        resting=resting,
        contract=phone.contract,
        health=phone.health,
        seen=moment(phone.seen_s),
    )
