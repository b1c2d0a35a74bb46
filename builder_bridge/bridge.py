"""Hands a workspace to a phone, lets it build there, and brings log and artifacts back.

A run is named by its id and started detached: it goes on whatever happens to this connection. So
every operation here may be done again, on a new connection, after `PhoneLost`: `submit` finds the
run that is there, `follow` and `fetch` go on at the byte where they were.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import anyio
from anyio.to_thread import run_sync

from builder_bridge.adb import AdbConnection, shell
from builder_bridge.adb.line import round_trip_s
from builder_bridge.build import (
    Artifact,
    BuildEvent,
    BuildResult,
    BuildSpec,
    BuildState,
    RunId,
    RunIdentity,
    StateChanged,
)
from builder_bridge.death import Cause
from builder_bridge.errors import ProtocolFault, UnknownRun
from builder_bridge.evidence import TAIL_BYTES, explain_death
from builder_bridge.fetch import fetch_artifact
from builder_bridge.follow import follow_run
from builder_bridge.handoff import (
    MAX_LINE_BYTES,
    RUN_ID,
    ResultDocument,
    RunsDocument,
    RunStatus,
    StatusDocument,
    judge,
    parse,
)
from builder_bridge.health import ASK, Health, read_health
from builder_bridge.outcome import to_result
from builder_bridge.prefix.contract import Contract
from builder_bridge.ranges import streams_for
from builder_bridge.reports import MAX_ARCHIVE_BYTES, read_archive
from builder_bridge.routes.probe import DEFAULT_PACKAGE, pick_route
from builder_bridge.routes.route import Route
from builder_bridge.secret import NO_SECRETS, Secrets
from builder_bridge.submission import Submission
from builder_bridge.workspace.kept import KeptContents, default_memory
from builder_bridge.workspace.snapshot import Snapshot

DEFAULT_ROUTES = ("run_as", "shell_dir")
_HEALTH_LIMIT_S = 10.0
_MAX_VERDICTS = 20
_MAX_EVENTS_BYTES = 64 << 20


@asynccontextmanager
async def open_bridge(
    adb: AdbConnection,
    route_names: Sequence[str] = DEFAULT_ROUTES,
    package: str = DEFAULT_PACKAGE,
    *,
    has_daemon: bool | None = None,
    memory: Path | None = None,
) -> AsyncIterator["Bridge"]:
    """Reach the builder prefix of a connected phone by the first route that works.

    `has_daemon` says whether Gradle's daemon stays between builds; None lets the phone's memory
    decide. `memory` is a folder of this host that remembers what was handed over, so that later
    hand-offs send changes only (by default one in the user's cache). Raises `RouteUnavailable` with
    every route's reason.
    """
    route = await pick_route(adb, route_names, package)
    yield Bridge(adb, route, package, has_daemon, KeptContents(memory or default_memory()))


class Bridge:
    """One prefix on one connected phone. May be used by several tasks at once."""

    def __init__(
        self, adb: AdbConnection, route: Route, package: str, has_daemon: bool | None, kept: KeptContents
    ) -> None:
        self._adb = adb
        self._route = route
        self._package = package
        self._has_daemon = has_daemon
        self._kept = kept
        self._contract: Contract | None = None
        self._verdicts: dict[str, ResultDocument] = {}

    @property
    def serial(self) -> str:
        """The phone's own serial number."""
        return self._adb.serial

    @property
    def route_name(self) -> str:
        """Which route leads to the prefix."""
        return self._route.name

    async def info(self) -> Contract:
        """Ask what the prefix is and has, and how the phone is doing now."""
        self._contract = parse(await self._route.call("info"), Contract)
        return self._contract

    async def health(self) -> Health:
        """Ask Android for battery, heat and storage; what it does not tell within 10 s is unknown."""
        with anyio.move_on_after(_HEALTH_LIMIT_S):
            told = await shell.run(self._adb, ASK)
            return read_health(told.stdout.decode("utf-8", "replace"))
        return Health()

    async def submit(
        self, run_id: RunId, spec: BuildSpec, snapshot: Snapshot, secrets: Secrets = NO_SECRETS
    ) -> RunIdentity | BuildState:
        """Hand a workspace over and start its build; gives the identity of the process that builds.

        The same id with the same request finds the run that is there: its identity while it lives,
        its state once it has ended. Sends only what the phone lacks. `secrets` are Gradle properties
        of this run alone; the phone keeps them until its end, and no log shows them.

        Raises:
            RunConflict: the id is taken by another request.
            PhoneBusy: another run is building in this prefix.
            ContractMismatch, WorkspaceFault: the project cannot be built there; no content was sent.
            StorageFull, TransferFault, PhoneLost: as they say; call again to go on.
        """
        check_run_id(run_id)
        where = (self._route, self.serial, self._package, self._kept)
        submission = Submission(*where, run_id, spec, snapshot, secrets)
        return await submission.submit(self._known_contract, self._has_daemon)

    async def _known_contract(self) -> Contract:
        return self._contract or await self.info()

    async def follow(self, run_id: RunId, offset: int = 0) -> AsyncGenerator[BuildEvent, None]:
        """Give the log from a byte offset on and every state, until the run has ended.

        The last event is the final `StateChanged`, when all of the log has been given. Close the
        iterator (`contextlib.aclosing`) to stop earlier; the build goes on. After `PhoneLost` follow
        again from the end of the last chunk.
        """
        check_run_id(run_id)
        async with aclosing(follow_run(self._route, run_id, offset, self._keep_verdict)) as events:
            async for event in events:
                if isinstance(event, StateChanged) and event.state is BuildState.LOST:
                    yield StateChanged(BuildState.LOST, await self._cause_of_loss(run_id))
                else:
                    yield event

    async def status(self, run_id: RunId) -> RunStatus:
        """Say where a run is; raises `UnknownRun`."""
        check_run_id(run_id)
        return judge(parse(await self._route.call("status", run_id), StatusDocument))

    async def runs(self) -> tuple[RunStatus, ...]:
        """Say where every run is that the phone keeps."""
        return tuple(judge(run) for run in parse(await self._route.call("list"), RunsDocument).runs)

    async def cancel(self, run_id: RunId, cause: str = "cancelled") -> RunStatus:
        """End a run: Gradle is asked to stop, and after ten seconds made to. Harmless when it has ended."""
        check_run_id(run_id)
        return judge(parse(await self._route.call("cancel", run_id, cause), StatusDocument))

    async def result(self, run_id: RunId) -> BuildResult:
        """Wait for the end of a run and give what came of it; a lost run has a result, too."""
        verdict = self._verdicts.pop(run_id, None)
        if verdict is not None:
            return await self._with_cause(to_result(verdict, run_id, {}))
        status = await self.status(run_id)
        if not status.state.is_final:
            async for _ in self.follow(run_id, status.log_size_bytes):
                pass
        try:
            line = await self._read(run_id, "result", MAX_LINE_BYTES)
        except UnknownRun:
            return await self._lost_result(run_id)
        return await self._with_cause(to_result(parse(line, ResultDocument), run_id, {}))

    async def fetch(self, run_id: RunId, artifact: Artifact, destination: Path) -> Path:
        """Bring an artifact to a path on this host, which appears only when it is whole and right.

        Goes on where an earlier fetch was cut. A large one comes in several streams where a single one
        could not fill the line. Raises `TransferFault` when the bytes stay wrong.
        """
        check_run_id(run_id)
        streams = 1
        has_windows = self._adb.has_windows
        if streams_for(artifact.size_bytes, has_windows, float("inf")) > 1:  # else no need to measure
            streams = streams_for(artifact.size_bytes, has_windows, await round_trip_s(self._adb))
        await fetch_artifact(self._route, run_id, artifact, destination, streams)
        return destination

    async def events(self, run_id: RunId) -> bytes:
        """Give what Gradle's init script noted about tasks, as lines of JSON; empty where it did not run."""
        check_run_id(run_id)
        try:
            return await self._read(run_id, "events", _MAX_EVENTS_BYTES)
        except UnknownRun:
            return b""

    async def reports(self, run_id: RunId) -> Mapping[str, bytes]:
        """Give the reports that this run's tasks wrote, by path inside the workspace, sorted by path.

        These are results of tests, lint's XML and SARIF, and Gradle's problems report, of a failed
        build, too: at most 500 files, 8 MB each, 16 MB together. The result's fact `reports` says
        how many there are, `reports_left_out` how many were too much; empty where there are none.
        """
        check_run_id(run_id)
        try:
            archive = await self._read(run_id, "reports", MAX_ARCHIVE_BYTES)
        except UnknownRun:
            return {}
        return await run_sync(read_archive, archive)

    async def gc(self, keep: int = 10) -> None:
        """Remove ended runs but the newest `keep`; 0 removes all that was handed over, too."""
        await self._route.call("gc", str(keep))

    async def _read(self, run_id: RunId, name: str, max_bytes: int) -> bytes:
        """Give a small file of a run; raises `ProtocolFault` for a phone that sends more than it may."""
        size_bytes, parts = 0, []
        async with self._route.get(run_id, name, 0) as pieces:
            async for piece in pieces:
                size_bytes += len(piece)
                if size_bytes > max_bytes:
                    raise ProtocolFault(f"The phone sends more than {max_bytes} bytes of {name}.")
                parts.append(piece)
        return b"".join(parts)

    def _keep_verdict(self, verdict: ResultDocument) -> None:
        """Spare `result` a question; verdicts that nobody asks for are forgotten."""
        self._verdicts[verdict.run] = verdict
        while len(self._verdicts) > _MAX_VERDICTS:
            del self._verdicts[next(iter(self._verdicts))]

    async def _with_cause(self, result: BuildResult) -> BuildResult:
        """Name what killed Gradle, where a signal did and the phone shows whose."""
        if result.state is not BuildState.FAILED or result.cause or (result.exit_code or 0) <= 128:
            return result
        start = max(0, result.log_size_bytes - TAIL_BYTES)
        async with self._route.get(result.run_id, "log", start) as parts:
            tail = b"".join([part async for part in parts])
        death = await explain_death(
            self._adb,
            await self.status(result.run_id),
            self._package,
            exit_code=result.exit_code,
            log_tail=tail,
        )
        return result if death.cause is Cause.UNKNOWN else replace(result, cause=death.cause.value)

    async def _lost_result(self, run_id: RunId) -> BuildResult:
        digest, size_bytes = sha256(), 0
        async with self._route.get(run_id, "log", 0) as parts:
            async for part in parts:
                digest.update(part)
                size_bytes += len(part)
        cause = await self._cause_of_loss(run_id)
        return BuildResult(run_id, BuildState.LOST, None, size_bytes, digest.hexdigest(), cause=cause)

    async def _cause_of_loss(self, run_id: RunId) -> str:
        death = await explain_death(self._adb, await self.status(run_id), self._package)
        return death.cause.value


def check_run_id(run_id: str) -> None:
    """Raise ValueError for what cannot name a run: 1 to 40 of a-z, 0-9 and -."""
    if not RUN_ID.fullmatch(run_id):
        raise ValueError(f"{run_id!r} cannot name a run: 1 to 40 of a-z, 0-9 and -")
