"""Where the lines of logs begin: newline counts per block, kept for the logs that were read last."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from io import BufferedReader

BLOCK_BYTES = 65_536
MAX_KEPT = 64


@dataclass(frozen=True, slots=True)
class LineIndex:
    """`before[i]` is the number of newlines before block i of a log that had `size_bytes`."""

    before: list[int] = field(default_factory=lambda: [0])
    size_bytes: int = 0
    tail: int = 0
    ends_open: bool = False

    @property
    def total(self) -> int:
        """How many lines there are."""
        return self.before[-1] + self.tail + self.ends_open

    def extended(self, file: BufferedReader) -> "LineIndex":
        """Give the index of a log that has grown, by reading what is new of it."""
        before = list(self.before)
        offset = (len(before) - 1) * BLOCK_BYTES
        tail, ends_open, size = 0, self.ends_open, offset
        file.seek(offset)
        while block := file.read(BLOCK_BYTES):
            size += len(block)
            ends_open = not block.endswith(b"\n")
            if len(block) == BLOCK_BYTES:
                before.append(before[-1] + block.count(b"\n"))
            else:
                tail = block.count(b"\n")
        return LineIndex(before, size, tail, ends_open)


class LineIndexes:
    """Indexes by run, for several threads at once.

    A log only grows, but for one that came damaged: it is removed and read from the phone again.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[str, LineIndex] = OrderedDict()
        self._removals = 0
        self._lock = threading.Lock()

    def of(self, run_id: str, size_bytes: int, open_log: Callable[[], BufferedReader]) -> LineIndex:
        """Give the index of a log that has so many bytes now."""
        with self._lock:
            removals, index = self._removals, self._kept.get(run_id) or LineIndex()
        if size_bytes < index.size_bytes:
            index = LineIndex()
        if size_bytes != index.size_bytes:
            with open_log() as file:
                index = index.extended(file)
        with self._lock:
            if self._removals == removals:  # else it may be of a log that is gone
                self._kept[run_id] = index
                self._kept.move_to_end(run_id)
            while len(self._kept) > MAX_KEPT:
                self._kept.popitem(last=False)
        return index

    def forget(self, run_id: str) -> None:
        """Forget a log that was removed, also where a reader is about to keep its index."""
        with self._lock:
            self._removals += 1
            self._kept.pop(run_id, None)
