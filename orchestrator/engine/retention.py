"""What is kept for how long: ended builds and runs of agents by age and size, and what no build needs.

Nothing that a waiting or running build needs is ever touched. A dry run says what would go.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import sqlalchemy as sa
import structlog
from anyio import to_thread
from dbos import DBOS

from orchestrator.engine import agent_retention
from orchestrator.engine.resources import EngineResources, Stores
from orchestrator.store import owned
from orchestrator.store.records import Phase
from orchestrator.store.tables import artifacts, builds, idempotency, runs, webhooks

log = structlog.get_logger(__name__)
DAY_S = 86_400.0
IDLE_S = DAY_S
"""How long an uploaded workspace or blob is kept for a build that has yet to be asked for."""
AT_ONCE = 500


class Ended(Protocol):
    """An ended build, or a run of an agent, as retention sees it."""

    @property
    def id(self) -> str:
        """Its name."""

    @property
    def finished_s(self) -> float:
        """When it ended."""

    @property
    def size_bytes(self) -> int:
        """What it takes on the disk."""


@dataclass(frozen=True, slots=True)
class EndedBuild:
    """An ended build; the size is that of its log and its artifacts."""

    id: str
    finished_s: float
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Swept:
    """What went, or would go."""

    builds: tuple[str, ...]
    artifacts: tuple[str, ...]
    workspaces: tuple[str, ...]
    blob_bytes: int
    agent_runs: dict[str, int]
    """Runs of this host's agents by id, each with its size in bytes."""
    is_dry_run: bool


def choose_expired(
    ended: Sequence[Ended], max_age_days: float | None, max_bytes: int | None, now_s: float
) -> list[str]:
    """Choose what goes of what has ended: all past the age, then the oldest until the rest fits the size."""
    newest_first = sorted(ended, key=lambda each: (each.finished_s, each.id), reverse=True)
    expired: list[str] = []
    kept_bytes = 0
    for each in newest_first:
        is_old = max_age_days is not None and now_s - each.finished_s > max_age_days * DAY_S
        is_too_much = max_bytes is not None and kept_bytes + each.size_bytes > max_bytes
        if is_old or is_too_much:
            expired.append(each.id)
        else:
            kept_bytes += each.size_bytes
    return expired


async def sweep(resources: EngineResources, *, dry_run: bool, now_s: float | None = None) -> Swept:
    """Remove what retention does not keep; with `dry_run`, only say what that is."""
    stores = resources.stores
    now_s = time.time() if now_s is None else now_s
    ended = await stores.database.read(_ended)
    keep = stores.settings.retention
    expired = choose_expired(ended, keep.max_age_days, keep.max_bytes, now_s)
    contents = await stores.database.read(lambda c: _contents_of_only(c, expired))
    workspaces = await to_thread.run_sync(stores.workspaces.fingerprints)
    needed = await stores.database.read(lambda c: _needed_workspaces(c, expired))
    idle = {name: used_s for name, used_s in workspaces if name not in needed and now_s - used_s > IDLE_S}
    if not dry_run:
        await _remove(resources, expired, contents, idle, now_s)
    blob_bytes = await to_thread.run_sync(
        lambda: stores.workspaces.remove_unused_blobs(IDLE_S, dry_run=dry_run)
    )
    if expired and not dry_run:
        log.info("builds.removed", count=len(expired), artifacts=len(contents), workspaces=len(idle))
    agent_runs = await _sweep_agents(stores, dry_run=dry_run, now_s=now_s)
    return Swept(tuple(expired), tuple(contents), tuple(idle), blob_bytes, agent_runs, dry_run)


