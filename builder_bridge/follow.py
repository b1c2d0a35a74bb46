"""Follows a run: its log by byte offset, its states, and the signs that it still lives."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable

import anyio

from builder_bridge.build import BuildEvent, BuildState, LogChunk, RunId, StateChanged
from builder_bridge.errors import PhoneLost
from builder_bridge.handoff import ResultDocument, StateLines, StatusDocument, judge, parse
from builder_bridge.routes.route import LogStream, Route

FIRST_QUIET_S = 1.0
"""The first question on a stream comes sooner: whoever reattaches may find the run long dead."""
QUIET_S = 10.0
"""After so long without a byte the phone is asked whether the run still lives."""
FROZEN_AFTER_CHECKS = 4
"""So many checks without a heartbeat in a living process, and the phone is asleep."""
BATCH_S = 0.05
BATCH_BYTES = 32 << 10
_MAX_REOPENED = 5


async def follow_run(
    route: Route, run_id: RunId, offset: int, on_result: Callable[[ResultDocument], None]
) -> AsyncGenerator[BuildEvent, None]:
    """Give the events of a run until its final state, which comes after the last byte of its log.

    `on_result` hears the phone's verdict where it comes along.
    """
    follower = _Follower(run_id, offset, on_result)
    reopened = 0
    while not follower.is_done:
        before = follower.offset
        follower.has_asked = False
        async with route.log(run_id, follower.offset) as stream:
            follower.source = None
            while not follower.is_done:
                pieces = await follower.read(stream)
                for event in follower.take(pieces):
                    yield event
                if pieces and not follower.has_ended:
                    continue
                for event in follower.check(parse(await route.call("status", run_id), StatusDocument)):
                    yield event
                if follower.has_ended:
                    break
        reopened = 0 if follower.offset > before else reopened + 1
        if reopened > _MAX_REOPENED:
            raise PhoneLost(f"The log of run {run_id} ends at byte {follower.offset} again and again.")


class _Follower:
    """What is known while following; `has_ended` says that the stream on the phone has."""

    def __init__(self, run_id: RunId, offset: int, on_result: Callable[[ResultDocument], None]) -> None:
        self._run_id = run_id
        self._on_result = on_result
        self.offset = offset
        self.is_done = False
        self.has_ended = False
        self.has_asked = False
        self.source: AsyncIterator[tuple[bool, bytes]] | None = None
        self._lines = StateLines()
        self._told: list[BuildState] = []
        self._final: BuildState | None = None
        self._log_size: int | None = None
        self._beat = ""
        self._missed = 0

    async def read(self, stream: LogStream) -> list[tuple[bool, bytes]]:
        """Wait for bytes, at most `QUIET_S`; small pieces that come close together are given together."""
        pieces: list[tuple[bool, bytes]] = []
        self.has_ended = False
        limit_s, size_bytes = QUIET_S if self.has_asked else FIRST_QUIET_S, 0
        while size_bytes < BATCH_BYTES:
            with anyio.move_on_after(limit_s) as scope:
                # One iterator for the whole stream: it may hold pieces that came in the same packet.
                # Only a wait that timed out ends it, and then it holds none.
                if self.source is None:
                    self.source = aiter(stream)
                async for piece in self.source:
                    pieces.append(piece)
                    size_bytes += len(piece[1])
                    break
                else:
                    self.has_ended = True
                    break
            if scope.cancelled_caught:
                self.source = None
                break
            if pieces[-1][0]:
                break
            limit_s = BATCH_S
        return pieces

    def take(self, pieces: list[tuple[bool, bytes]]) -> list[BuildEvent]:
        """Turn pieces of the two streams into events."""
        events: list[BuildEvent] = []
        data = b"".join(piece for is_state, piece in pieces if not is_state)
        for is_state, piece in pieces:
            for line in self._lines.feed(piece) if is_state else []:
                state = BuildState(line.state)
                if state.is_final:
                    self._final, self._log_size = state, line.log_size
                    if line.result is not None:
                        self._on_result(line.result)
                elif state not in self._told:
                    self._told.append(state)
                    events.append(StateChanged(state))
        if self._log_size is not None:
            data = data[: max(0, self._log_size - self.offset)]
        if data:
            events.append(LogChunk(self.offset, data))
            self.offset += len(data)
        return events + self._end()

    def check(self, document: StatusDocument) -> list[BuildEvent]:
        """Judge a status that was asked for because nothing came."""
        self.has_asked = True
        status = judge(document)
        if status.state is BuildState.LOST:
            self._final, self._log_size = status.state, status.log_size_bytes
        elif status.state.is_final:
            self._final, self._log_size = status.state, document.state.log_size or document.log_size
        self._missed = self._missed + 1 if status.beat == self._beat else 0
        self._beat = status.beat
        events: list[BuildEvent] = []
        if self._missed == FROZEN_AFTER_CHECKS and self._final is None:
            events.append(StateChanged(BuildState.FROZEN, "the runner lives but gives no sign of it"))
        return events + self._end()

    def _end(self) -> list[BuildEvent]:
        if self._final is None or self.offset < (self._log_size or 0):
            return []
        self.is_done = True
        return [StateChanged(self._final)]
