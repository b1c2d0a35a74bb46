"""One connection to a phone, shared by any number of streams.

Three tasks own the wire: one reads and hands each stream its bytes, one writes, one watches that
the phone still lives. A stream that nobody reads keeps only itself waiting, by its credit. There
is no limit on silence: a Gradle build may say nothing for an hour. Only when nothing at all has
come for an interval does the watcher ask for a service that does not exist; each answer, even
this refusal, is a sign of life, and the third one missed ends the connection.
"""

from collections import deque

import anyio
import structlog

from builder_bridge.adb.events import (
    AuthWanted,
    Banner,
    Connected,
    Event,
    StreamClosed,
    StreamData,
    StreamOpened,
    StreamWritable,
    TlsWanted,
)
from builder_bridge.adb.greeting import Greeting
from builder_bridge.adb.link import AdbStream
from builder_bridge.adb.packets import Buffer
from builder_bridge.adb.protocol import WINDOW_BYTES, AdbProtocol
from builder_bridge.adb.waiting import Signal
from builder_bridge.errors import BridgeError, PhoneLost, ProtocolFault, ServiceRefused, StreamEnded

log = structlog.get_logger()

PING_SERVICE = "pocketbuild-ping:"
"""No adbd knows it, so each refuses it at once, without starting a process."""
PING_INTERVAL_S = 10.0
MISSES_ALLOWED = 3
SMALL_BYTES = 256
BURST_S = 0.001
"""Small answers that follow each other faster than this, as those to thousands of files do, are
taken in lots; a single one is taken at once."""
OUTPUT_HIGH_WATER_BYTES = 2 << 20
"""A sender waits while more than this lies unsent; keeps the wire full and memory small."""


def take_bytes(buffers: deque[memoryview], limit_bytes: int) -> list[memoryview]:
    """Take views of at most `limit_bytes` together from the queue's front, uncopied."""
    taken = list[memoryview]()
    while buffers and limit_bytes:
        view = buffers.popleft()
        if len(view) > limit_bytes:
            buffers.appendleft(view[limit_bytes:])
            view = view[:limit_bytes]
        taken.append(view)
        limit_bytes -= len(view)
    return taken


class _Stream:
    """One stream of a `WireConnection`."""

    def __init__(self, connection: "WireConnection", stream_id: int) -> None:
        self._connection = connection
        self.stream_id = stream_id
        self.inbox = deque[memoryview]()
        self.is_opened = False
        self.is_ended = False
        self.changed = Signal()

    async def receive(self) -> Buffer:
        while not self.inbox:
            if self.is_ended:
                return b""
            self._connection.check()
            await self.changed.wait()
        data = self.inbox.popleft()
        self._connection.consume(self.stream_id, len(data))
        return data

    async def send(self, *buffers: Buffer) -> None:
        waiting = deque(memoryview(buffer) for buffer in buffers if len(buffer))
        while waiting:
            self._connection.check()
            if self.is_ended:
                raise StreamEnded("The phone ended the stream while bytes were being sent to it.")
            room = self._connection.writable_bytes(self.stream_id)
            if not room:
                await self.changed.wait()
            elif not self._connection.has_output_room:
                await self._connection.drained.wait()
            else:
                self._connection.write(self.stream_id, take_bytes(waiting, room))

    async def close(self) -> None:
        self._connection.close_stream(self.stream_id)


