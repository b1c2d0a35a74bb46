"""One connection to a phone, shared by any number of streams.

Three tasks own the wire: one reads and hands each stream its bytes, one writes, one watches that
the phone still lives. A stream that nobody reads keeps only itself waiting, by its credit. There
is no limit on silence: a Gradle build may say nothing for an hour. Only when nothing at all has
come for an interval does the watcher ask for a service that does not exist; each answer, even
this refusal, is a sign of life, and the third one missed ends the connection.
"""

from collections.abc import Sequence

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
from builder_bridge.adb.pace import Pace
from builder_bridge.adb.packets import Buffer
from builder_bridge.adb.protocol import WINDOW_BYTES, AdbProtocol
from builder_bridge.adb.waiting import Signal, beside
from builder_bridge.adb.wire_stream import WireStream
from builder_bridge.errors import BridgeError, PhoneLost, ProtocolFault, ServiceRefused

log = structlog.get_logger()

PING_SERVICE = "pocketbuild-ping:"
"""No adbd knows it, so each refuses it at once, without starting a process."""
PING_INTERVAL_S = 10.0
MISSES_ALLOWED = 3
LEAST_IN_FLIGHT_BYTES = 2 << 20
FASTEST_BYTES_PER_S = 2e9
"""So much is sent ahead of the phone's acknowledgements that a line of this speed would stay full.

On a quick line more than that would only wait in memory: adbd takes bytes that are still in the
processor's cache with two thirds of the work that it has with 32 MiB waiting."""
LONGEST_ACKNOWLEDGEMENT_S = 0.05
OUTPUT_HIGH_WATER_BYTES = 2 << 20
"""A sender waits while more than this lies unsent; keeps the wire full and memory small."""


