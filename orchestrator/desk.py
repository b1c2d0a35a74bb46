"""Where builds are asked for and asked after: what HTTP, MCP and the command line have in common.

Each verb checks who asks, works in one transaction, and rings the bells of who must know.
"""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TypeVar

import sqlalchemy as sa
import structlog
from anyio import to_thread

from builder_bridge.secret import Secrets
from builder_bridge.workspace.snapshot import Snapshot
from orchestrator import bell
from orchestrator.access import Permission, Principal
from orchestrator.engine import ending
from orchestrator.engine.placement import NEEDS, PRIORITIES
from orchestrator.engine.resources import Stores
from orchestrator.errors import BadRequest, Conflict, Forbidden, NotFound, TooMany
from orchestrator.store import builds as build_store
from orchestrator.store import owned as workspace_store
from orchestrator.store import phones as phone_store
from orchestrator.store.builds import NewBuild
from orchestrator.store.records import ArtifactRow, BuildRow, Phase, RunRow
from orchestrator.wish import Wish, identity_of

T = TypeVar("T")
log = structlog.get_logger(__name__)
WATCH_S = 1.0
"""How long a change that another host made may stay unseen here."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """Which build answers a wish, and whether it was there before."""

    build: BuildRow
    is_joined: bool


@dataclass(frozen=True, slots=True)
class BuildView:
    """A build with its runs and artifacts."""

    build: BuildRow
    runs: list[RunRow]
    artifacts: list[ArtifactRow]


class FrontDesk:
    """All verbs on builds."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    async def submit(
        self,
        principal: Principal,
        wish: Wish,
        request_id: str | None = None,
        idempotency: tuple[str, str] | None = None,
    ) -> Receipt:
        """Queue a build, or join the one that answers the wish already.

        `idempotency` is a key of the caller with the digest of what it sent. Raises `Forbidden`,
        `TooMany`, `NotFound` for a phone that nobody knows, and `Conflict` for a key with another body.
        """
        need(principal, Permission.WRITE)
        unknown = sorted(set(wish.needs or {}) - NEEDS)
        if unknown:
            raise BadRequest(f"a build cannot need {unknown[0]}; known needs are {', '.join(sorted(NEEDS))}")
        spec = {**asdict(wish.spec), "place": wish.snapshot.place}
        if wish.route is not None:
            spec["route"] = wish.route
        if wish.secrets:
            # They lie on this host, so its phones alone may build this.
            spec["secrets"], spec["host"] = list(wish.secrets.names), self._stores.settings.lab.host_id
        new = NewBuild(
            identity=identity_of(self._stores.lab_id, principal.owner, wish),
            owner=principal.owner,
            project=wish.snapshot.name,
            fingerprint=wish.snapshot.fingerprint,
            spec=spec,
            needs=wish.needs or {},
            pool=wish.pool,
            phone=wish.phone,
            priority=PRIORITIES[wish.priority],
            request_id=request_id,
        )
        limit = self._stores.settings.limits.queued_per_owner
        receipt = await self._stores.database.run(
            lambda c: _submit(
                c,
                new,
                force=wish.force,
                limit=limit,
                idempotency=idempotency,
                keep=self._keeper(wish.secrets),
            )
        )
        if not receipt.is_joined:
            self._stores.bells.ring("builds")
        log.info("build.submitted", build_id=receipt.build.id, is_joined=receipt.is_joined, owner=new.owner)
        return receipt

    def _keeper(self, secrets: Secrets) -> Callable[[str], None] | None:
        """Give what keeps the secrets of a new build before it is committed."""
        return (lambda build_id: self._stores.secrets.put(build_id, secrets)) if secrets else None

    async def own_workspace(self, principal: Principal, snapshot: Snapshot) -> None:
        """Note that an owner sent a workspace, so that they may build it by its fingerprint."""
        now_s = time.time()
        await self._stores.database.run(lambda c: workspace_store.own(c, principal.owner, snapshot, now_s))

    async def workspace_name(self, principal: Principal, fingerprint: str) -> str:
        """Give the name under which an owner sent a workspace; raises `NotFound` for others' alike."""
        name = await self._stores.database.read(
            lambda c: workspace_store.name_of(c, principal.owner, fingerprint)
        )
        if name is None:
            raise NotFound(
                f"no workspace {fingerprint} was sent by {principal.owner}", code="unknown_workspace"
            )
        return name

    async def get(self, principal: Principal, build_id: str) -> BuildRow:
        """Give a build that the asker may see; raises `NotFound` for all others alike."""
        need(principal, Permission.READ)
        build = await self._stores.database.read(lambda c: build_store.get(c, build_id))
        if build is None or not principal.sees(build.owner):
            raise NotFound(f"there is no build {build_id}")
        return build

    async def view(self, principal: Principal, build_id: str) -> BuildView:
        """Give a build with all that belongs to it."""
        build = await self.get(principal, build_id)

        def read(connection: sa.Connection) -> BuildView:
            fresh = build_store.must_get(connection, build_id)
            return BuildView(
                fresh,
                build_store.runs_of(connection, build_id),
                build_store.artifacts_of(connection, build.id),
            )

        return await self._stores.database.read(read)

    async def cancel(self, principal: Principal, build_id: str) -> BuildRow:
        """End a build: at once while it waits, else as soon as its phone has heard."""
        need(principal, Permission.CANCEL)
        await self.get(_reader(principal), build_id)
        build = await self._stores.database.run(lambda c: _cancel(c, self._stores, build_id))
        if build.is_finished:
            await to_thread.run_sync(self._stores.secrets.remove, build_id)
        self._stores.ring_build(build_id)
        self._stores.bells.ring("builds")
        log.info("build.cancel_asked", build_id=build_id, state=build.state)
        return build

    async def retry(self, principal: Principal, build_id: str, request_id: str | None) -> Receipt:
        """Build the same content again as a new build; raises `Conflict` while it is under way."""
        need(principal, Permission.WRITE)
        build = await self.get(_reader(principal), build_id)
        if not build.is_finished:
            raise Conflict(f"build {build_id} is {build.state}, so there is nothing to do again yet")
        if build.spec.get("secrets"):
            raise Conflict(
                f"build {build_id} had secrets, which are not kept after its end",
                code="secrets_gone",
                hint="Ask for the build anew, with its secrets and with `force`.",
            )
        if not self._stores.workspaces.take(build.fingerprint):
            raise NotFound(f"the workspace of build {build_id} is no longer kept", code="unknown_workspace")
        new = NewBuild(
            identity=build.identity,
            owner=build.owner,
            project=build.project,
            fingerprint=build.fingerprint,
            spec=build.spec,
            needs=build.needs,
            pool=build.pool,
            phone=build.phone,
            priority=build.priority,
            request_id=request_id,
        )
        limit = self._stores.settings.limits.queued_per_owner
        receipt = await self._stores.database.run(
            lambda c: _submit(c, new, force=True, limit=limit, idempotency=None)
        )
        self._stores.bells.ring("builds")
        return receipt

    async def wait(
        self, principal: Principal, build_id: str, at_most_s: float, until: Callable[[BuildRow], bool]
    ) -> BuildRow:
        """Give the build once `until` holds, or as it is after the time; the build is not touched."""
        ring = self._stores.bells.of(f"build:{build_id}")
        deadline_s = time.monotonic() + at_most_s
        while True:
            rung = ring.listen()
            build = await self.get(principal, build_id)
            left_s = deadline_s - time.monotonic()
            if until(build) or left_s <= 0:
                return build
            await bell.wait(rung, min(WATCH_S, left_s))


