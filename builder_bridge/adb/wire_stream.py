"""One stream of a connection that speaks ADB itself: an inbox, and sending within the phone's credit."""

from collections import deque
from typing import TYPE_CHECKING

from builder_bridge.adb.packets import Buffer, take_bytes
from builder_bridge.adb.protocol import WINDOW_BYTES
from builder_bridge.adb.waiting import Signal
from builder_bridge.errors import StreamEnded

if TYPE_CHECKING:
    from builder_bridge.adb.connection import WireConnection


class WireStream:
    """An `AdbStream` of a `WireConnection`, which tells it what comes and owns all that goes."""

    def __init__(self, connection: "WireConnection", stream_id: int) -> None:
        self._connection = connection
        self._max_in_flight_bytes = WINDOW_BYTES
        self._has_come = Signal()
        self._may_go = Signal()
        self._inbox = deque[memoryview]()
        self.stream_id = stream_id
        self.is_opened = False
        self.is_ended = False
        self.pauses = 0
        self._is_paused = False

    @property
    def is_held_up(self) -> bool:
        """Whether a sender waits that might go on if more were let under way."""
        return self._is_paused and self._max_in_flight_bytes < WINDOW_BYTES

    async def opened(self) -> bool:
        """Wait until the phone takes the service; False where it refused. Raises `PhoneLost`."""
        while not (self.is_opened or self.is_ended):
            self._connection.check()
            await self._has_come.wait()
        return self.is_opened

    async def receive(self) -> Buffer:
        """Give the next bytes; none at the end."""
        while not self._inbox:
            if self.is_ended:
                return b""
            self._connection.check()
            await self._has_come.wait()
        data = self._inbox.popleft()
        self._connection.consume(self.stream_id, len(data))
        return data

    async def send(self, *buffers: Buffer) -> None:
        """Send all bytes as credit comes; they are queued when it returns."""
        waiting = deque(memoryview(buffer) for buffer in buffers if len(buffer))
        while waiting:
            self._connection.check()
            if self.is_ended:
                raise StreamEnded("The phone ended the stream while bytes were being sent to it.")
            room = self._connection.writable_bytes(self.stream_id)
            if not room:
                await self._wait_for_credit()
            elif not self._connection.has_output_room:
                await self._connection.drained.wait()
            else:
                self._connection.write(self.stream_id, take_bytes(waiting, room))

    async def close(self) -> None:
        """End the stream."""
        self._connection.close_stream(self.stream_id)

    def limit_in_flight(self, size_bytes: int) -> None:
        """Let no more than about so many bytes be under way, unacknowledged."""
        self._max_in_flight_bytes = min(size_bytes, WINDOW_BYTES)
        self._connection.limit_in_flight(self.stream_id, self._max_in_flight_bytes)
        self._may_go.notify()

    def ease(self) -> None:
        """Let twice as much be under way."""
        self.limit_in_flight(2 * self._max_in_flight_bytes)

    def take_opening(self) -> None:
        """The phone has taken the service."""
        self.is_opened = True
        self._has_come.notify()

    def take_data(self, data: memoryview) -> None:
        """Bytes have come."""
        self._inbox.append(data)
        self._has_come.notify()

    def take_credit(self) -> None:
        """More may go."""
        self._may_go.notify()

    def end(self) -> None:
        """Nothing comes or goes any more, but what lies in the inbox."""
        self.is_ended = True
        self.wake()

    def wake(self) -> None:
        """Let whoever waits look for the connection's fault."""
        self._has_come.notify()
        self._may_go.notify()

    async def _wait_for_credit(self) -> None:
        self.pauses += 1
        self._is_paused = True
        if self.is_held_up:
            self._connection.paused.notify()
        try:
            await self._may_go.wait()
        finally:
            self._is_paused = False