class WireConnection:
    """Speaks ADB itself over a wire; an `AdbConnection`."""

    def __init__(self, protocol: AdbProtocol, greeting: Greeting) -> None:
        self._wire = greeting.wire
        self._protocol = protocol
        self._banner = greeting.banner
        self._streams: dict[int, _Stream] = {}
        self._output_waiting = Signal()
        self._fault: BridgeError | None = None
        self._has_heard = True
        self.drained = Signal()
        self.line_bytes_per_s: float | None = None
        self.key_fingerprint = greeting.key_fingerprint
        self.serial = greeting.wire.name

    @property
    def banner(self) -> Banner:
        """How the phone introduced itself."""
        return self._banner

    @property
    def features(self) -> frozenset[str]:
        """What both sides can do."""
        return self._protocol.features

    async def open(self, service: str, *, window_bytes: int = WINDOW_BYTES) -> AdbStream:
        """Open a stream and wait until the phone has taken or refused it."""
        self.check()
        stream = _Stream(self, self._protocol.open(service, window_bytes))
        self._streams[stream.stream_id] = stream
        self._output_waiting.notify()
        try:
            while not stream.is_opened:
                self.check()
                if stream.is_ended:
                    raise ServiceRefused(
                        f"The phone refused the service {service.partition(':')[0]}.", serial=self.serial
                    )
                await stream.changed.wait()
        except BaseException:
            self.close_stream(stream.stream_id)
            raise
        return stream

    def check(self) -> None:
        """Raise what ended the connection, if it has ended."""
        if self._fault:
            raise type(self._fault)(str(self._fault), serial=self.serial) from self._fault

    @property
    def has_output_room(self) -> bool:
        """Whether a sender may add to what lies unsent."""
        return self._protocol.output_bytes < OUTPUT_HIGH_WATER_BYTES

    def writable_bytes(self, stream_id: int) -> int:
        """Tell how much the phone's credit allows to send."""
        return self._protocol.writable_bytes(stream_id)

    def write(self, stream_id: int, buffers: list[memoryview]) -> None:
        """Queue a packet."""
        self._protocol.write(stream_id, buffers)
        self._output_waiting.notify()

    def consume(self, stream_id: int, size_bytes: int) -> None:
        """Grant the phone the credit of bytes that were taken."""
        self._protocol.consume(stream_id, size_bytes)
        self._wake_writer()

    def close_stream(self, stream_id: int) -> None:
        """End a stream, without waiting for anything."""
        if stream := self._streams.pop(stream_id, None):
            stream.is_ended = True
            stream.changed.notify()
        self._protocol.close(stream_id)
        self._wake_writer()

    async def read(self) -> None:
        """Own the wire's reading half until it ends."""
        small_before_at = -BURST_S
        try:
            while data := await self._wire.receive():
                self._has_heard = True
                is_small = len(data) < SMALL_BYTES
                for event in self._protocol.feed(data):
                    self._dispatch(event)
                    is_small = is_small and isinstance(event, StreamData)  # credit is never kept waiting
                self._wake_writer()
                if is_small:
                    now, before_at = anyio.current_time(), small_before_at
                    small_before_at = now
                    if now - before_at < BURST_S:
                        await anyio.sleep(BURST_S)
            self._end(PhoneLost(f"{self._wire.name} closed the connection."))
        except OSError as error:
            self._end(PhoneLost(f"{self._wire.name} was lost: {error.strerror or error}."))
        except ProtocolFault as fault:
            self._end(fault)

    async def write_out(self) -> None:
        """Own the wire's writing half until it ends."""
        try:
            while True:
                if output := self._protocol.take_output():
                    await self._wire.send(output)
                    self.drained.notify()
                else:
                    await self._output_waiting.wait()
        except OSError as error:
            self._end(PhoneLost(f"{self._wire.name} was lost: {error.strerror or error}."))

    async def watch(self, interval_s: float) -> None:
        """Ask for a sign of life whenever an interval passed without one."""
        unanswered = 0
        while self._has_heard or unanswered < MISSES_ALLOWED:
            if self._has_heard:
                unanswered = 0
            else:
                unanswered += 1
                self._protocol.open(PING_SERVICE)
                self._output_waiting.notify()
            self._has_heard = False
            await anyio.sleep(interval_s)
        silent_s = interval_s * (MISSES_ALLOWED + 1)
        self._end(PhoneLost(f"{self._wire.name} has been silent for {silent_s:.0f} s, pings included."))

    def _wake_writer(self) -> None:
        if self._protocol.output_bytes:
            self._output_waiting.notify()

    def _dispatch(self, event: Event) -> None:
        match event:
            case StreamData(stream_id, data):
                if stream := self._streams.get(stream_id):
                    stream.inbox.append(data)
                    stream.changed.notify()
            case StreamWritable(stream_id):
                if stream := self._streams.get(stream_id):
                    stream.changed.notify()
            case StreamOpened(stream_id):
                if stream := self._streams.get(stream_id):
                    stream.is_opened = True
                    stream.changed.notify()
                else:
                    self._protocol.close(stream_id)
            case StreamClosed(stream_id):
                if stream := self._streams.pop(stream_id, None):
                    stream.is_ended = True
                    stream.changed.notify()
            case Connected() | AuthWanted() | TlsWanted():
                raise ProtocolFault("The phone greeted anew in the middle of a connection.")

    def _end(self, fault: BridgeError) -> None:
        self._fault = self._fault or fault
        log.info("connection.was_lost", serial=self.serial, reason=str(fault))
        self.drained.notify()
        for stream in self._streams.values():
            stream.changed.notify()
