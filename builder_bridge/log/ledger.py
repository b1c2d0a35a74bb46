"""The problems of one log in order, each once, within limits."""

import re

from builder_bridge.log.problem import Problem, Severity, Tool

_DAEMON_NUMBER = re.compile(r"Daemon #\d+")
"""AAPT2's daemons fail alike and are numbered."""

MAX_PROBLEMS = 5_000
"""So many problems of each severity are kept; further ones are counted."""

MAX_KEYS = 100_000
"""So many different problems are told apart; beyond them a repeat counts again."""

MAX_SAID = 1_000
"""So many errors of tools are held against what failure blocks say."""

_REPEATED_WITHOUT_LINE = frozenset({Tool.AAPT2, Tool.MANIFEST})
"""Failure blocks repeat what these say without the line."""

_BLANKS = re.compile(r"\s+")
_Key = tuple[Severity, Tool, str | None, int | None, str]


class Ledger:
    """Collect problems; the same severity, tool, file, line and gist count once."""

    def __init__(self) -> None:
        self._problems: list[Problem] = []
        self._counts = dict.fromkeys(Severity, 0)
        self._keys: set[_Key] = set()
        self._placed: set[_Key] = set()
        self._error_tools: set[Tool] = set()
        self._told = 0
        self.said_by_tools: list[tuple[str, int | None]] = []
        self.left_out = 0

    def add(self, problem: Problem) -> bool:
        """Take a problem in unless it is known already; say whether it was new."""
        gist = _DAEMON_NUMBER.sub("Daemon", problem.gist)
        key = (problem.severity, problem.tool, problem.file, problem.line, gist)
        anywhere = (problem.severity, problem.tool, problem.file, None, gist)
        if key in self._keys or (key == anywhere and problem.file and key in self._placed):
            return False
        if len(self._keys) < MAX_KEYS:
            self._keys.add(key)
            if problem.tool in _REPEATED_WITHOUT_LINE and problem.line is not None:
                self._placed.add(anywhere)
        if problem.severity is Severity.ERROR:
            self._error_tools.add(problem.tool)
            if problem.tool is not Tool.GRADLE and len(self.said_by_tools) < MAX_SAID:
                self.said_by_tools.append((one_line(problem.message), problem.line))
        self._counts[problem.severity] += 1
        if self._counts[problem.severity] > MAX_PROBLEMS:
            self.left_out += 1
            return True
        self._problems.append(problem)
        return True

    def has_error_of(self, tools: frozenset[Tool]) -> bool:
        """Whether one of these tools reported an error."""
        return not self._error_tools.isdisjoint(tools)

    @property
    def has_all_warnings(self) -> bool:
        """Whether no further warning would be kept."""
        return self._counts[Severity.WARNING] >= MAX_PROBLEMS

    @property
    def has_all_errors(self) -> bool:
        """Whether no further error would be kept."""
        return self._counts[Severity.ERROR] >= MAX_PROBLEMS

    def errors(self) -> list[Problem]:
        """Give the errors so far, in the order in which they came."""
        return [problem for problem in self._problems if problem.severity is Severity.ERROR]

    def take_new(self) -> list[Problem]:
        """Give the problems that were added since the last call."""
        new = self._problems[self._told :]
        self._told = len(self._problems)
        return new

    def in_log_order(self) -> tuple[Problem, ...]:
        """Give all problems by the line at which they begin."""
        return tuple(sorted(self._problems, key=lambda problem: problem.log_line))


def one_line(text: str) -> str:
    """Give a text with all runs of blanks and line ends as one blank."""
    return _BLANKS.sub(" ", text)
