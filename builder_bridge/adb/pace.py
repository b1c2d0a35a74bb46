"""How long to let arriving bytes gather before they are read again.

On a slow line bytes dribble in, and waking up for each few of them would cost more than what is done
with them. So once small arrivals have followed each other for a while, each is given the time in which
a worthwhile portion comes, judged by the rate so far. The first of them, and all that comes after a
silence, are taken at once: a command's answer is never late. Nor is the end of a short row: waiting
grows with the time that the row has lasted.
"""

STREAK_READS = 8
"""So many arrivals in a row are needed before any is kept waiting."""
LONGEST_GAP_S = 0.1
"""After such a silence, what comes next begins a new row."""
WORTHWHILE_BYTES = 512 << 10
LARGE_BYTES = 768 << 10
"""Arrivals of this size need no gathering: the line is quick."""
LONGEST_PAUSE_S = 0.05
LONGEST_SHARE = 1 / 60
"""No pause is longer than this share of the row so far, but for those of `SHORT_PAUSE_S`."""
SHORT_PAUSE_S = 0.02
TINY_BYTES = 1024
TINY_PAUSE_S = 0.002
"""Arrivals so small are lines of a log or answers that somebody may be waiting for."""
SHORTEST_PAUSE_S = 0.004


class Pace:
    """Watches the arrivals on one wire; the clock is the caller's."""

    def __init__(self) -> None:
        self._reads = 0
        self._bytes = 0
        self._began_s = 0.0
        self._last_s = 0.0

    def end_row(self) -> None:
        """Something came that must not wait for company."""
        self._reads = 0

    def pause_s(self, now_s: float, size_bytes: int) -> float:
        """Note an arrival and tell how long to wait before the next is read; 0 for not at all."""
        is_new = not self._reads or now_s - self._last_s > LONGEST_GAP_S or size_bytes >= LARGE_BYTES
        self._last_s = now_s
        if is_new:
            self._reads, self._bytes, self._began_s = 1, 0, now_s
            return 0.0
        self._reads += 1
        self._bytes += size_bytes
        if self._reads <= STREAK_READS:
            return 0.0
        lasted_s = now_s - self._began_s
        wanted_s = WORTHWHILE_BYTES * lasted_s / max(1, self._bytes)
        if wanted_s < SHORTEST_PAUSE_S:
            return 0.0
        if size_bytes < TINY_BYTES:
            return TINY_PAUSE_S
        return min(wanted_s, LONGEST_PAUSE_S, max(SHORT_PAUSE_S, lasted_s * LONGEST_SHARE))