async def _sweep_agents(stores: Stores, *, dry_run: bool, now_s: float) -> dict[str, int]:
    """Remove the runs that this host keeps no longer; gives their sizes."""
    data_dir, keep = stores.settings.data_dir, stores.settings.retention
    kept = await to_thread.run_sync(agent_retention.idle_runs, data_dir, now_s)
    chosen = choose_expired(kept, keep.agent_max_age_days, keep.agent_max_bytes, now_s)
    if not chosen:
        return {}
    unfinished = await stores.database.read(_unfinished)
    expired = await to_thread.run_sync(agent_retention.without_live_builds, data_dir, chosen, unfinished)
    if not dry_run:
        expired = await to_thread.run_sync(agent_retention.remove_runs, data_dir, expired)
    sizes = {run.id: run.size_bytes for run in kept if run.id in set(expired)}
    if sizes and not dry_run:
        log.info("agent_runs.removed", count=len(sizes), size_bytes=sum(sizes.values()))
    return sizes


async def _remove(
    resources: EngineResources, expired: list[str], contents: list[str], idle: dict[str, float], now_s: float
) -> None:
    stores = resources.stores
    for start in range(0, len(expired), AT_ONCE):
        some = expired[start : start + AT_ONCE]
        run_ids = await stores.database.run(lambda c, some=some: _delete(c, some))  # type: ignore[misc]
        await DBOS.delete_workflows_async(run_ids)
        for run_id in run_ids:
            await to_thread.run_sync(stores.logs.remove, run_id)
    for sha256 in contents:
        async with stores.artifacts.settling:
            if not await stores.database.read(lambda c, name=sha256: _is_needed(c, name)):  # type: ignore[misc]
                await stores.artifacts.remove(sha256)
    for fingerprint, used_s in idle.items():
        if not await to_thread.run_sync(stores.workspaces.remove, fingerprint, used_s):
            continue  # somebody has taken it since it was chosen
        await stores.artifacts.remove_workspace(fingerprint)
        await stores.database.run(
            lambda c, name=fingerprint: owned.forget(c, name, now_s)  # type: ignore[misc]
        )
    await to_thread.run_sync(stores.workspaces.sweep_incoming, IDLE_S)


def _unfinished(connection: sa.Connection) -> list[str]:
    query = sa.select(builds.c.id).where(builds.c.state != Phase.FINISHED.value)
    return [row[0] for row in connection.execute(query)]


def _ended(connection: sa.Connection) -> list[EndedBuild]:
    query = sa.select(builds.c.id, builds.c.finished_s, builds.c.size_bytes)
    found = connection.execute(query.where(builds.c.state == Phase.FINISHED.value))
    return [EndedBuild(row[0], row[1] or 0.0, row[2]) for row in found]


def _contents_of_only(connection: sa.Connection, expired: list[str]) -> list[str]:
    """Give the contents that only these builds made."""
    gone = set(expired)
    holders: dict[str, set[str]] = {}
    for build_id, sha256 in connection.execute(sa.select(artifacts.c.build_id, artifacts.c.sha256)):
        holders.setdefault(sha256, set()).add(build_id)
    return sorted(sha256 for sha256, makers in holders.items() if makers <= gone)


def _is_needed(connection: sa.Connection, sha256: str) -> bool:
    query = sa.select(artifacts.c.sha256).where(artifacts.c.sha256 == sha256).limit(1)
    return connection.execute(query).first() is not None


def _needed_workspaces(connection: sa.Connection, expired: list[str]) -> set[str]:
    gone = set(expired)
    rows = connection.execute(sa.select(builds.c.id, builds.c.fingerprint))
    return {fingerprint for build_id, fingerprint in rows if build_id not in gone}


def _delete(connection: sa.Connection, expired: list[str]) -> list[str]:
    found = connection.execute(sa.select(runs.c.id).where(runs.c.build_id.in_(expired)))
    run_ids = [row[0] for row in found]
    for table in (runs, artifacts, idempotency, webhooks):
        connection.execute(table.delete().where(table.c.build_id.in_(expired)))
    connection.execute(
        builds.delete().where(builds.c.id.in_(expired), builds.c.state == Phase.FINISHED.value)
    )
    return run_ids