def need(principal: Principal, permission: Permission) -> None:
    """Raise `Forbidden` unless something is allowed."""
    if not principal.may(permission):
        raise Forbidden(f"the token lacks the scope {permission.value}")


def _reader(principal: Principal) -> Principal:
    return Principal(principal.owner, principal.permissions | {Permission.READ})


def _submit(
    connection: sa.Connection,
    new: NewBuild,
    *,
    force: bool,
    limit: int,
    idempotency: tuple[str, str] | None,
    keep: Callable[[str], None] | None = None,
) -> Receipt:
    if connection.dialect.name == "postgresql":
        # One owner's submissions take turns, so that a cap and a join are decided on the truth.
        lock = sa.text("select pg_advisory_xact_lock(hashtext(:owner))")
        connection.execute(lock, {"owner": new.owner})
    if idempotency is not None:
        key, body_sha256 = idempotency
        known = build_store.remembered(connection, new.owner, key)
        if known is not None:
            if known[0] != body_sha256:
                raise Conflict(
                    f"the idempotency key {key!r} was used with another body",
                    code="idempotency_conflict",
                    hint="Take a new key for a new request.",
                )
            return Receipt(build_store.must_get(connection, known[1]), is_joined=True)
    receipt = _join_or_insert(connection, new, force=force, limit=limit)
    if keep is not None and not receipt.is_joined:
        keep(receipt.build.id)
    if idempotency is not None:
        build_store.remember(connection, new.owner, *idempotency, receipt.build.id, time.time())
    return receipt


def _join_or_insert(connection: sa.Connection, new: NewBuild, *, force: bool, limit: int) -> Receipt:
    latest = build_store.latest_of(connection, new.identity)
    if latest is not None and build_store.joinable(latest) and not (force and latest.is_finished):
        return Receipt(latest, is_joined=True)
    if new.phone is not None and phone_store.get(connection, new.phone) is None:
        raise NotFound(
            f"no phone is called {new.phone}",
            code="unknown_phone",
            hint="List phones with GET /v1/phones, or add it with POST /v1/phones.",
        )
    queued = build_store.count_in(connection, Phase.QUEUED, new.owner)
    if queued >= limit:
        raise TooMany(f"{new.owner} has {queued} builds waiting, and {limit} are allowed")
    generation = 1 if latest is None else latest.generation + 1
    return Receipt(build_store.insert(connection, new, generation, time.time()), is_joined=False)


def _cancel(connection: sa.Connection, stores: Stores, build_id: str) -> BuildRow:
    build = build_store.must_get(connection, build_id)
    if not build.is_finished:
        build_store.ask_cancel(connection, build_id)
        if build.state == Phase.QUEUED:
            ending.end_unplaced(connection, stores, build, "cancelled while it waited for a phone")
    return build_store.must_get(connection, build_id)
