"""A packed log is the log, wherever it is read, and damage is told."""

from collections.abc import Callable

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from builder_bridge.log.frames import FRAME_BYTES, FramesFault, open_packed, pack

LINE = b"> Task :app:compileDebugKotlin UP-TO-DATE\n"
LOG = b"".join(b"%07d " % number + LINE for number in range(50_000))


def reader(packed: bytes) -> Callable[[int, int], bytes]:
    return lambda offset, size: packed[offset : offset + size]


PACKED = b"".join(pack([LOG]))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, len(LOG) + 10), st.integers(0, 3 * FRAME_BYTES))
def test_any_range_of_a_packed_log_is_that_of_the_log(offset: int, size: int) -> None:
    log = open_packed(reader(PACKED), len(PACKED))
    assert log.read(reader(PACKED), offset, size) == LOG[offset : offset + size]


@pytest.mark.parametrize("size", [0, 1, FRAME_BYTES - 1, FRAME_BYTES, FRAME_BYTES + 1])
def test_logs_of_every_size_come_back_whole(size: int) -> None:
    packed = b"".join(pack(LOG[start : min(start + 1000, size)] for start in range(0, size, 1000)))
    log = open_packed(reader(packed), len(packed))
    assert log.size_bytes == size
    assert log.read(reader(packed), 0, size + 1) == LOG[:size]


def test_reading_little_unpacks_little() -> None:
    asked: list[int] = []

    def read_at(offset: int, size: int) -> bytes:
        asked.append(size)
        return PACKED[offset : offset + size]

    log = open_packed(read_at, len(PACKED))
    asked.clear()
    log.read(read_at, FRAME_BYTES + 5, 100)
    assert len(asked) == 1


def test_any_zstd_reads_a_packed_log() -> None:
    with zstandard.ZstdDecompressor().stream_reader(PACKED, read_across_frames=True) as stream:
        assert stream.read() == LOG


@pytest.mark.parametrize("packed", [b"", b"x" * 8, b"x" * 100, PACKED[:-1], PACKED[1:], PACKED + b"\0"])
def test_what_is_no_packed_log_is_refused(packed: bytes) -> None:
    with pytest.raises(FramesFault):
        open_packed(reader(packed), len(packed)).read(reader(packed), 0, 10)


def test_a_damaged_frame_is_told_not_given() -> None:
    damaged = PACKED[:100] + bytes(byte ^ 0xFF for byte in PACKED[100:200]) + PACKED[200:]
    log = open_packed(reader(damaged), len(damaged))
    with pytest.raises(FramesFault, match="frame 0"):
        log.read(reader(damaged), 0, 10)
