"""The log line by line: messages, failure blocks, Gradle's own words about tasks and the outcome."""

import re
from enum import Enum, auto

from builder_bridge.log import problems
from builder_bridge.log.causes import CAUSED_BY, Failure, FailureReader, task_of
from builder_bridge.log.explain import Explained, explain, is_repeated
from builder_bridge.log.ledger import Ledger
from builder_bridge.log.message import OpenMessage
from builder_bridge.log.problem import Outcome, Problem
from builder_bridge.log.problems import gradle, native
from builder_bridge.log.problems.finding import HEAD_CHARS, Finding, TaskLookup
from builder_bridge.log.task_tracker import GLUED_END

MARKS = (
    r"FAILURE: Build",
    r"BUILD (?:FAILED|SUCCESSFUL)",
    r"\* (?:What went wrong|Where):",
    r"Execution failed for task '",
    r"from daemon log file",
    r" FAILED",
    r"JVM heap space is exhausted",
    r"garbage collector is thrashing",
    r"Caused by: ",
    r"Failed to load native library:",
    r"The system is out of resources",
)
"""Patterns of the lines that matter although no tool speaks in them."""

_DAEMON_LOG = "from daemon log file"
_BUILD_ENDED = re.compile(r"BUILD (FAILED|SUCCESSFUL)\b(.*)")
_DURATION = re.compile(r" in (\d[\w .]*)")
_TASK_FAILED = re.compile(r"(?:.*> Task (:\S+)|(:\S+)|\s*) FAILED\s*$")
_OUT_OF_MEMORY = re.compile(
    r"There is insufficient memory for the Java|heap space is exhausted|collector is thrashing"
    r"|The system is out of resources"
)
_BLOCK_INDENT = re.compile(r"\s*(?:> )?")
_GLUED = re.compile(rf"(:[\w.:-]+?){GLUED_END}")


class _State(Enum):
    SCANNING = auto()
    MESSAGE = auto()
    FAILURE = auto()
    DAEMON_LOG = auto()


