"""Builds and their runs in the database: how they begin, move on and are read.

Every function works inside a transaction of its caller.
"""

from dataclasses import asdict, dataclass
from typing import Any

import sqlalchemy as sa

from orchestrator.store.records import ArtifactRow, BuildRow, Outcome, Phase, RunRow, rows, run_id_of
from orchestrator.store.tables import artifacts, builds, idempotency, runs

_BUILD_BY_ID = sa.select(builds).where(builds.c.id == sa.bindparam("wanted"))
_LATEST = (
    sa.select(builds)
    .where(builds.c.identity == sa.bindparam("wanted"))
    .order_by(builds.c.generation.desc())
    .limit(1)
)
_COUNT_IN = (
    sa.select(sa.func.count())
    .select_from(builds)
    .where(builds.c.state == sa.bindparam("state"), builds.c.owner == sa.bindparam("owner"))
)
_INSERT = builds.insert()
# What every request asks is written down once; to write it takes longer than to ask it.


@dataclass(frozen=True, slots=True)
class NewBuild:
    """What a build is before it has an id: whose, of what, and how urgent.

    `identity` names everything that decides the result (owner, workspace, spec, pool or phone);
    builds of one identity differ in their generation only.
    """

    identity: str
    owner: str
    project: str
    fingerprint: str
    spec: dict[str, Any]
    needs: dict[str, Any]
    pool: str
    phone: str | None
    priority: int
    request_id: str | None


@dataclass(frozen=True, slots=True)
class Filter:
    """Which builds a listing shows; `before` is the (created, id) of the last one of the page before."""

    owner: str | None = None
    project: str | None = None
    state: str | None = None
    outcome: str | None = None
    fingerprint: str | None = None
    before: tuple[float, str] | None = None
    limit: int = 50


def latest_of(connection: sa.Connection, identity: str) -> BuildRow | None:
    """Give the newest generation of an identity."""
    found = rows(BuildRow, connection.execute(_LATEST, {"wanted": identity}))
    return found[0] if found else None


def joinable(build: BuildRow | None) -> bool:
    """Say whether asking for the same content again is answered by this build."""
    if build is None:
        return False
    if not build.is_finished:
        return not build.cancel_asked
    return build.outcome is not None and Outcome(build.outcome).is_lasting


def insert(connection: sa.Connection, new: NewBuild, generation: int, now_s: float) -> BuildRow:
    """Write a queued build and its first run's log-less beginning; give it with its id."""
    build = BuildRow(
        id=f"{new.identity[:20]}-{generation}",
        identity=new.identity,
        generation=generation,
        owner=new.owner,
        project=new.project,
        fingerprint=new.fingerprint,
        spec=new.spec,
        needs=new.needs,
        pool=new.pool,
        phone=new.phone,
        priority=new.priority,
        state=Phase.QUEUED.value,
        stage="queue",
        reason=None,
        outcome=None,
        exit_code=None,
        cause=None,
        cancel_asked=0,
        attempt=1,
        created_s=now_s,
        started_s=None,
        finished_s=None,
        request_id=new.request_id,
        size_bytes=0,
    )
    connection.execute(_INSERT, asdict(build))
    return build


def get(connection: sa.Connection, build_id: str) -> BuildRow | None:
    """Give a build, or None where there is none of this id."""
    found = rows(BuildRow, connection.execute(_BUILD_BY_ID, {"wanted": build_id}))
    return found[0] if found else None


def must_get(connection: sa.Connection, build_id: str) -> BuildRow:
    """Give a build that is known to exist."""
    build = get(connection, build_id)
    if build is None:
        raise LookupError(f"build {build_id} vanished from the database")
    return build


def find(connection: sa.Connection, wanted: Filter) -> list[BuildRow]:
    """List builds, newest first."""
    query = sa.select(builds)
    for column in ("owner", "project", "state", "outcome", "fingerprint"):
        value = getattr(wanted, column)
        if value is not None:
            query = query.where(builds.c[column] == value)
    if wanted.before is not None:
        query = query.where(sa.tuple_(builds.c.created_s, builds.c.id) < sa.tuple_(*wanted.before))
    query = query.order_by(builds.c.created_s.desc(), builds.c.id.desc()).limit(wanted.limit)
    return rows(BuildRow, connection.execute(query))


def count_in(connection: sa.Connection, state: Phase, owner: str) -> int:
    """Count an owner's builds in one state."""
    return connection.execute(_COUNT_IN, {"state": state.value, "owner": owner}).scalar_one()


