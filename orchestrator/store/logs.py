"""Logs of runs: one append-only file each, found in by line through newline counts per block.

A log belongs to a run, not to a build: the size of the file is the offset at which the phone's log
is read on, so a second attempt must never find the bytes of the first.

A finished log is packed in frames and reads as before. The packed file gets its name when it is
whole on the disk, and the plain one goes after that: whatever ends the process in between, at least
one is whole, and where both are there they hold the same and the plain one is read.
"""

import bisect
import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader, FileIO
from pathlib import Path

import re2

from orchestrator.bell import Bells
from orchestrator.errors import BadRequest
from orchestrator.store.line_index import BLOCK_BYTES, LineIndex, LineIndexes
from orchestrator.store.packed_file import new_name_of, open_unpacked, pack_file, unpack_file, unpacked_bytes
from orchestrator.store.report_file import read_report_file, write_reports

MAX_LINE_BYTES = 64_000
MAX_PATTERN_CHARS = 1_000
_SEARCH_BYTES = 4 * 2**20


@dataclass(frozen=True, slots=True)
class LinesOfLog:
    """Lines of a log without their ends; `first` counts from 0, `total` is of the whole log so far."""

    first: int
    lines: tuple[str, ...]
    total: int


class LogBook:
    """All logs of one data folder. Reading is for worker threads; appending is cheap enough for any."""

    def __init__(self, folder: Path, bells: Bells) -> None:
        self._folder = folder
        self._bells = bells
        self._indexes = LineIndexes()
        folder.mkdir(parents=True, exist_ok=True)

    def path(self, run_id: str) -> Path:
        """Say where the log of a run lies while it grows, be it there or not."""
        return self._folder / f"{run_id}.log"

    def packed_path(self, run_id: str) -> Path:
        """Say where the log of a run lies once it is packed, be it there or not."""
        return self._folder / f"{run_id}.log.zst"

    def size_bytes(self, run_id: str) -> int:
        """Give the size of the log itself so far, 0 where there is none yet."""
        try:
            return self.path(run_id).stat().st_size
        except FileNotFoundError:
            try:
                return unpacked_bytes(self.packed_path(run_id))
            except FileNotFoundError:
                return 0

    def kept_bytes(self, run_id: str) -> int:
        """Give how much of the disk a run's log, events and reports take."""
        return sum(path.stat().st_size for path in self._kept(run_id) if path.exists())

    def sha256(self, run_id: str) -> str:
        """Hash the whole log."""
        with self._reading(run_id) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def pack(self, run_id: str) -> None:
        """Pack a log that is whole; doing it again changes nothing."""
        path = self.path(run_id)
        if path.exists():
            pack_file(path, self.packed_path(run_id))
            path.unlink()

    @contextmanager
    def appending(self, run_id: str) -> Iterator["LogWriter"]:
        """Open a log for its one writer; a packed one is unpacked first."""
        packed = self.packed_path(run_id)
        if packed.exists():
            if not self.path(run_id).exists():
                unpack_file(packed, self.path(run_id))
            packed.unlink()
        with self.path(run_id).open("ab", buffering=0) as file:
            yield LogWriter(file, run_id, self._bells)

    def read(self, run_id: str, offset: int, size_bytes: int) -> bytes:
        """Give up to so many bytes from an offset on."""
        with self._reading(run_id) as file:
            file.seek(offset)
            return file.read(size_bytes)

    def lines(self, run_id: str, first: int, count: int) -> LinesOfLog:
        """Give lines from `first` on; a negative `first` counts from the end."""
        index = self._index(run_id)
        total = index.total
        start = max(0, total + first) if first < 0 else min(first, total)
        block = max(0, bisect.bisect_right(index.before, start) - 1)
        # A line may begin in a block before the one in which its number is first counted.
        while block > 0 and index.before[block] == start:
            block -= 1
        offset, skip = block * BLOCK_BYTES, start - index.before[block]
        with self._reading(run_id) as file:
            file.seek(offset)
            for _ in range(skip):
                _skip_line(file)
            lines = [_read_line(file) for _ in range(min(count, total - start))]
        return LinesOfLog(start, tuple(lines), total)

    def search(self, run_id: str, pattern: str, max_hits: int) -> tuple[tuple[int, ...], int, int]:
        """Find lines that match a regular expression (RE2: linear time).

        Gives the numbers of the first `max_hits` matching lines, how many match in all, and how
        many lines there are. Raises `BadRequest` for a pattern that RE2 does not take.
        """
        expression = _compile(pattern)
        found: list[int] = []
        hits = line = 0
        with self._reading(run_id) as file:
            while chunk := file.read(_SEARCH_BYTES):
                chunk += file.readline()
                counted_to, last = 0, -1
                for match in expression.finditer(chunk):
                    if match.start() == len(chunk):
                        break
                    line += chunk.count(b"\n", counted_to, match.start())
                    counted_to = match.start()
                    if line != last:
                        hits, last = hits + 1, line
                        if len(found) < max_hits:
                            found.append(line)
                line += chunk.count(b"\n", counted_to)
        return tuple(found), hits, self._index(run_id).total

    def put_events(self, run_id: str, events: bytes) -> None:
        """Keep what Gradle's init script noted of a run, whole or not at all."""
        path = self._events_path(run_id)
        new = new_name_of(path)
        new.write_bytes(events)
        new.replace(path)

    def events(self, run_id: str) -> bytes | None:
        """Give what Gradle's init script noted of a run; None where that is not here."""
        try:
            return self._events_path(run_id).read_bytes()
        except FileNotFoundError:
            return None

    def put_reports(self, run_id: str, reports: Mapping[str, bytes]) -> None:
        """Keep the reports of a run by their names, whole or not at all."""
        path = self._reports_path(run_id)
        new = new_name_of(path)
        write_reports(new, reports)
        new.replace(path)

    def has_reports(self, run_id: str) -> bool:
        """Whether reports of a run are here."""
        return self._reports_path(run_id).exists()

    def reports(self, run_id: str) -> dict[str, bytes]:
        """Give the reports of a run by their names; none where none are here."""
        try:
            return read_report_file(self._reports_path(run_id).read_bytes())
        except FileNotFoundError:
            return {}

    def remove(self, run_id: str) -> None:
        """Delete the log of a run, its events and its reports."""
        for path in self._kept(run_id):
            path.unlink(missing_ok=True)
            new_name_of(path).unlink(missing_ok=True)
        self._indexes.forget(run_id)

    def _kept(self, run_id: str) -> tuple[Path, ...]:
        beside = (self._events_path(run_id), self._reports_path(run_id))
        return (self.path(run_id), self.packed_path(run_id), *beside)

    def _events_path(self, run_id: str) -> Path:
        return self._folder / f"{run_id}.events.ndjson"

    def _reports_path(self, run_id: str) -> Path:
        return self._folder / f"{run_id}.reports.zip"

    def _reading(self, run_id: str) -> BufferedReader:
        try:
            return self.path(run_id).open("rb")
        except FileNotFoundError:
            try:
                return open_unpacked(self.packed_path(run_id))
            except FileNotFoundError:
                return Path("/dev/null").open("rb")

    def _index(self, run_id: str) -> LineIndex:
        return self._indexes.of(run_id, self.size_bytes(run_id), lambda: self._reading(run_id))


