"""Which compression a transfer takes, and the compressors behind one shape.

Compressing pays where the line is slower than the compressor and the content gives in. On a
loopback or USB 3 line, and for APKs, zips and other packed content, it only costs time.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import PurePosixPath
from typing import Any, Protocol

import brotli
import lz4.frame
import zstandard

from builder_bridge.adb.packets import Buffer
from builder_bridge.errors import ProtocolFault

Write = Callable[[Buffer], object]
PORTION_BYTES = 128 << 10
WORTHWHILE_RATIO = 0.8
SAMPLE_BYTES = 64 << 10
PACKED_SUFFIXES = frozenset(
    {".7z", ".aab", ".aar", ".apk", ".br", ".bz2", ".gz", ".jar", ".jpeg", ".jpg"}
    | {".lz4", ".mp4", ".ogg", ".png", ".webp", ".xz", ".zip", ".zst"}
)


class Compressor(Protocol):
    """Makes one file's content small, piece by piece."""

    def add(self, data: Buffer) -> bytes:
        """Take content; gives what is ready."""

    def end(self) -> bytes:
        """Give the rest."""


@dataclass(frozen=True, slots=True)
class Algorithm:
    """One algorithm of sync version 2: its flag there, and up to which speed of the line it pays."""

    name: str
    flag: int
    pays_below_bytes_per_s: float
    new_compressor: Callable[[], Compressor]
    new_pack: Callable[[], Callable[[Buffer], bytes]]
    """Give a function that compresses whole small contents, one after the other; not from two threads."""
    new_decompress: Callable[[Write], Callable[[Buffer], None]]
    """Give a function that takes compressed content and gives what comes of it to `write`, in portions of
    `PORTION_BYTES` or little more, so that a few bytes that swell to gigabytes never lie in memory whole.
    What `write` raises ends it; it raises `ProtocolFault` on damaged content."""

    @property
    def feature(self) -> str:
        """The feature that a phone must name."""
        return f"sendrecv_v2_{self.name}"


class _Zstd:
    def __init__(self) -> None:
        self._inner = zstandard.ZstdCompressor(level=1).compressobj()

    def add(self, data: Buffer) -> bytes:
        return self._inner.compress(data)

    def end(self) -> bytes:
        return self._inner.flush()


class _Lz4:
    def __init__(self) -> None:
        self._inner = lz4.frame.LZ4FrameCompressor()
        self._begin: bytes = self._inner.begin()

    def add(self, data: Buffer) -> bytes:
        begin, self._begin = self._begin, b""
        return begin + bytes(self._inner.compress(data))

    def end(self) -> bytes:
        return self._begin + bytes(self._inner.flush())


class _Brotli:
    def __init__(self) -> None:
        self._inner = brotli.Compressor(quality=0)

    def add(self, data: Buffer) -> bytes:
        return bytes(self._inner.process(data))

    def end(self) -> bytes:
        return bytes(self._inner.finish())


def _zstd_pack() -> Callable[[Buffer], bytes]:
    settings = zstandard.ZstdCompressionParameters.from_level(1, source_size=128 << 10)
    return zstandard.ZstdCompressor(compression_params=settings).compress


def _lz4_pack() -> Callable[[Buffer], bytes]:
    pack: Callable[[Buffer], bytes] = lz4.frame.compress
    return pack


def _brotli_pack() -> Callable[[Buffer], bytes]:
    pack: Callable[[Buffer], bytes] = partial(brotli.compress, quality=0)
    return pack


def _zstd_decompress(write: Write) -> Callable[[Buffer], None]:
    sink: Any = _Sink(write)  # only its `write` is called
    writer = zstandard.ZstdDecompressor().stream_writer(sink, write_size=PORTION_BYTES)

    def decompress(data: Buffer) -> None:
        with _named("zstd", zstandard.ZstdError):
            writer.write(data)

    return decompress


def _lz4_decompress(write: Write) -> Callable[[Buffer], None]:
    inner = lz4.frame.LZ4FrameDecompressor()

    def decompress(data: Buffer) -> None:
        with _named("lz4", RuntimeError, EOFError):
            while portion := inner.decompress(data, max_length=PORTION_BYTES):
                write(portion)
                if inner.eof or inner.needs_input:
                    return
                data = b""

    return decompress


def _brotli_decompress(write: Write) -> Callable[[Buffer], None]:
    inner = brotli.Decompressor()

    def decompress(data: Buffer) -> None:
        with _named("brotli", brotli.error):
            while portion := inner.process(data, output_buffer_limit=PORTION_BYTES):
                write(portion)
                data = b""

    return decompress


class _Sink:
    """What zstd writes to."""

    def __init__(self, write: Write) -> None:
        self.write = write


@contextmanager
def _named(algorithm: str, *faults: type[Exception]) -> Iterator[None]:
    try:
        yield
    except faults as fault:
        raise ProtocolFault(f"The phone sent damaged {algorithm} content: {fault}.") from fault


ZSTD = Algorithm("zstd", 4, 50e6, _Zstd, _zstd_pack, _zstd_decompress)
LZ4 = Algorithm("lz4", 2, 150e6, _Lz4, _lz4_pack, _lz4_decompress)
BROTLI = Algorithm("brotli", 1, 30e6, _Brotli, _brotli_pack, _brotli_decompress)
ALGORITHMS = (ZSTD, LZ4, BROTLI)
"""Android 11 knows brotli alone, later ones all. The limits are of a source tree, on one slow core."""


def choose_algorithm(features: frozenset[str], line_bytes_per_s: float | None) -> Algorithm | None:
    """Pick the algorithm for a line of this measured speed; None where sending plain is quicker."""
    if line_bytes_per_s is None:
        return None
    for algorithm in ALGORITHMS:
        if algorithm.feature in features and line_bytes_per_s < algorithm.pays_below_bytes_per_s:
            return algorithm
    return None


def gives_in(sample: Buffer) -> bool:
    """Tell from a sample whether content gets smaller by a fifth at least."""
    return len(lz4.frame.compress(sample)) < len(sample) * WORTHWHILE_RATIO


def is_packed(path: PurePosixPath) -> bool:
    """Tell by its name whether a file is compressed already."""
    return path.suffix.lower() in PACKED_SUFFIXES
