"""Gradle's failure block as text → what failed, where, and the tree of its causes.

    * Where:
    Build file '/p/app/build.gradle' line: 12

    * What went wrong:
    Execution failed for task ':app:x'.
    > outer cause, further lines indented by two
       > inner cause

Causes are indented by three blanks a level and begin with `> `.
"""

import re
from dataclasses import dataclass, field
from enum import Enum, auto

MAX_BLOCK_LINES = 20_000
"""So many lines of one failure are kept; real ones have a few thousand at most."""


@dataclass(slots=True)
class Cause:
    """One sentence of the tree with its continuation lines, and what it was caused by."""

    lines: list[str]
    log_line: int
    children: list["Cause"] = field(default_factory=list)

    @property
    def gist(self) -> str:
        """The first line that says something."""
        return next((line.strip() for line in self.lines if line.strip()), "")

    @property
    def text(self) -> str:
        """All lines, without empty ones at the ends."""
        return "\n".join(line.rstrip() for line in self.lines).strip()

    def innermost(self) -> "Cause":
        """Give the first innermost cause."""
        return self if not self.children else self.children[0].innermost()


@dataclass(slots=True)
class Failure:
    """One failure as Gradle reported it: the place, the text and the last `Caused by:`."""

    log_line: int
    where: list[str] = field(default_factory=list)
    what: list[tuple[int, str]] = field(default_factory=list)
    last_cause: str | None = None
    is_cut: bool = False
    """The log ended before the text did."""


_TASK_OF_FAILURE = re.compile(r"Execution failed for task '(:?[^'\n]+)'")


def task_of(failure: Failure) -> str | None:
    """Give the task that the failure says it is of."""
    for _, line in failure.what[:5]:
        found = _TASK_OF_FAILURE.match(line.strip())
        if found:
            return found[1]
    return None


class _Section(Enum):
    BETWEEN = auto()
    WHERE = auto()
    WHAT = auto()
    EXCEPTION = auto()


_HEADINGS = {
    "* Where:": _Section.WHERE,
    "* What went wrong:": _Section.WHAT,
    "* Exception is:": _Section.EXCEPTION,
}
_OTHER_HEADING = re.compile(r"\* (?:Try|Get more help|Exception|Build scan)\b|\* For more")
_NEXT_FAILURE = re.compile(r"\d+: \w+(?: \w+)* failed with an exception\.|={20,}$")
_OUTSIDE = re.compile(r"BUILD (?:FAILED|SUCCESSFUL)|> Task :|FAILURE: |> Configure project|CONFIGURE FAILED")
CAUSED_BY = re.compile(r"\s*Caused by: (.+)")
_ONE_WORD = re.compile(r"\s*(?:> *)?(?:\[[^\]\n]*\]? ?)?\S*\s?$")
_GET_HELP = "Get more help at https://help.gradle.org"


class FailureReader:
    """Take the lines from `FAILURE:` or a first heading on, and give one failure at a time."""

    def __init__(self) -> None:
        self._failure: Failure | None = None
        self._section = _Section.BETWEEN

    def take(self, line: str, log_line: int) -> tuple[Failure | None, bool]:
        """Give the failure that this line completes, if any, and whether the block goes on.

        A line that ends the block is not taken; the caller reads it as any other.
        """
        heading = _HEADINGS.get(line.rstrip())
        if heading is not None:
            return self._enter(heading, log_line), True
        if _OUTSIDE.match(line):
            return self._finish(), False
        if _OTHER_HEADING.match(line):
            self._section = _Section.BETWEEN
        elif _NEXT_FAILURE.match(line) and self._section is not _Section.WHERE:
            return self._finish(), True
        elif self._failure is not None:
            self._add(self._failure, line, log_line)
        return None, True

    def begin_text(self, log_line: int) -> None:
        """Begin a failure whose heading is missing, as where an IDE shows it."""
        self._enter(_Section.WHAT, log_line)

    @property
    def task(self) -> str | None:
        """The task that the failure being read is of, once its line has come."""
        return task_of(self._failure) if self._failure else None

    def close(self, cut_line: int | None) -> Failure | None:
        """Give the failure that the log's end left open; `cut_line` is the last line if it has no end.

        Of a cause of which there is one word, perhaps a path or a class, there is no message yet.
        """
        failure = self._failure
        if failure is not None:
            failure.is_cut = self._section in (_Section.WHERE, _Section.WHAT)
            if failure.what and failure.what[-1][0] == cut_line and _ONE_WORD.match(failure.what[-1][1]):
                failure.what.pop()
        return self._finish()

    def _enter(self, section: _Section, log_line: int) -> Failure | None:
        begins = section is _Section.WHERE or (
            section is _Section.WHAT and self._section is not _Section.WHERE
        )
        finished = self._finish() if begins and self._failure is not None else None
        if self._failure is None:
            self._failure = Failure(log_line)
        self._section = section
        return finished

    def _add(self, failure: Failure, line: str, log_line: int) -> None:
        match self._section:
            case _Section.WHERE if line.strip():
                failure.where.append(line.strip())
            case _Section.WHAT if len(failure.what) < MAX_BLOCK_LINES:
                failure.what.append((log_line, line))
            case _Section.EXCEPTION:
                caused = CAUSED_BY.match(line)
                if caused:
                    failure.last_cause = caused[1].strip()

    def _finish(self) -> Failure | None:
        finished, self._failure = self._failure, None
        self._section = _Section.BETWEEN
        return finished if finished is not None and (finished.what or finished.where) else None


_CAUSE = re.compile(r"((?: {3})*)>(?: (.*)|$)")


def cause_tree(lines: list[tuple[int, str]]) -> Cause | None:
    """Build the tree of causes from the lines of `* What went wrong:`; None where there is no text."""
    if not any(text.strip() for _, text in lines):
        return None
    root = Cause([], lines[0][0])
    path = [root]
    for log_line, text in lines:
        found = _CAUSE.match(text)
        depth = len(found[1]) // 3 + 1 if found else 0
        if found and root.lines and depth <= len(path):
            cause = Cause([found[2]] if found[2] else [], log_line)
            del path[depth:]
            path[-1].children.append(cause)
            path.append(cause)
        else:
            indent = 3 * (len(path) - 1) - 1 if len(path) > 1 else 0
            path[-1].lines.append(text[indent:] if not text[:indent].strip() else text.strip())
    return root


_WHERE = re.compile(r"[^'\n]*'([^'\n]+)'(?: line: (\d+))?")


def where_of(failure: Failure) -> tuple[str | None, int | None]:
    """Give the file and the line that `* Where:` names."""
    for line in failure.where:
        found = _WHERE.match(line)
        if found:
            return found[1], int(found[2]) if found[2] else None
    return None, None