class LogWriter:
    """Appends what came from a phone, in order and at the right place."""

    def __init__(self, file: FileIO, run_id: str, bells: Bells) -> None:
        self._file = file
        self._bell = bells.of(f"log:{run_id.rpartition('-')[0]}")
        self.offset = file.seek(0, 2)

    def append(self, offset: int, data: bytes) -> bytes:
        """Write bytes that stand at `offset` in the phone's log; give what was new of them.

        Bytes that are there already are dropped; a gap raises, for it would shift all that follows.
        """
        if offset > self.offset:
            raise ValueError(f"log bytes {self.offset}..{offset} are missing")
        new = data[self.offset - offset :]
        view = memoryview(new)
        while view:
            written = self._file.write(view)
            self.offset += written
            view = view[written:]
        if new:
            self._bell.ring()
        return new


def _compile(pattern: str) -> "re2._Regexp":
    if len(pattern) > MAX_PATTERN_CHARS:
        raise BadRequest(f"the pattern has {len(pattern)} characters, more than {MAX_PATTERN_CHARS}")
    options = re2.Options()
    options.log_errors = False
    options.never_nl = True
    options.max_mem = 16 * 2**20
    try:
        return re2.compile(f"(?m){pattern}".encode(), options)
    except re2.error as fault:
        said = fault.args[0].decode("utf-8", "replace").replace("(?m)", "")
        raise BadRequest(
            f"the pattern is not a regular expression of RE2: {said}",
            code="bad_pattern",
            hint="RE2 has no back-references and no look-around.",
        ) from fault


def _skip_line(file: BufferedReader) -> None:
    while (piece := file.readline(BLOCK_BYTES)) and not piece.endswith(b"\n"):
        pass


def _read_line(file: BufferedReader) -> str:
    piece = file.readline(MAX_LINE_BYTES)
    if piece and not piece.endswith(b"\n"):
        _skip_line(file)
    return piece.rstrip(b"\r\n").decode("utf-8", "replace")
