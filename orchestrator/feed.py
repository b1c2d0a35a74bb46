"""Builds as they happen, as server-sent events: log bytes with their offset, and changes of state.

The id of each event is the offset of the log byte that comes next (`OFFSET`, or `OFFSET@ATTEMPT`
after the first attempt), so a client that reconnects with `Last-Event-ID` gets every byte once.
"""

import json
import re
import time
from collections import OrderedDict
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

import anyio

from orchestrator import bell
from orchestrator.access import Principal
from orchestrator.desk import FrontDesk
from orchestrator.engine.resources import Stores
from orchestrator.errors import BadRequest
from orchestrator.store import builds as build_store
from orchestrator.store.records import BuildRow, run_id_of

CHUNK_BYTES = 65_536
LOOK_AGAIN_S = 1.0
"""How long what another process wrote may stay unseen here."""
GATHER_S = 0.04
"""Least time between two looks of one reader: lines that come quicker travel together."""

KEEP_ALIVE_S = 15.0
"""After so long a silence a comment is sent, so that nothing between here and the reader hangs up."""
MAX_SHARED = 256

EVENT_ID = r"^([0-9]{1,15})(?:@([0-9]{1,6}))?$"


@dataclass(frozen=True, slots=True)
class Position:
    """Where a reader is: the next byte of which attempt's log; no attempt means the latest."""

    offset: int = 0
    attempt: int | None = None


def parse_position(event_id: str | None, offset: int | None) -> Position:
    """Read a `Last-Event-ID`, which wins, or a plain offset; raises `BadRequest` for anything else."""
    if event_id:
        match = re.match(EVENT_ID, event_id)
        if match is None:
            raise BadRequest(f"{event_id!r} is no event id of this feed", code="bad_event_id")
        return Position(int(match[1]), int(match[2]) if match[2] else 1)
    return Position(offset or 0)


class SharedLook:
    """A build's row as all its followers see it: read once for all of them, however many there are.

    It is read again after a ring, and after `LOOK_AGAIN_S` for what another host wrote.
    """

    def __init__(self, stores: Stores, build_id: str) -> None:
        self._stores = stores
        self._build_id = build_id
        self._ring = stores.bells.of(f"build:{build_id}")
        self._reading = anyio.Lock()
        self._rung: anyio.Event | None = None
        self._looked_s = 0.0
        self._build: BuildRow | None = None

    async def now(self) -> BuildRow | None:
        """Give the row as it is now; None once retention has removed the build."""
        if self._is_stale:
            async with self._reading:
                if self._is_stale:
                    rung, began_s = self._ring.listen(), time.monotonic()
                    self._build = await self._stores.database.read(
                        lambda connection: build_store.get(connection, self._build_id)
                    )
                    self._rung, self._looked_s = rung, began_s
        return self._build

    @property
    def _is_stale(self) -> bool:
        is_rung = self._rung is None or self._rung.is_set()
        return is_rung or time.monotonic() - self._looked_s >= LOOK_AGAIN_S


class BuildFeed:
    """Streams of builds, each for one reader; readers at the same byte share the work of an event."""

    def __init__(self, stores: Stores, desk: FrontDesk, closing: anyio.Event) -> None:
        self._stores = stores
        self._desk = desk
        self._closing = closing
        self._shared: OrderedDict[tuple[str, int], _LogEvent] = OrderedDict()
        self._looks: WeakValueDictionary[str, SharedLook] = WeakValueDictionary()

    async def follow(self, principal: Principal, build_id: str, start: Position) -> AsyncIterator[bytes]:
        """Give `state`, `log` and at last `end`; where an attempt is lost, `attempt` and a new log.

        The stream ends early, without `end`, when the service stops; the client comes again.
        """
        ring = self._stores.bells.of(f"log:{build_id}")
        look = self._looks.get(build_id)
        if look is None:
            look = self._looks[build_id] = SharedLook(self._stores, build_id)
        found_build = await self._desk.get(principal, build_id)
        attempt, offset = start.attempt or found_build.attempt, start.offset
        shown: dict[str, Any] | None = None
        sent_s = time.monotonic()
        while not self._closing.is_set():
            rung = ring.listen()
            build = await look.now()
            if build is None:
                return
            state = state_of(build)
            if state != shown:
                shown, sent_s = state, time.monotonic()
                yield event_bytes("state", state, offset, attempt)
            is_over = build.is_finished or build.attempt > attempt
            while event := self._log_event(build_id, attempt, offset, rung, is_over=is_over):
                offset, sent_s = event.end, time.monotonic()
                yield event.text
                if event.is_all and event.rung is rung:
                    break  # nothing was written since it was made
            if build.attempt > attempt:
                attempt, offset = attempt + 1, 0
                yield event_bytes("attempt", {"attempt": attempt}, offset, attempt)
                continue
            if build.is_finished:
                yield event_bytes("end", state, offset, attempt)
                return
            if time.monotonic() - sent_s > KEEP_ALIVE_S:
                sent_s = time.monotonic()
                yield b":\n\n"
            await bell.wait(rung, LOOK_AGAIN_S)
            await anyio.sleep(max(0.0, sent_s + GATHER_S - time.monotonic()))

    def _log_event(
        self, build_id: str, attempt: int, offset: int, rung: anyio.Event, *, is_over: bool
    ) -> "_LogEvent | None":
        """Give the event that begins at a byte, None where nothing is there yet."""
        run_id = run_id_of(build_id, attempt)
        known = self._shared.get((run_id, offset))
        if known is not None:
            return known
        data = self._stores.logs.read(run_id, offset, CHUNK_BYTES)
        is_last = is_over and offset + len(data) >= self._stores.logs.size_bytes(run_id)
        whole = data if is_last else whole_characters(data)
        if not whole:
            return None
        end = offset + len(whole)
        body = {"offset": offset, "text": whole.decode("utf-8", "replace")}
        is_all = not is_over and len(data) < CHUNK_BYTES
        made = _LogEvent(end, event_bytes("log", body, end, attempt), rung, is_all)
        self._shared[run_id, offset] = made
        if len(self._shared) > MAX_SHARED:
            self._shared.popitem(last=False)
        return made


@dataclass(frozen=True, slots=True)
class _LogEvent:
    """A piece of a log; `is_all` where it held all there was when the ring after `rung` was awaited."""

    end: int
    text: bytes
    rung: anyio.Event
    is_all: bool


def event_bytes(name: str, data: dict[str, Any], offset: int, attempt: int) -> bytes:
    """Write a server-sent event; `offset` is the log byte that a reader goes on from after it."""
    event_id = str(offset) if attempt == 1 else f"{offset}@{attempt}"
    return f"event: {name}\nid: {event_id}\ndata: {json.dumps(data)}\n\n".encode()


def whole_characters(data: bytes) -> bytes:
    """Cut off what may be the beginning of a UTF-8 character at the end; at most 3 bytes wait."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte < 0x80:
            return data
        if byte >= 0xC0:
            wants = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return data[:-back] if back < wants else data
    return data


def state_of(build: BuildRow) -> dict[str, Any]:
    """Give what a follower is told of a build's state."""
    return {
        "id": build.id,
        "state": build.state,
        "stage": build.stage,
        "reason": build.reason,
        "outcome": build.outcome,
        "cause": build.cause,
        "attempt": build.attempt,
        "is_cancel_asked": bool(build.cancel_asked),
    }