class WireConnection:
    """Speaks ADB itself over a wire; an `AdbConnection`."""

    def __init__(self, protocol: AdbProtocol, greeting: Greeting) -> None:
        self._wire = greeting.wire
        self._protocol = protocol
        self._banner = greeting.banner
        self._streams: dict[int, WireStream] = {}
        self._output_waiting = Signal()
        self._unsent: Sequence[Buffer] = ()
        self._may_send_now = True
        self._fault: BridgeError | None = None
        self._has_heard = True
        self._round_trip_s = float("inf")
        self.drained = Signal()
        self.paused = Signal()
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

    @property
    def has_windows(self) -> bool:
        """Whether a stream may have more than one packet under way."""
        return self._protocol.has_windows

    async def open(self, service: str, *, window_bytes: int = WINDOW_BYTES) -> AdbStream:
        """Open a stream and wait until the phone has taken or refused it."""
        self.check()
        asked_at = anyio.current_time()
        stream = WireStream(self, self._protocol.open(service, window_bytes))
        self._streams[stream.stream_id] = stream
        self._send_now()
        try:
            if not await stream.opened():
                name = service.partition(":")[0]
                raise ServiceRefused(f"The phone refused the service {name}.", serial=self.serial)
        except BaseException:
            self.close_stream(stream.stream_id)
            raise
        self._round_trip_s = min(self._round_trip_s, anyio.current_time() - asked_at)
        useful_bytes = int(FASTEST_BYTES_PER_S * self._round_trip_s)
        stream.limit_in_flight(max(LEAST_IN_FLIGHT_BYTES, useful_bytes))
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
        """Tell how much may be sent in one packet."""
        return self._protocol.writable_bytes(stream_id)

    def limit_in_flight(self, stream_id: int, size_bytes: int) -> None:
        """Let no more than about so many bytes of a stream be under way."""
        self._protocol.limit_in_flight(stream_id, size_bytes)

    def write(self, stream_id: int, buffers: list[memoryview]) -> None:
        """Send a packet, or queue it."""
        self._protocol.write(stream_id, buffers)
        self._send_now()

    def consume(self, stream_id: int, size_bytes: int) -> None:
        """Grant the phone the credit of bytes that were taken."""
        self._protocol.consume(stream_id, size_bytes)
        self._send_now()

    def close_stream(self, stream_id: int) -> None:
        """End a stream, without waiting for anything."""
        if stream := self._streams.pop(stream_id, None):
            stream.end()
        self._protocol.close(stream_id)
        self._send_now()

    async def read(self) -> None:
        """Own the wire's reading half until it ends."""
        pace = Pace()
        try:
            while data := await self._wire.receive():
                self._has_heard = True
                may_wait = (
                    self._protocol.has_windows
                )  # else each packet must be answered for the next to come
                for event in self._protocol.feed(data):
                    self._dispatch(event)
                    may_wait = may_wait and isinstance(event, StreamData)
                self._send_now()
                if not may_wait:
                    pace.end_row()
                elif pause_s := pace.pause_s(anyio.current_time(), len(data)):
                    await anyio.sleep(pause_s)
            self._end(PhoneLost(f"{self._wire.name} closed the connection."))
        except OSError as error:
            self._end(PhoneLost(f"{self._wire.name} was lost: {error.strerror or error}."))
        except ProtocolFault as fault:
            self._end(fault)

    async def write_out(self) -> None:
        """Own the wire's writing half, for what cannot go at once, until it ends."""
        try:
            while True:
                while not self._unsent:
                    await self._output_waiting.wait()
                self._may_send_now = False
                await self._wire.send(self._unsent)
                self._unsent, self._may_send_now = (), True
                self.drained.notify()
                self._send_now()
        except OSError as error:
            self._end(PhoneLost(f"{self._wire.name} was lost: {error.strerror or error}."))
        finally:
            self._may_send_now = False

    async def watch(self, interval_s: float) -> None:
        """Ask for a sign of life whenever an interval passed without one; ease senders that are held up."""
        unanswered = 0
        async with beside(self._ease):
            while self._has_heard or unanswered < MISSES_ALLOWED:
                if self._has_heard:
                    unanswered = 0
                else:
                    unanswered += 1
                    self._protocol.open(PING_SERVICE)
                    self._send_now()
                self._has_heard = False
                await anyio.sleep(interval_s)
        silent_s = interval_s * (MISSES_ALLOWED + 1)
        self._end(PhoneLost(f"{self._wire.name} has been silent for {silent_s:.0f} s, pings included."))

    async def _ease(self) -> None:
        """Let more be in flight to a phone that acknowledges rarely, lest each wait for the other."""
        while True:
            held_up = [(stream, stream.pauses) for stream in self._streams.values() if stream.is_held_up]
            if not held_up:
                await self.paused.wait()
                continue
            await anyio.sleep(LONGEST_ACKNOWLEDGEMENT_S)
            for stream, pauses in held_up:
                if stream.is_held_up and stream.pauses == pauses:
                    stream.ease()

    def _send_now(self) -> None:
        """Send what waits; where that would take time, leave it to the writer."""
        if self._unsent or not self._may_send_now or not self._protocol.output_bytes:
            return
        try:
            self._unsent = self._wire.send_now(self._protocol.take_output())
        except OSError as error:
            self._end(PhoneLost(f"{self._wire.name} was lost: {error.strerror or error}."))
        if self._unsent:
            self._output_waiting.notify()

    def _dispatch(self, event: Event) -> None:
        match event:
            case StreamData(stream_id, data):
                if stream := self._streams.get(stream_id):
                    stream.take_data(data)
            case StreamWritable(stream_id):
                if stream := self._streams.get(stream_id):
                    stream.take_credit()
            case StreamOpened(stream_id):
                if stream := self._streams.get(stream_id):
                    stream.take_opening()
                else:
                    self._protocol.close(stream_id)
            case StreamClosed(stream_id):
                if stream := self._streams.pop(stream_id, None):
                    stream.end()
            case Connected() | AuthWanted() | TlsWanted():
                raise ProtocolFault("The phone greeted anew in the middle of a connection.")

    def _end(self, fault: BridgeError) -> None:
        self._fault = self._fault or fault
        log.info("connection.was_lost", serial=self.serial, reason=str(fault))
        self.drained.notify()
        for stream in self._streams.values():
            stream.wake()
