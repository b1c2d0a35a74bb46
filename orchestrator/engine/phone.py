"""What the engine asks of a phone, and who holds the connection to it."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Protocol

import anyio
import structlog
from anyio.abc import TaskGroup

from builder_bridge.build import Artifact, BuildEvent, BuildResult, BuildSpec, RunId
from builder_bridge.errors import BridgeError, PhoneLost
from builder_bridge.health import Health
from builder_bridge.prefix.contract import Contract
from builder_bridge.secret import Secrets
from builder_bridge.workspace.snapshot import Snapshot

log = structlog.get_logger(__name__)


class PhonePort(Protocol):
    """An open way to the builder prefix of one phone; `builder_bridge.bridge.Bridge` is one."""

    @property
    def serial(self) -> str:
        """The phone's own name."""
        ...

    @property
    def route_name(self) -> str:
        """How the prefix is reached."""
        ...

    async def info(self) -> Contract:
        """Give the prefix's contract and how the phone is now."""
        ...

    async def health(self) -> Health:
        """Ask how the phone feels: battery, heat, storage."""
        ...

    async def submit(self, run_id: RunId, spec: BuildSpec, snapshot: Snapshot, secrets: Secrets) -> object:
        """Hand a workspace over and start the run; the same run id is never started twice."""
        ...

    def follow(self, run_id: RunId, offset: int) -> AsyncIterator[BuildEvent]:
        """Tell of a run from a byte of its log on, until its final state."""
        ...

    async def cancel(self, run_id: RunId, cause: str) -> object:
        """End a run; one that has ended already is no fault. `cause` is a word out of `[a-z0-9-]`."""
        ...

    async def result(self, run_id: RunId) -> BuildResult:
        """Give what came of an ended run."""
        ...

    async def events(self, run_id: RunId) -> bytes:
        """Give what Gradle's init script noted of an ended run, as lines of JSON; empty for none."""
        ...

    async def reports(self, run_id: RunId) -> Mapping[str, bytes]:
        """Give the reports that an ended run's tasks wrote, by path inside the workspace; few and small."""
        ...

    async def fetch(self, run_id: RunId, artifact: Artifact, destination: Path) -> object:
        """Bring an artifact here, its sha256 checked."""
        ...


@asynccontextmanager
async def following(port: PhonePort, run_id: RunId, offset: int) -> AsyncIterator[AsyncIterator[BuildEvent]]:
    """Follow a run for the block; the phone hears at once when the block ends early."""
    events = port.follow(run_id, offset)
    try:
        yield events
    finally:
        if isinstance(events, AsyncGenerator):
            await events.aclose()


OpenPhone = Callable[[str, str | None], AbstractAsyncContextManager[PhonePort]]
"""(address, route or None for the first that works) → the open phone. Raises `BridgeError`s."""


class PhoneLines:
    """Keeps one connection to each phone and route in use, each owned by a task of its own.

    A build's steps follow each other on one connection; after a fault the next `use` connects anew.
    """

    def __init__(self, open_phone: OpenPhone, tasks: TaskGroup) -> None:
        self._open_phone = open_phone
        self._tasks = tasks
        self._lines: dict[tuple[str, str | None], _Line] = {}

    @asynccontextmanager
    async def use(self, address: str, route: str | None) -> AsyncIterator[PhonePort]:
        """Lend the connection to a phone, opening it where there is none.

        A `BridgeError` inside the block drops the connection, for its state is unknown then.
        """
        line = self._lines.get((address, route))
        if line is None or line.is_over:
            line = self._lines[address, route] = _Line()
            self._tasks.start_soon(self._hold, line, address, route)
        port = await line.opened()
        try:
            yield port
        except BridgeError:
            self.drop(address)
            raise

    def drop(self, address: str) -> None:
        """Close the connections to a phone, by whatever route."""
        for key in [key for key in self._lines if key[0] == address]:
            self._lines.pop(key).let_go.set()

    async def _hold(self, line: "_Line", address: str, route: str | None) -> None:
        try:
            async with self._open_phone(address, route) as port:
                line.port = port
                line.ready.set()
                await line.let_go.wait()
        except BridgeError as fault:
            line.fault = fault
        except Exception as fault:
            line.fault = bridge_fault_in(fault)
            if line.fault is None:
                log.exception("phone.line_broke", serial=address)
                line.fault = PhoneLost(f"the connection to {address} broke: {fault!r}", serial=address)
        finally:
            line.is_over = True
            line.ready.set()


def bridge_fault_in(fault: BaseException) -> BridgeError | None:
    """Give the bridge's own fault that a group of a task group holds, None where there is none."""
    if isinstance(fault, BaseExceptionGroup):
        return next(filter(None, map(bridge_fault_in, fault.exceptions)), None)
    return fault if isinstance(fault, BridgeError) else None


class _Line:
    def __init__(self) -> None:
        self.ready = anyio.Event()
        self.let_go = anyio.Event()
        self.port: PhonePort | None = None
        self.fault: BridgeError | None = None
        self.is_over = False

    async def opened(self) -> PhonePort:
        await self.ready.wait()
        if self.fault is not None:
            raise self.fault
        if self.port is None or self.is_over:
            raise PhoneLost("the connection to the phone was closed while it was asked for")
        return self.port
