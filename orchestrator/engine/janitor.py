"""Keeps a host's house: its heartbeat, hosts that are lost, and what is kept for how long."""

import time
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import sqlalchemy as sa
import structlog
from anyio import to_thread
from dbos import DBOS
from obstore.exceptions import BaseError as StoreError

from orchestrator.engine import ending, lease, retention
from orchestrator.engine.outage import outlast_outages
from orchestrator.engine.resources import EngineResources
from orchestrator.errors import DataFolderTaken
from orchestrator.settings import Lab
from orchestrator.store import builds as build_store
from orchestrator.store import phones as phone_store
from orchestrator.store.records import Phase
from orchestrator.store.secrets import ORPHAN_S
from orchestrator.store.tables import hosts, phones

log = structlog.get_logger(__name__)
SWEPT_FILE = "last-sweep"
FIRST_SWEEP_S = 30.0
"""How long a service that has just started leaves its disk to those who wait for it."""


class Janitor:
    """One a host; every duty is safe to do on several hosts at once."""

    def __init__(self, resources: EngineResources) -> None:
        self._resources = resources
        self._stores = resources.stores
        self._lab = self._stores.settings.lab
        self._process_id = ""
        self._swept_ago_s = 0.0

    async def register_host(self) -> None:
        """Become the host, before any run is taken up.

        Raises `DataFolderTaken` where a living process with another data folder is the host already:
        two would run every workflow twice.
        """
        folder = await to_thread.run_sync(_folder_id, self._stores.settings.data_dir)
        self._process_id = f"{folder}:{uuid.uuid4().hex}"
        self._swept_ago_s = await to_thread.run_sync(_age_s, self._stores.settings.data_dir / SWEPT_FILE)
        now_s = time.time()

        def register(connection: sa.Connection) -> None:
            known = phone_store.get_host(connection, self._lab.host_id)
            is_other = known is not None and not known.process_id.startswith(f"{folder}:")
            if known is not None and is_other and now_s - known.heartbeat_s < self._lab.lost_after_s:
                raise DataFolderTaken(
                    f"another process is host {self._lab.host_id} of this database",
                    hint="Give each host of a lab its own `lab.host_id`.",
                )
            phone_store.register_host(connection, self._lab.host_id, self._process_id, self._lab.url, now_s)

        await self._stores.database.run(register)

    async def run(self) -> None:
        """Do all duties for as long as the engine runs."""
        async with anyio.create_task_group() as duties:
            duties.start_soon(self._beat)
            duties.start_soon(self._sweep)

    async def _beat(self) -> None:
        while True:
            await outlast_outages(self._beat_once)
            await anyio.sleep(self._lab.heartbeat_s)

    async def _beat_once(self) -> None:
        now_s = time.time()
        is_mine = await self._stores.database.run(
            lambda c: phone_store.beat(c, self._lab.host_id, self._process_id, now_s)
        )
        if not is_mine:
            raise DataFolderTaken(f"another process has become host {self._lab.host_id}; this one stops")
        await self._forget_secrets(now_s)
        for run_id in await self._stores.database.run(lambda c: give_up_lost_hosts(c, self._lab, now_s)):
            await DBOS.cancel_workflow_async(run_id)
            log.warning("run.reassigned", run_id=run_id)
            self._stores.bells.ring("builds")

    async def _forget_secrets(self, now_s: float) -> None:
        """Remove secrets whose builds have ended: where the service was killed, or another host ended one."""
        secrets = self._stores.secrets
        kept = await to_thread.run_sync(secrets.kept)
        if not kept:
            return
        found = await self._stores.database.read(
            lambda c: {build_id: build_store.get(c, build_id) for build_id in kept}
        )
        for build_id, build in found.items():
            # Secrets are written a moment before their build is.
            is_orphan = build is None and now_s - kept[build_id] > ORPHAN_S
            if is_orphan or (build is not None and build.is_finished):
                await to_thread.run_sync(secrets.remove, build_id)
                log.info("secrets.removed", build_id=build_id)

    async def _sweep(self) -> None:
        """Sweep every so often, counted across restarts: a service may never live that long at once."""
        every_s = self._stores.settings.retention.every_s
        note = self._stores.settings.data_dir / SWEPT_FILE
        await anyio.sleep(max(min(FIRST_SWEEP_S, every_s), every_s - self._swept_ago_s))
        while True:
            try:
                await outlast_outages(lambda: retention.sweep(self._resources, dry_run=False))
            except (OSError, StoreError) as fault:
                # A disk or an object store that fails now keeps no build from being built.
                log.warning("retention.failed", fault=str(fault)[:300])
            await to_thread.run_sync(_touch, note)
            await anyio.sleep(every_s)


def give_up_lost_hosts(connection: sa.Connection, lab: Lab, now_s: float) -> list[str]:
    """Take the phones of hosts without a heartbeat out of use; give the runs to be cancelled.

    With `wait`, their builds stay with them until they are back. With `reassign`, the builds are
    queued again and the phones fenced, for the old runs may still be alive there.
    """
    silent = hosts.update().where(hosts.c.heartbeat_s < now_s - lab.lost_after_s, hosts.c.lost_s.is_(None))
    lost = [row[0] for row in connection.execute(silent.values(lost_s=now_s).returning(hosts.c.id))]
    cancelled: list[str] = []
    for host in lost:
        log.warning("host.lost", host=host, policy=lab.lost_host)
        if lab.lost_host == "reassign":
            cancelled += _reassign(connection, host, now_s)
        out: dict[str, Any] = {"state": "offline", "reason": f"its host {host} is lost"}
        connection.execute(phones.update().where(phones.c.host == host).values(**out))
    return cancelled


def _reassign(connection: sa.Connection, host: str, now_s: float) -> list[str]:
    given_up = []
    for phone, build in lease.held_by_host(connection, host):
        if build.state == Phase.FINISHED:
            continue
        reason = f"host {host} was lost"
        build_store.update_run(connection, build.run_id, state="lost", detail=reason, finished_s=now_s)
        lease.fence(connection, build.id, build.run_id)
        ending.queue_again(connection, build, f"attempt {build.attempt} on {phone.address}: {reason}")
        given_up.append(build.run_id)
    return given_up


def _age_s(note: Path) -> float:
    """Say how old a note is; one that is not there is made now."""
    if not note.exists():
        _touch(note)
    return time.time() - note.stat().st_mtime if note.exists() else 0.0


def _touch(note: Path) -> None:
    with suppress(OSError):  # a full disk keeps no build from being built
        note.touch()


def _folder_id(data_dir: Path) -> str:
    """Name this data folder for ever, so that a restart on it is told from another machine."""
    note = data_dir / "folder-id"
    if not note.exists():
        note.write_text(uuid.uuid4().hex[:16])
    return note.read_text().strip()
