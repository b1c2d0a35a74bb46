"""The one door: bytes of a console log in, problems out as they appear, a report at the end.

Most lines of a log say nothing. So blocks of many lines are searched with one automaton for the
marks of any message (linear time, no Python for each line), and only around a mark the log is read
line by line. Which lines are read depends on the lines alone, never on how the bytes were cut.
"""

import re

from builder_bridge.log.kinds import kind_of, kind_of_task
from builder_bridge.log.ledger import Ledger
from builder_bridge.log.lines import Block, BlockSplitter, Transcoder, strip_escapes, sublines
from builder_bridge.log.machine import LineMachine
from builder_bridge.log.marks import NO_MARK, MarkFinder
from builder_bridge.log.prefixes import PrefixLearner
from builder_bridge.log.problem import Kind, LogReport, Outcome, Problem
from builder_bridge.log.task_tracker import TaskTracker

MAX_ECHOES = 20_000
"""So many different lines with a diagnostic are known by heart, to pass over their repeats."""

_STAMP_BYTES = 64
_ECHO_WINDOW_BYTES = 1 << 14
_RECOVERED = re.compile(
    r"Daemon compilation failed|Could not connect to [Kk]otlin|Failed to compile with [Kk]otlin daemon"
)
"""The Kotlin plugin goes on without its daemon; such an error fails no build."""


class LogReader:
    """Read one console log from its bytes; blocks of some 100 KiB are read fastest.

    `feed` gives the problems that have become complete, `close` the whole report. The report does
    not depend on the cuts. Memory does not grow with the log beyond the problems that are kept.
    """

    def __init__(self) -> None:
        self._transcoder = Transcoder()
        self._splitter = BlockSplitter()
        self._ledger = Ledger()
        self._machine = LineMachine(self._ledger)
        self._marks = MarkFinder()
        self._tasks = TaskTracker()
        self._prefixes = PrefixLearner()
        self._echoes: set[bytes] = set()
        self._line_count = 0
        self._left_out = 0
        self._size_bytes = 0

    def feed(self, data: bytes) -> list[Problem]:
        """Read on; give the problems that these bytes completed."""
        self._size_bytes += len(data)
        for block in self._splitter.feed(self._transcoder.feed(data)):
            self._read(block)
        return self._ledger.take_new()

    def close(self) -> LogReport:
        """Read what was left without a line's end, and give the report."""
        for block in self._splitter.feed(self._transcoder.close()):
            self._read(block)
        rest = self._splitter.close()
        if rest:
            self._read(Block(rest + b"\n"))
        self._machine.close(cut_line=self._line_count if rest else None)
        found = self._ledger.in_log_order()
        return LogReport(
            self._machine.outcome,
            tuple(self._machine.failed_tasks),
            self._kind(found),
            found,
            self._ledger.left_out + self._left_out,
            self._machine.duration_text,
            self._line_count,
            self._size_bytes,
        )

    def _read(self, block: Block) -> None:
        data = strip_escapes(block.data)
        self._tasks.enter(data)
        self._prefixes.enter(data)
        self._left_out += self._marks.count_dropped(data, 0)
        marks = self._marks.find(data, 0)
        mark_end = next(marks, NO_MARK)
        position = 0
        while position < len(data):
            while mark_end <= position:
                mark_end = next(marks, NO_MARK)
            if self._machine.is_scanning:
                if mark_end == NO_MARK:
                    break
                start = data.rfind(b"\n", position, mark_end - 1) + 1 or position
                self._line_count += data.count(b"\n", position, start)
                position = start
            end = data.index(b"\n", position)
            self._line_count += 1
            is_echo = self._take(data[position:end], position, is_marked=mark_end <= end)
            position = end + 1
            if is_echo:
                position = self._skip_echoes(data, position)
                marks, mark_end = self._marks.find(data, position), position
            elif self._marks.drop(warnings=self._ledger.has_all_warnings, errors=self._ledger.has_all_errors):
                self._left_out += self._marks.count_dropped(data, position)
                marks, mark_end = self._marks.find(data, position), position
        self._line_count += data.count(b"\n", position)
        self._tasks.leave()
        if not block.ends_line:
            self._line_count -= 1

    def _take(self, raw: bytes, position: int, *, is_marked: bool) -> bool:
        """Give a line to the machine, or say that it only repeats a message that is known."""
        if is_marked and _without_stamp(raw) in self._echoes:
            self._machine.interrupt()
            if self._machine.is_scanning:
                return True

        def task() -> str | None:
            return self._tasks.before(position)

        began = [
            self._machine.take(
                self._prefixes.strip(line, position), self._line_count, task, is_marked=is_marked
            )
            for line in sublines(raw)
        ]
        if began == [True] and len(self._echoes) < MAX_ECHOES:
            self._echoes.add(_without_stamp(raw))
        return False

    def _skip_echoes(self, data: bytes, position: int) -> int:
        """Pass over the lines from here on that are known messages; give where the first other begins."""
        if data[position : data.find(b"\n", position)] not in self._echoes:
            return position
        while position < len(data):
            end = data.rfind(b"\n", position, position + _ECHO_WINDOW_BYTES) + 1
            lines = data[position:end].split(b"\n")[:-1] if end else []
            known = 0
            while known < len(lines) and lines[known] in self._echoes:
                known += 1
            position += sum(map(len, lines[:known])) + known
            self._line_count += known
            if known < len(lines) or not lines:
                break
        return position

    def _kind(self, found: tuple[Problem, ...]) -> Kind | None:
        if self._machine.outcome is Outcome.SUCCESS:
            return None
        errors = [problem for problem in found if problem.severity == "error"]
        lasting = [problem for problem in errors if not _RECOVERED.match(problem.message)]
        if lasting or errors:
            first = (lasting or errors)[0]
            kind = kind_of(first)
            is_silent = kind is Kind.DAEMON or first.gist.startswith("Compilation failed; see")
            return Kind.MEMORY if is_silent and self._machine.is_short_of_memory else kind
        if self._machine.outcome is Outcome.UNKNOWN and not self._machine.failed_tasks:
            return None
        return next((kind_of_task(task) for task in self._machine.failed_tasks), Kind.OTHER)


def _without_stamp(raw: bytes) -> bytes:
    """Give a compiler's line from its letter on, so that a time stamp before it makes it no other line."""
    start = max(raw.find(b"w: ", 0, _STAMP_BYTES), raw.find(b"e: ", 0, _STAMP_BYTES))
    return raw[start:] if start > 0 else raw
