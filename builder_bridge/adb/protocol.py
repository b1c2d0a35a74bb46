"""The ADB wire protocol as a value machine: bytes in, events out; calls in, bytes out.

One connection carries many streams, each named by an id on either side. `AdbProtocol` speaks the
host's half:

    feed(bytes) -> events            greet() open() write() consume() close()
    take_output() -> buffers         begin_tls() sign() offer_key()

Credit comes in two kinds. Old phones allow one packet in flight and answer each with OKAY. Phones
with `delayed_ack` (Android 14) grant a window in bytes, which keeps a long line full: OPEN carries
our own window, OKAY grants more.

A peer that breaks the protocol raises `ProtocolFault`; the protocol must not be used after that.
Source of the rules: AOSP `packages/modules/adb/protocol.txt` and the behaviour of adbd 34.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from builder_bridge.adb.events import (
    FEATURES,
    AuthWanted,
    Banner,
    Connected,
    Event,
    StreamClosed,
    StreamData,
    StreamOpened,
    StreamWritable,
    TlsWanted,
    parse_banner,
)
from builder_bridge.adb.packets import (
    AUTH,
    CLSE,
    CNXN,
    MAX_CONTROL_BYTES,
    MAX_PAYLOAD_BYTES,
    OKAY,
    OPEN,
    STLS,
    WRTE,
    Buffer,
    Packet,
    PacketReader,
    Piece,
    encode_packet,
)
from builder_bridge.errors import ProtocolFault

VERSION_WITH_SUM = 0x01000000
VERSION_WITHOUT_SUM = 0x01000001
STLS_VERSION = 0x01000000
AUTH_TOKEN, AUTH_SIGNATURE, AUTH_PUBLIC_KEY = 1, 2, 3

WINDOW_BYTES = 32 << 20
"""What a phone may send on one stream before we have taken it."""
READ_AHEAD_BYTES = 4 << 20
"""Without `delayed_ack`: how much may wait in a stream before its packets stay unanswered."""


@dataclass(slots=True)
class _Stream:
    """`credit` counts bytes with `delayed_ack`, else packets; `waiting_bytes` and below is what came.

    Once more than `max_in_flight_bytes` are sent and not acknowledged, the stream pauses until half
    of them are.
    """

    window_bytes: int
    remote_id: int = 0
    credit: int = 0
    in_flight_bytes: int = 0
    max_in_flight_bytes: int = WINDOW_BYTES
    is_paused: bool = False
    waiting_bytes: int = 0
    ungranted_bytes: int = 0
    unanswered_packets: int = 0
    is_mid_packet: bool = False
    is_given_up: bool = False


class AdbProtocol:
    """The host's half of one connection; see the module's text. Not for use from two threads."""

    def __init__(self, features: Iterable[str] = FEATURES) -> None:
        self._own_features = tuple(features)
        self._reader = PacketReader()
        self._has_sums = True
        self.has_windows = False
        self._body = bytearray()
        self._streams: dict[int, _Stream] = {}
        self._last_id = 0
        self._output: list[Buffer] = []
        self._output_bytes = 0
        self.max_send_bytes = MAX_CONTROL_BYTES
        self.banner: Banner | None = None

    @property
    def features(self) -> frozenset[str]:
        """What both sides can do; nothing before the phone has greeted."""
        return self.banner.features & set(self._own_features) if self.banner else frozenset()

    @property
    def output_bytes(self) -> int:
        """How much `take_output` would give."""
        return self._output_bytes

    def greet(self) -> None:
        """Introduce this host; the phone answers CNXN, AUTH or STLS."""
        banner = b"host::features=" + ",".join(self._own_features).encode()
        self._send(CNXN, VERSION_WITHOUT_SUM, MAX_PAYLOAD_BYTES, banner)

    def sign(self, signature: bytes) -> None:
        """Answer `AuthWanted` with the token's signature."""
        self._send(AUTH, AUTH_SIGNATURE, 0, signature)

    def offer_key(self, public_key: bytes) -> None:
        """Answer `AuthWanted` with our public key: the phone asks its owner."""
        self._send(AUTH, AUTH_PUBLIC_KEY, 0, public_key + b"\0")

    def begin_tls(self) -> None:
        """Answer `TlsWanted`; these are the last bytes outside TLS."""
        self._send(STLS, STLS_VERSION, 0)

    def open(self, service: str, window_bytes: int = WINDOW_BYTES) -> int:
        """Ask for a service and give the stream's id; `StreamOpened` or `StreamClosed` follows."""
        self._last_id += 1
        self._streams[self._last_id] = _Stream(window_bytes)
        self._send(OPEN, self._last_id, window_bytes if self.has_windows else 0, service.encode() + b"\0")
        return self._last_id

    def limit_in_flight(self, stream_id: int, size_bytes: int) -> None:
        """Let no more than about so many bytes be under way, unacknowledged, where windows are in force."""
        if stream := self._streams.get(stream_id):
            stream.max_in_flight_bytes = size_bytes
            stream.is_paused = self.has_windows and stream.in_flight_bytes > size_bytes

    def writable_bytes(self, stream_id: int) -> int:
        """Tell how many bytes one `write` may carry now; none means wait for `StreamWritable`."""
        stream = self._streams.get(stream_id)
        if stream is None or not stream.remote_id:
            return 0
        if stream.is_paused:
            return 0
        allowed = stream.credit if self.has_windows else stream.credit * self.max_send_bytes
        return max(0, min(allowed, self.max_send_bytes))

    def write(self, stream_id: int, buffers: Sequence[Buffer]) -> None:
        """Send the buffers as one packet of at most `writable_bytes`; they must not change until sent."""
        stream = self._streams[stream_id]
        size_bytes = sum(map(len, buffers))
        assert 0 < size_bytes <= self.writable_bytes(stream_id), "written without credit"
        stream.credit -= size_bytes if self.has_windows else 1
        if self.has_windows:
            stream.in_flight_bytes += size_bytes
            stream.is_paused = stream.in_flight_bytes > stream.max_in_flight_bytes
        self._send(WRTE, stream_id, stream.remote_id, *buffers)

    def consume(self, stream_id: int, size_bytes: int) -> None:
        """Say that so many bytes of `StreamData` are dealt with, which grants the phone new credit."""
        stream = self._streams.get(stream_id)
        if stream is None:
            return
        stream.waiting_bytes -= size_bytes
        stream.ungranted_bytes += size_bytes
        self._grant(stream_id, stream)

    def close(self, stream_id: int) -> None:
        """End a stream from our side; what still arrives for it is dropped. Closing twice is harmless."""
        stream = self._streams.get(stream_id)
        if stream is None:
            return
        if not stream.remote_id:
            stream.is_given_up = True
            return
        del self._streams[stream_id]
        self._send(CLSE, stream_id, stream.remote_id)

    def take_output(self) -> list[Buffer]:
        """Give the bytes to send, in order, and forget them."""
        output, self._output, self._output_bytes = self._output, [], 0
        return output

    def feed(self, data: Buffer) -> Iterator[Event]:
        """Take bytes from the phone, cut anywhere, and give what they mean; go through to the end.

        Raises `ProtocolFault` on what ADB does not allow, after the events of all that came before.
        """
        for piece in self._reader.feed(data):
            if piece.packet.command in (OKAY, WRTE, CLSE):
                if self.banner:  # on USB, packets of an earlier session may come before the greeting
                    yield from self._take_stream_piece(piece)
            else:
                self._body += piece.data
                if piece.is_last:
                    body = bytes(self._body)
                    self._body.clear()
                    yield from self._take_packet(piece.packet, body)

    def _send(self, command: int, arg0: int, arg1: int, *payload: Buffer) -> None:
        packet = encode_packet(command, arg0, arg1, *payload, with_sum=self._has_sums)
        self._output += packet
        self._output_bytes += sum(map(len, packet))

    def _take_packet(self, packet: Packet, body: bytes) -> Iterator[Event]:
        match packet.command:
            case command if command == CNXN and not self.banner:
                yield self._greeted(packet, body)
            case command if command == AUTH and packet.arg0 == AUTH_TOKEN and not self.banner:
                yield AuthWanted(body)
            case command if command == STLS and not self.banner:
                yield TlsWanted()
            case command if command == OPEN and self.banner:
                self._send(CLSE, 0, packet.arg0)
            case _:
                raise ProtocolFault(f"A {packet.name} packet came where ADB allows none.")

    def _greeted(self, packet: Packet, body: bytes) -> Connected:
        version, max_payload_bytes = packet.arg0, packet.arg1
        if version < VERSION_WITH_SUM or not max_payload_bytes:
            raise ProtocolFault(
                f"The phone offers version {version:#x} and {max_payload_bytes}-byte packets."
            )
        self.banner = parse_banner(body)
        self._has_sums = self._reader.checks_sums = version == VERSION_WITH_SUM
        self.has_windows = "delayed_ack" in self.features
        self.max_send_bytes = min(max_payload_bytes, MAX_PAYLOAD_BYTES)
        return Connected(self.banner)

    def _take_stream_piece(self, piece: Piece) -> Iterator[Event]:
        packet = piece.packet
        stream = self._stream_for(packet)
        if stream is None:
            return
        if packet.command == WRTE:
            yield from self._take_data(stream, piece)
        elif packet.command == OKAY:
            self._body += piece.data
            if piece.is_last:
                yield from self._take_credit(stream, packet)
        elif piece.is_last:
            del self._streams[packet.arg1]
            if stream.remote_id:
                self._send(CLSE, packet.arg1, stream.remote_id)
            if not stream.is_given_up:
                yield StreamClosed(packet.arg1)

    def _stream_for(self, packet: Packet) -> _Stream | None:
        """Find the stream a packet is for; None if we have ended it, a fault if it never was."""
        if not 0 < packet.arg1 <= self._last_id:
            raise ProtocolFault(f"A {packet.name} packet is for stream {packet.arg1}, never opened.")
        stream = self._streams.get(packet.arg1)
        is_strange = stream and stream.remote_id and packet.arg0 not in (0, stream.remote_id)
        if is_strange or (not packet.arg0 and packet.command != CLSE):
            raise ProtocolFault(f"A {packet.name} for stream {packet.arg1} comes from stream {packet.arg0}.")
        return stream

    def _take_data(self, stream: _Stream, piece: Piece) -> Iterator[Event]:
        stream_id = piece.packet.arg1
        if not stream.remote_id:
            raise ProtocolFault(f"Stream {stream_id} carried data before it was opened.")
        stream.waiting_bytes += len(piece.data)
        if stream.waiting_bytes > stream.window_bytes + MAX_PAYLOAD_BYTES:
            raise ProtocolFault(f"Stream {stream_id} overran its window of {stream.window_bytes} bytes.")
        if piece.data:
            yield StreamData(stream_id, piece.data)
        stream.is_mid_packet = not piece.is_last
        if piece.is_last:
            stream.unanswered_packets += 1
            self._grant(stream_id, stream)

    def _take_credit(self, stream: _Stream, packet: Packet) -> Iterator[Event]:
        granted, self._body = bytes(self._body), bytearray()
        if len(granted) != (4 if self.has_windows else 0):
            raise ProtocolFault(f"The OKAY of stream {packet.arg1} carries {len(granted)} bytes of credit.")
        credit = int.from_bytes(granted, "little", signed=True) if self.has_windows else 1
        stream.credit += credit
        stream.in_flight_bytes = max(0, stream.in_flight_bytes - credit)
        if stream.in_flight_bytes * 2 <= stream.max_in_flight_bytes:
            stream.is_paused = False
        is_first, stream.remote_id = not stream.remote_id, packet.arg0
        if stream.is_given_up:
            self.close(packet.arg1)
        elif is_first:
            yield StreamOpened(packet.arg1)
        elif not stream.is_paused:
            yield StreamWritable(packet.arg1)

    def _grant(self, stream_id: int, stream: _Stream) -> None:
        if not self.has_windows:
            while stream.unanswered_packets and stream.waiting_bytes < min(
                READ_AHEAD_BYTES, stream.window_bytes
            ):
                stream.unanswered_packets -= 1
                self._send(OKAY, stream_id, stream.remote_id)
        elif not stream.is_mid_packet and stream.ungranted_bytes >= max(1, stream.window_bytes // 8):
            self._send(OKAY, stream_id, stream.remote_id, struct.pack("<i", stream.ungranted_bytes))
            stream.ungranted_bytes = 0