class LineMachine:
    """Take the lines that matter one by one and write what they tell into a ledger."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._state = _State.SCANNING
        self._message: OpenMessage | None = None
        self._last_cause: str | None = None
        self._after_daemon_log = _State.SCANNING
        self._block = FailureReader()
        self._block_task: str | None = None
        self._killed: Problem | None = None
        self._glued_task: str | None = None
        self._launcher: OpenMessage | None = None
        self._launcher_problem: Problem | None = None
        self._deferred: list[Explained] = []
        self.is_short_of_memory = False
        self.failed_tasks: dict[str, None] = {}
        self.outcome = Outcome.UNKNOWN
        self.duration_text: str | None = None

    @property
    def is_scanning(self) -> bool:
        """Whether lines without a mark say nothing now."""
        return self._state is _State.SCANNING

    def interrupt(self) -> None:
        """End an open message: the next line is known and not part of it."""
        if self._state is _State.MESSAGE:
            self._close_message()

    def take(self, line: str, log_line: int, task: TaskLookup, *, is_marked: bool) -> bool:
        """Take one line; say whether it began a message of a tool.

        A line that is not marked says nothing by itself: it can only belong to what came before.
        """
        line = native.without_prefix(line)
        match self._state:
            case _State.DAEMON_LOG:
                self._take_in_daemon_log(line, log_line, task)
                return False
            case _State.FAILURE:
                self._take_in_block(line, log_line, is_marked=is_marked)
                return False
            case _State.MESSAGE:
                return self._take_in_message(line, log_line, task, is_marked=is_marked)
            case _State.SCANNING:
                return self._scan(line, log_line, task)

    def close(self, cut_line: int | None = None) -> None:
        """End what is open, whose last line may be cut; then settle what depended on the whole log."""
        if self._message is not None and self._message.is_only_a_place(cut_line):
            self._message = None
        if self._state is _State.FAILURE:
            self._end_failure(self._block.close(cut_line))
        self._close_message()
        for explained in self._deferred:
            if not self._ledger.has_error_of(explained.points_at):
                self._ledger.add(explained.problem)
        if (
            self._launcher_problem is not None
            and self.outcome is Outcome.UNKNOWN
            and not self._ledger.errors()
        ):
            self._ledger.add(self._launcher_problem)

    def _scan(self, line: str, log_line: int, task: TaskLookup) -> bool:
        head = line[:HEAD_CHARS]
        if head.startswith("FAILURE: Build"):
            self._begin_block()
            self.outcome = Outcome.FAILED
        elif head.startswith(("* What went wrong:", "* Where:")):
            self._begin_block()
            self._take_in_block(line, log_line, is_marked=False)
        elif head.startswith("Execution failed for task '"):
            self._begin_block()
            self._block.begin_text(log_line)
            self._take_in_block(line, log_line, is_marked=False)
        elif _DAEMON_LOG in head:
            self._begin_daemon_log()
        elif not self._take_status(head, task):
            return self._begin_message(line, log_line, task)
        return False

    def _begin_daemon_log(self) -> None:
        """Pass over the end of the daemon's log, which tells of other builds too."""
        self._close_message()
        self._after_daemon_log = self._state
        self._state = _State.DAEMON_LOG

    def _take_in_daemon_log(self, line: str, log_line: int, task: TaskLookup) -> None:
        if "End of the daemon log" in line:
            self._state = self._after_daemon_log
        elif line.startswith(("FAILURE: ", "* Try:")):
            self._state = self._after_daemon_log
            self.take(line, log_line, task, is_marked=True)

    def _take_status(self, head: str, task: TaskLookup) -> bool:
        """Read Gradle's word on the build or on a task; say whether it was one."""
        ended = _BUILD_ENDED.match(head) if head.startswith("BUILD ") else None
        if ended:
            self.outcome = Outcome.SUCCESS if ended[1] == "SUCCESSFUL" else Outcome.FAILED
            duration = _DURATION.match(ended[2])
            self.duration_text = duration[1].strip() if duration else None
            return True
        failed = _TASK_FAILED.match(head) if " FAILED" in head else None
        if failed:
            path = failed[1] or failed[2] or task() or self._glued_task
            if path:
                self.failed_tasks.setdefault(path)
            return True
        return False

    def _begin_message(self, line: str, log_line: int, task: TaskLookup) -> bool:
        glued = _GLUED.match(line) if line.startswith(":") else None
        if glued:
            self._glued_task = glued[1]
            line = line[glued.end() :]
        finding = find(line, task)
        if finding is None:
            self._take_shell(line[:HEAD_CHARS], log_line, glued[1] if glued else None)
            return False
        self._open(OpenMessage(finding, log_line, glued[1] if glued else task()))
        return True

    def _take_shell(self, head: str, log_line: int, task: str | None) -> None:
        caused = CAUSED_BY.match(head)
        if caused:
            self._last_cause = caused[1].strip()
        elif head.startswith("Failed to load native library:"):
            self._last_cause = head.strip()
        if _OUT_OF_MEMORY.search(head):
            self.is_short_of_memory = True
        killed = gradle.match_killed(head)
        if killed and self._killed is None:
            self._killed = OpenMessage(killed, log_line, task).close()
            if self._killed:
                self._ledger.add(self._killed)
        launcher = gradle.match_launcher(head)
        if launcher and self._launcher_problem is None:
            self._launcher = OpenMessage(launcher, log_line, None)
            self._open(self._launcher)

    def _take_in_message(self, line: str, log_line: int, task: TaskLookup, *, is_marked: bool) -> bool:
        finding = find(line, task) if is_marked else None
        if finding is None and self._message is not None and self._message.take(line):
            return False
        self._close_message()
        if finding is None:
            return is_marked and self._scan(line, log_line, task)
        self._open(OpenMessage(finding, log_line, task()))
        return True

    def _open(self, message: OpenMessage) -> None:
        self._message = message
        self._state = _State.MESSAGE

    def _close_message(self) -> None:
        message, self._message = self._message, None
        if self._state is _State.MESSAGE:
            self._state = _State.SCANNING
        problem = message.close() if message else None
        if problem is None:
            return
        if message is self._launcher:
            self._launcher_problem = problem
        else:
            self._ledger.add(problem)

    def _begin_block(self) -> None:
        self._close_message()
        self._block = FailureReader()
        self._block_task = None
        self._state = _State.FAILURE

    def _take_in_block(self, line: str, log_line: int, *, is_marked: bool) -> None:
        """Read a line of a failure block; located diagnostics in it are problems of their own."""
        indent = _BLOCK_INDENT.match(line)
        inner = line[indent.end() :] if indent else line
        is_cause = line.lstrip().startswith("> ")
        if _DAEMON_LOG in inner:
            self._begin_daemon_log()
            return
        finding = find(inner, lambda: self._block_task) if is_marked else None
        if finding is not None:
            self._close_message()
            self._message = OpenMessage(finding, log_line, self._block_task)
            return
        if self._message is not None and not is_cause and self._message.take(line):
            return
        self._close_message()
        failure, goes_on = self._block.take(line, log_line)
        if failure is not None:
            self._end_failure(failure)
        self._block_task = self._block.task or self._block_task
        if not goes_on:
            self._state = _State.SCANNING
            self._scan(line, log_line, lambda: None)

    def _end_failure(self, failure: Failure | None) -> None:
        if failure is None:
            return
        self._close_message()
        self._block_task = None
        failure.last_cause = failure.last_cause or self._last_cause
        task = task_of(failure)
        if task:
            self.failed_tasks.setdefault(task)
        for explained in explain(failure):
            if is_repeated(explained.problem, self._ledger.said_by_tools):
                continue
            if not explained.points_at:
                self._ledger.add(explained.problem)
            elif not self._ledger.has_error_of(explained.points_at):
                self._deferred.append(explained)


def find(line: str, task: TaskLookup) -> Finding | None:
    """Give what a matcher sees at the beginning of a line; the message keeps the whole of it."""
    if len(line) <= HEAD_CHARS:
        return problems.find(line, task)
    finding = problems.find(line[:HEAD_CHARS], task)
    if finding is not None:
        finding.message += line[HEAD_CHARS:]
    return finding
