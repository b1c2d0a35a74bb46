"""Which bytes of a file are here, which are missing, and how the missing ones are shared out.

What is here is noted beside the file as lines `START END`, END not included, each written once its
bytes are on the disk. A line cut short by a crash is left out, and lines may repeat or overlap.
"""

import math
import re
from collections.abc import Iterable, Sequence

Range = tuple[int, int]
"""From the first byte to before the last; never empty."""

_LINE = re.compile(rb"(0|[1-9][0-9]{0,18}) ([1-9][0-9]{0,18})\n")

WINDOWLESS_ROUND_TRIP_S = 0.008
"""Below it a stream without a window brings 25 MB/s or more, and further ones cost more than they bring."""
WINDOWLESS_BYTES = 200 << 10
"""What adbd sends of a pipe in one packet, and so in one round trip."""
QUICK_LINE_BYTES_PER_S = 100e6
"""Streams beyond what fills a line of this speed would only share it."""
LEAST_SHARE_BYTES = 4 << 20
MAX_STREAMS = 8


def merge(ranges: Iterable[Range]) -> tuple[Range, ...]:
    """Give the same bytes in order and without overlaps."""
    merged = list[Range]()
    for start, end in sorted(ranges):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        else:
            merged.append((start, end))
    return tuple(merged)


def missing(held: Iterable[Range], size_bytes: int) -> tuple[Range, ...]:
    """Give what a file of this size lacks."""
    gaps, position = list[Range](), 0
    for start, end in merge(held):
        if start > position:
            gaps.append((position, min(start, size_bytes)))
        position = max(position, end)
        if position >= size_bytes:
            break
    if position < size_bytes:
        gaps.append((position, size_bytes))
    return tuple(gaps)


def share_out(gaps: Sequence[Range], streams: int) -> tuple[Range, ...]:
    """Cut gaps so that about so many streams have about as much to bring each, in order."""
    total_bytes = sum(end - start for start, end in gaps)
    share_bytes = max(-(-total_bytes // max(1, streams)), LEAST_SHARE_BYTES if streams > 1 else 1)
    shares = list[Range]()
    for start, end in gaps:
        pieces = max(1, round((end - start) / share_bytes))
        step = -(-(end - start) // pieces)
        shares += [(at, min(at + step, end)) for at in range(start, end, step)]
    return tuple(shares)


def streams_for(size_bytes: int, has_windows: bool, round_trip_s: float) -> int:
    """Say in how many streams so many bytes come soonest.

    Without `delayed_ack` (phones before Android 14, and most adb servers) a stream has one packet under
    way, so what it brings is bounded by the round trip, and each further stream on the same connection
    brings as much again. With windows one stream fills any line, and more only cost time.
    """
    if has_windows or round_trip_s < WINDOWLESS_ROUND_TRIP_S:
        return 1
    useful = min(QUICK_LINE_BYTES_PER_S * round_trip_s / WINDOWLESS_BYTES, MAX_STREAMS)
    return max(1, min(math.ceil(useful), size_bytes // LEAST_SHARE_BYTES))


def to_line(held: Range) -> bytes:
    """Give the note of a range."""
    return b"%d %d\n" % held


def read_notes(notes: bytes, size_bytes: int) -> tuple[Range, ...]:
    """Read which ranges of a file of this size are here; what cannot be right counts for nothing."""
    found = ((int(line[1]), int(line[2])) for line in map(_LINE.fullmatch, notes.splitlines(True)) if line)
    return merge((start, end) for start, end in found if start < end <= size_bytes)