def count_by_state(connection: sa.Connection) -> dict[tuple[str, str], int]:
    """Count builds by (state, outcome or '')."""
    outcome = sa.func.coalesce(builds.c.outcome, "")
    query = sa.select(builds.c.state, outcome, sa.func.count()).group_by(builds.c.state, outcome)
    return {(state, ended): count for state, ended, count in connection.execute(query)}


def ask_cancel(connection: sa.Connection, build_id: str) -> None:
    """Raise the flag that the run's follower watches."""
    connection.execute(builds.update().where(builds.c.id == build_id).values(cancel_asked=1))


def set_stage(connection: sa.Connection, build_id: str, stage: str, reason: str | None = None) -> None:
    """Say which stage a running build is in."""
    change = builds.update().where(builds.c.id == build_id, builds.c.state != Phase.FINISHED.value)
    connection.execute(change.values(stage=stage, reason=reason))


def get_run(connection: sa.Connection, run_id: str) -> RunRow | None:
    """Give a run, or None where no phone was ever asked to do it."""
    found = rows(RunRow, connection.execute(sa.select(runs).where(runs.c.id == run_id)))
    return found[0] if found else None


def runs_of(connection: sa.Connection, build_id: str) -> list[RunRow]:
    """Give all runs of a build, first attempt first."""
    query = sa.select(runs).where(runs.c.build_id == build_id).order_by(runs.c.attempt)
    return rows(RunRow, connection.execute(query))


def update_run(connection: sa.Connection, run_id: str, **values: Any) -> None:
    """Change what is known of a run."""
    connection.execute(runs.update().where(runs.c.id == run_id).values(**values))


def add_stage_s(connection: sa.Connection, run_id: str, seconds: dict[str, float]) -> None:
    """Note how long stages of a run took; a stage that ran again replaces its earlier figure."""
    run = get_run(connection, run_id)
    if run is not None:
        update_run(connection, run_id, stage_s={**run.stage_s, **seconds})


def begin_run(connection: sa.Connection, build: BuildRow, phone: str, host: str, now_s: float) -> None:
    """Write the run of the present attempt and mark the build running; safe to do again."""
    run_id = run_id_of(build.id, build.attempt)
    if get_run(connection, run_id) is None:
        connection.execute(
            runs.insert().values(
                id=run_id,
                build_id=build.id,
                attempt=build.attempt,
                phone=phone,
                host=host,
                state="leased",
                created_s=now_s,
                stage_s={},
            )
        )
    change = builds.update().where(builds.c.id == build.id, builds.c.state == Phase.QUEUED.value)
    connection.execute(change.values(state=Phase.RUNNING.value, stage="start", reason=None, started_s=now_s))


def artifacts_of(connection: sa.Connection, build_id: str) -> list[ArtifactRow]:
    """Give what a build made, in its order."""
    query = sa.select(artifacts).where(artifacts.c.build_id == build_id).order_by(artifacts.c.number)
    return rows(ArtifactRow, connection.execute(query))


def add_artifact(connection: sa.Connection, row: ArtifactRow) -> None:
    """Note a stored artifact; noting it again changes nothing."""
    mine = sa.and_(artifacts.c.build_id == row.build_id, artifacts.c.number == row.number)
    connection.execute(artifacts.delete().where(mine))
    connection.execute(
        artifacts.insert().values(
            build_id=row.build_id,
            number=row.number,
            run_id=row.run_id,
            path=row.path,
            kind=row.kind,
            variant=row.variant,
            size_bytes=row.size_bytes,
            sha256=row.sha256,
        )
    )


def remembered(connection: sa.Connection, owner: str, key: str) -> tuple[str, str] | None:
    """Give (sha256 of the body, build id) of an earlier request with this idempotency key."""
    query = sa.select(idempotency.c.body_sha256, idempotency.c.build_id)
    row = connection.execute(query.where(idempotency.c.owner == owner, idempotency.c.key == key)).first()
    return None if row is None else (row[0], row[1])


def remember(
    connection: sa.Connection, owner: str, key: str, body_sha256: str, build_id: str, now_s: float
) -> None:
    """Keep which build a request with an idempotency key led to."""
    connection.execute(
        idempotency.insert().values(
            owner=owner, key=key, body_sha256=body_sha256, build_id=build_id, created_s=now_s
        )
    )
