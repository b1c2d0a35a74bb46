"""The digest of a build as values: what failed, whose fault it is, and what to look at first."""

from dataclasses import dataclass
from enum import StrEnum

from builder_bridge.log.problem import Kind, Outcome, Problem


class Fault(StrEnum):
    """Whose fault a failed build is, so that nobody mends code for a full disk."""

    YOUR_CODE = "your_code"
    PROJECT_SETUP = "project_setup"
    THIS_PHONE = "this_phone"
    NETWORK_OR_OFFLINE = "network_or_offline"


@dataclass(frozen=True, slots=True)
class BuildFacts:
    """What the log itself does not tell about its build; anything may be unknown."""

    build_id: str | None = None
    phone: str | None = None
    duration_s: float | None = None
    spent: str | None = None


RUNNING = "RUNNING"
"""The outcome of a task that had begun and not ended when the log stops."""


@dataclass(frozen=True, slots=True)
class TaskRun:
    """One Gradle task of a build: its path, how it ended, and how long it took."""

    path: str
    outcome: str
    duration_s: float | None = None


@dataclass(frozen=True, slots=True)
class RootCause:
    """An error to mend, and the errors that will go with it.

    `path` is the file in the workspace, None where it lies outside; `source` holds the lines
    around the place as (number, text).
    """

    problem: Problem
    followers: tuple[Problem, ...] = ()
    path: str | None = None
    source: tuple[tuple[int, str], ...] = ()

    @property
    def identity(self) -> str:
        """Names the cause across builds; line numbers move, so they are no part of it."""
        problem = self.problem
        return f"{problem.tool}|{self.path or problem.file or ''}|{problem.gist}"

    @property
    def place(self) -> str | None:
        """Where to look, as `path:line:column`."""
        if self.path is None:
            return self.problem.place
        numbers = (self.problem.line, self.problem.column)
        return ":".join([self.path, *(str(number) for number in numbers if number is not None)])


@dataclass(frozen=True, slots=True)
class PreviousBuild:
    """The last build of the same workspace, as far as it is compared."""

    build_id: str | None
    causes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Changes:
    """What changed since the previous build of the workspace."""

    previous: PreviousBuild
    causes_before: int
    causes_after: int
    solved: int
    new: int
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Digest:
    """What a person or a model must know of one build, root causes first."""

    facts: BuildFacts
    outcome: Outcome
    kind: Kind | None
    fault: Fault | None
    failed_tasks: tuple[str, ...]
    causes: tuple[RootCause, ...]
    error_count: int
    warning_count: int
    advice: tuple[str, ...] = ()
    changes: Changes | None = None
    cheaper_check: TaskRun | None = None
    duration_text: str | None = None
    problems_left_out: int = 0
    log_line_count: int = 0
