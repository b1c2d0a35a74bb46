"""A finished log, packed small but still readable anywhere: zstd in frames with a table of them.

The form is zstd's seekable format, version 0.1.0 (`zstd_seekable_compression_format.md`): ordinary
frames, so that `zstd -d` reads the file, and a skippable frame at the end that lists their sizes.
"""

import bisect
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import zstandard

FRAME_BYTES = 1 << 20
"""So much of the log goes into one frame; reading anywhere unpacks at most two frames more than asked."""

MAX_FRAMES = 1 << 20
_LEVEL = 3
_SKIPPABLE_MAGIC = 0x184D2A5E
_TABLE_MAGIC = 0x8F92EAB1
_FOOTER_BYTES = 9
_ENTRY_BYTES = 8

ReadAt = Callable[[int, int], bytes]
"""Gives bytes of the packed log: (offset, size) → data."""


class FramesFault(ValueError):
    """The packed log is damaged or none of ours; the log itself may still lie elsewhere."""


def pack(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Pack a log that comes in chunks of any size; give the packed bytes in order."""
    compressor = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True)
    sizes: list[tuple[int, int]] = []
    for block in _blocks(chunks):
        frame = compressor.compress(block)
        sizes.append((len(frame), len(block)))
        yield frame
    entries = b"".join(struct.pack("<II", *pair) for pair in sizes)
    footer = struct.pack("<IBI", len(sizes), 0, _TABLE_MAGIC)
    yield struct.pack("<II", _SKIPPABLE_MAGIC, len(entries) + len(footer)) + entries + footer


def _blocks(chunks: Iterable[bytes]) -> Iterator[bytes]:
    held = bytearray()
    for chunk in chunks:
        held += chunk
        whole = len(held) - len(held) % FRAME_BYTES
        for start in range(0, whole, FRAME_BYTES):
            yield bytes(held[start : start + FRAME_BYTES])
        del held[:whole]
    if held:
        yield bytes(held)


@dataclass(frozen=True, slots=True)
class PackedLog:
    """The table of a packed log; `starts` and `packed_starts` have one more entry than there are frames."""

    starts: tuple[int, ...]
    packed_starts: tuple[int, ...]

    @property
    def size_bytes(self) -> int:
        """The size of the log as it was before packing."""
        return self.starts[-1]

    def read(self, read_at: ReadAt, offset: int, size_bytes: int) -> bytes:
        """Give a range of the log; beyond its end there is nothing. Raises FramesFault for damage."""
        end = min(offset + size_bytes, self.size_bytes)
        if offset < 0 or offset >= end:
            return b""
        first = bisect.bisect_right(self.starts, offset) - 1
        last = bisect.bisect_left(self.starts, end)
        data = b"".join(self._frame(read_at, index) for index in range(first, last))
        return data[offset - self.starts[first] : end - self.starts[first]]

    def _frame(self, read_at: ReadAt, index: int) -> bytes:
        begin, end = self.packed_starts[index], self.packed_starts[index + 1]
        expected = self.starts[index + 1] - self.starts[index]
        frame = read_at(begin, end - begin)
        try:
            if zstandard.frame_content_size(frame) != expected:
                raise FramesFault(f"frame {index} of the packed log does not hold {expected} bytes")
            return zstandard.ZstdDecompressor().decompress(frame)
        except zstandard.ZstdError as fault:
            raise FramesFault(f"frame {index} of the packed log is damaged: {fault}") from fault


def open_packed(read_at: ReadAt, packed_bytes: int) -> PackedLog:
    """Read the table at the end of a packed log; raises FramesFault where there is none."""
    footer = read_at(max(0, packed_bytes - _FOOTER_BYTES), _FOOTER_BYTES)
    if len(footer) < _FOOTER_BYTES:
        raise FramesFault(f"a packed log of {packed_bytes} bytes has no table")
    count, descriptor, magic = struct.unpack("<IBI", footer)
    table_bytes = count * _ENTRY_BYTES
    start = packed_bytes - _FOOTER_BYTES - table_bytes
    if magic != _TABLE_MAGIC or descriptor or count > MAX_FRAMES or start < 8:
        raise FramesFault("the packed log has no table of frames at its end")
    entries = read_at(start, table_bytes)
    starts, packed_starts = [0], [0]
    for packed, size in struct.iter_unpack("<II", entries):
        packed_starts.append(packed_starts[-1] + packed)
        starts.append(starts[-1] + size)
    if packed_starts[-1] != start - 8 or any(b - a > FRAME_BYTES for a, b in pairwise(starts)):
        raise FramesFault("the table of the packed log does not fit its frames")
    return PackedLog(tuple(starts), tuple(packed_starts))
