"""Builds as they happen, as server-sent events: log bytes with their offset, and changes of state.

The id of each event is the offset of the log byte that comes next (`OFFSET`, or `OFFSET@ATTEMPT`
after the first attempt), so a client that reconnects with `Last-Event-ID` gets every byte once.
"""

import codecs
import re
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

import anyio
from fastapi.sse import ServerSentEvent

from orchestrator import bell
from orchestrator.access import Principal
from orchestrator.desk import FrontDesk
from orchestrator.engine.resources import Stores
from orchestrator.errors import BadRequest
from orchestrator.store.logs import LogBook
from orchestrator.store.records import BuildRow, run_id_of

CHUNK_BYTES = 65_536
LOOK_AGAIN_S = 1.0
"""How long what another process wrote may stay unseen here."""
GATHER_S = 0.025
"""Least time between two looks of one reader: lines that come quicker travel together."""

_EVENT_ID = re.compile(r"^(\d{1,15})(?:@(\d{1,6}))?$")


@dataclass(frozen=True, slots=True)
class Position:
    """Where a reader is: the next byte of which attempt's log; no attempt means the latest."""

    offset: int = 0
    attempt: int | None = None


def parse_position(event_id: str | None, offset: int | None) -> Position:
    """Read a `Last-Event-ID`, which wins, or a plain offset; raises `BadRequest` for anything else."""
    if event_id:
        match = _EVENT_ID.match(event_id)
        if match is None:
            raise BadRequest(f"{event_id!r} is no event id of this feed", code="bad_event_id")
        return Position(int(match[1]), int(match[2]) if match[2] else 1)
    return Position(offset or 0)


class BuildFeed:
    """Streams of one build, each for one reader."""

    def __init__(self, stores: Stores, desk: FrontDesk, closing: anyio.Event) -> None:
        self._stores = stores
        self._desk = desk
        self._closing = closing

    async def follow(
        self, principal: Principal, build_id: str, start: Position
    ) -> AsyncIterator[ServerSentEvent]:
        """Give `state`, `log` and at last `end`; where an attempt is lost, `attempt` and a new log.

        The stream ends early, without `end`, when the service stops; the client comes again.
        """
        state_ring = self._stores.bells.of(f"build:{build_id}")
        ring = self._stores.bells.of(f"log:{build_id}")
        state_rung = state_ring.listen()
        build = await self._desk.get(principal, build_id)
        reader = _Reader(self._stores.logs, build_id, start.attempt or build.attempt, start.offset)
        shown: dict[str, Any] | None = None
        looked_s = time.monotonic()
        while not self._closing.is_set():
            rung = ring.listen()
            if state_rung.is_set() or time.monotonic() - looked_s >= LOOK_AGAIN_S:
                state_rung, looked_s = state_ring.listen(), time.monotonic()
                build = await self._desk.get(principal, build_id)
            state = state_of(build)
            if state != shown:
                shown = state
                yield ServerSentEvent(event="state", data=state, id=reader.event_id)
            sent_s = time.monotonic()
            for event in reader.read(is_over=build.is_finished or build.attempt > reader.attempt):
                yield event
            if build.attempt > reader.attempt:
                yield reader.next_attempt()
                continue
            if build.is_finished:
                yield ServerSentEvent(event="end", data=state, id=reader.event_id)
                return
            await bell.wait(rung, LOOK_AGAIN_S)
            await anyio.sleep(max(0.0, sent_s + GATHER_S - time.monotonic()))


class _Reader:
    """Turns log bytes into events, whole characters each."""

    def __init__(self, logs: LogBook, build_id: str, attempt: int, offset: int) -> None:
        self._logs = logs
        self._build_id = build_id
        self.attempt = attempt
        self._offset = offset
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    @property
    def event_id(self) -> str:
        """Name the byte to go on from."""
        offset = self._offset - len(self._decoder.getstate()[0])
        return str(offset) if self.attempt == 1 else f"{offset}@{self.attempt}"

    def read(self, *, is_over: bool) -> Iterator[ServerSentEvent]:
        """Give what came since; `is_over` where nothing will be added to this log."""
        run_id = run_id_of(self._build_id, self.attempt)
        while data := self._logs.read(run_id, self._offset, CHUNK_BYTES):
            first = self._offset - len(self._decoder.getstate()[0])
            self._offset += len(data)
            is_last = is_over and self._offset >= self._logs.size_bytes(run_id)
            text = self._decoder.decode(data, is_last)
            yield ServerSentEvent(event="log", data={"offset": first, "text": text}, id=self.event_id)

    def next_attempt(self) -> ServerSentEvent:
        """Turn to the log of the next attempt."""
        self.attempt, self._offset = self.attempt + 1, 0
        self._decoder.reset()
        return ServerSentEvent(event="attempt", data={"attempt": self.attempt}, id=self.event_id)


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
