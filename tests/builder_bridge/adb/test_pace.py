"""When arriving bytes are left to gather, by a clock of our own."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder_bridge.adb.pace import (
    LARGE_BYTES,
    LONGEST_PAUSE_S,
    LONGEST_SHARE,
    SHORT_PAUSE_S,
    STREAK_READS,
    TINY_PAUSE_S,
    WORTHWHILE_BYTES,
    Pace,
)


def arrive(pace: Pace, count: int, size_bytes: int, every_s: float, start_s: float = 0.0) -> list[float]:
    return [pace.pause_s(start_s + number * every_s, size_bytes) for number in range(count)]


def test_the_first_arrivals_are_never_kept_waiting() -> None:
    assert arrive(Pace(), STREAK_READS, 100, 0.001) == [0.0] * STREAK_READS


def test_a_slow_line_is_given_the_time_for_a_worthwhile_portion() -> None:
    bytes_per_s = 30e6
    pause_s = arrive(Pace(), 20, 20_000, 20_000 / bytes_per_s)[-1]
    assert abs(pause_s - WORTHWHILE_BYTES / bytes_per_s) < 0.001


def test_a_very_slow_line_is_not_waited_for_longer_than_a_moment() -> None:
    assert arrive(Pace(), 200, 2000, 0.03)[-1] == LONGEST_PAUSE_S


def test_a_short_row_is_not_made_longer_by_much() -> None:
    assert arrive(Pace(), 20, 2000, 0.03)[-1] == SHORT_PAUSE_S
    lasted_s = 2.4
    assert arrive(Pace(), 41, 2000, lasted_s / 40)[-1] == pytest.approx(lasted_s * LONGEST_SHARE)


def test_single_lines_wait_for_a_moment_only() -> None:
    assert arrive(Pace(), 20, 60, 0.003)[-1] == TINY_PAUSE_S


def test_a_quick_line_is_read_without_a_pause() -> None:
    assert set(arrive(Pace(), 50, 60_000, 60_000 / 500e6)) == {0.0}
    assert set(arrive(Pace(), 50, LARGE_BYTES, 0.02)) == {0.0}


def test_after_a_silence_everything_is_taken_at_once_again() -> None:
    pace = Pace()
    assert arrive(pace, 20, 1000, 0.01)[-1] > 0
    assert arrive(pace, STREAK_READS, 1000, 0.01, start_s=5.0) == [0.0] * STREAK_READS


def test_something_urgent_ends_the_row() -> None:
    pace = Pace()
    assert arrive(pace, 20, 1000, 0.01)[-1] > 0
    pace.end_row()
    assert pace.pause_s(0.2, 1000) == 0.0


@given(st.lists(st.tuples(st.floats(0, 0.1), st.integers(1, 1 << 20))))
def test_no_pause_is_negative_or_long(arrivals: list[tuple[float, int]]) -> None:
    pace, now_s = Pace(), 0.0
    for later_s, size_bytes in arrivals:
        now_s += later_s
        assert 0 <= pace.pause_s(now_s, size_bytes) <= LONGEST_PAUSE_S
