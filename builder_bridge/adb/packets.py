"""ADB's packets: a header of six little-endian words, then the payload.

The words are command, arg0, arg1, payload length, byte sum, command XOR 0xFFFFFFFF. A payload is
never assembled here: `PacketReader` cuts what it is fed into `Piece`s, so nothing is copied and a
packet may arrive in any number of parts. Only where byte sums are checked is it held back whole.
"""

import struct
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from builder_bridge.errors import ProtocolFault

Buffer = bytes | bytearray | memoryview

CNXN, AUTH, STLS, OPEN, OKAY, WRTE, CLSE = (
    int.from_bytes(name, "little") for name in (b"CNXN", b"AUTH", b"STLS", b"OPEN", b"OKAY", b"WRTE", b"CLSE")
)
HEADER = struct.Struct("<6I")
MAX_PAYLOAD_BYTES = 1 << 20
"""The largest payload that AOSP's own code sends or takes."""
MAX_CONTROL_BYTES = 4096
"""No payload but that of WRTE and OPEN is larger, even in the oldest adbd."""


@dataclass(frozen=True, slots=True)
class Packet:
    """A packet's header."""

    command: int
    arg0: int
    arg1: int
    size_bytes: int
    byte_sum: int

    @property
    def name(self) -> str:
        """The command as people know it, for messages."""
        name = self.command.to_bytes(4, "little")
        return name.decode() if name.isalpha() and name.isascii() else f"{self.command:#010x}"


@dataclass(frozen=True, slots=True)
class Piece:
    """Some bytes of a payload, as a view into what was fed; an empty payload has one empty piece."""

    packet: Packet
    data: memoryview
    is_last: bool


def encode_packet(command: int, arg0: int, arg1: int, *payload: Buffer, with_sum: bool) -> list[Buffer]:
    """Give the buffers of one packet, the payload uncopied; old phones want the sum of its bytes."""
    size_bytes = sum(map(len, payload))
    byte_sum = sum(map(sum, payload)) & 0xFFFFFFFF if with_sum else 0
    header = HEADER.pack(command, arg0, arg1, size_bytes, byte_sum, command ^ 0xFFFFFFFF)
    return [header, *payload]


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


def skip_bytes(buffers: deque[memoryview], size_bytes: int) -> None:
    """Drop so many bytes, which the kernel has dealt with, from the queue's front."""
    while buffers and size_bytes >= len(buffers[0]):
        size_bytes -= len(buffers.popleft())
    if size_bytes:
        buffers[0] = buffers[0][size_bytes:]


class PacketReader:
    """Cuts the wire's bytes into pieces of packets. Raises `ProtocolFault` on damaged headers and sums."""

    def __init__(self, max_payload_bytes: int = MAX_PAYLOAD_BYTES) -> None:
        self._max_payload_bytes = max_payload_bytes
        self._head = bytearray()
        self._packet: Packet | None = None
        self._left = 0
        self._unchecked = bytearray()
        self.checks_sums = False

    def feed(self, data: Buffer) -> Iterator[Piece]:
        """Give the pieces in `data`; one packet may go on in the next call."""
        view, position = memoryview(data), 0
        while position < len(view):
            if self._packet is None:
                part = view[position : position + HEADER.size - len(self._head)]
                self._head += part
                position += len(part)
                if len(self._head) < HEADER.size:
                    return
                self._packet = self._read_header()
                self._left = self._packet.size_bytes
            part = view[position : position + self._left]
            position += len(part)
            self._left -= len(part)
            packet, is_last = self._packet, not self._left
            if is_last:
                self._packet = None
            if self.checks_sums:
                yield from self._checked(packet, part, is_last)
            elif part or is_last:
                yield Piece(packet, part, is_last)

    def _checked(self, packet: Packet, part: memoryview, is_last: bool) -> Iterator[Piece]:
        """Hold a payload back until its sum is known to be right."""
        self._unchecked += part
        if is_last:
            payload = bytes(self._unchecked)
            self._unchecked.clear()
            if sum(payload) & 0xFFFFFFFF != packet.byte_sum:
                raise ProtocolFault(f"The byte sum of a {packet.name} packet is wrong.")
            yield Piece(packet, memoryview(payload), is_last)

    def _read_header(self) -> Packet:
        *words, magic = HEADER.unpack(self._head)
        self._head.clear()
        packet = Packet(*words)
        if packet.command ^ magic != 0xFFFFFFFF:
            raise ProtocolFault(f"A packet's header is damaged: {packet.name} with magic {magic:#010x}.")
        limit = self._max_payload_bytes if packet.command in (WRTE, OPEN) else MAX_CONTROL_BYTES
        if packet.size_bytes > limit:
            raise ProtocolFault(f"A {packet.name} packet claims {packet.size_bytes} bytes, over {limit}.")
        return packet
