"""Which bytes are here, which are missing, and who brings them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder_bridge.ranges import (
    LEAST_SHARE_BYTES,
    MAX_STREAMS,
    Range,
    merge,
    missing,
    read_notes,
    share_out,
    streams_for,
    to_line,
)

SIZE = 300
some_ranges = st.lists(
    st.tuples(st.integers(0, SIZE - 1), st.integers(1, 80)).map(lambda pair: (pair[0], min(SIZE, sum(pair)))),
    max_size=12,
)


def bytes_of(ranges: object) -> set[int]:
    return {at for start, end in ranges for at in range(start, end)}  # type: ignore[attr-defined]


@given(some_ranges)
def test_what_is_here_and_what_is_missing_are_the_whole_file(held: list[Range]) -> None:
    gaps = missing(held, SIZE)
    assert bytes_of(merge(held)) == bytes_of(held)
    assert bytes_of(gaps) == set(range(SIZE)) - bytes_of(held)
    assert gaps == merge(gaps), "in order, apart, none empty"


@given(some_ranges, st.integers(1, MAX_STREAMS), st.integers(1, 1 << 20))
def test_shares_hold_each_missing_byte_once(held: list[Range], streams: int, scale: int) -> None:
    gaps = tuple((start * scale, end * scale) for start, end in missing(held, SIZE))
    shares = share_out(gaps, streams)
    assert merge(shares) == gaps
    assert sum(end - start for start, end in shares) == sum(end - start for start, end in gaps)
    assert all(start < end for start, end in shares)
    assert len(shares) <= streams + len(gaps)


@given(some_ranges, st.integers(0, 200), st.binary(max_size=20))
def test_notes_that_were_cut_or_damaged_never_tell_of_more_than_was_written(
    held: list[Range], cut: int, junk: bytes
) -> None:
    notes = b"".join(map(to_line, held))
    assert read_notes(notes, SIZE) == merge(held)
    assert bytes_of(read_notes(notes[:cut], SIZE)) <= bytes_of(held)
    assert bytes_of(read_notes(junk + b"\n" + notes, SIZE)) <= set(range(SIZE))


@pytest.mark.parametrize("notes", [b"5 5\n", b"9 3\n", b"0 301\n", b"-1 5\n", b"0x1 5\n", b"00 5\n", b"1 5"])
def test_a_note_that_cannot_be_right_counts_for_nothing(notes: bytes) -> None:
    assert read_notes(notes, SIZE) == ()


@pytest.mark.parametrize(
    ("size_mb", "has_windows", "round_trip_ms", "streams"),
    [
        (100, True, 20, 1),  # a window fills the line
        (100, False, 1, 1),  # a cable, loopback
        (100, False, 7, 1),
        (100, False, 10, 5),
        (100, False, 20, MAX_STREAMS),
        (18, False, 20, 4),
        (7, False, 20, 1),  # not worth a second process on the phone
        (0, False, 20, 1),
    ],
)
def test_several_streams_are_used_where_one_waits_for_the_round_trip(
    size_mb: int, has_windows: bool, round_trip_ms: float, streams: int
) -> None:
    assert streams_for(size_mb << 20, has_windows, round_trip_ms / 1000) == streams


def test_no_stream_is_begun_for_little() -> None:
    size_bytes = 3 * LEAST_SHARE_BYTES + 1
    assert len(share_out([(0, size_bytes)], MAX_STREAMS)) == 3
    assert share_out([(0, size_bytes)], 1) == ((0, size_bytes),)
    assert share_out([], 4) == ()
