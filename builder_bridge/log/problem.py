"""Values that a build log yields: problems, what kind of failure it was, and the whole report."""

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How grave a problem is; notes and advice are no problems."""

    ERROR = "error"
    WARNING = "warning"


class Tool(StrEnum):
    """Who reported a problem."""

    KOTLINC = "kotlinc"
    JAVAC = "javac"
    KSP = "ksp"
    KAPT = "kapt"
    AAPT2 = "aapt2"
    MANIFEST = "manifest"
    D8 = "d8"
    R8 = "r8"
    LINT = "lint"
    TEST = "test"
    CLANG = "clang"
    CMAKE = "cmake"
    GRADLE = "gradle"


class Kind(StrEnum):
    """What went wrong first, in one word."""

    COMPILE = "compile"
    ANNOTATION_PROCESSING = "annotation_processing"
    RESOURCE = "resource"
    MANIFEST = "manifest"
    DEPENDENCY = "dependency"
    OFFLINE_DEPENDENCY = "offline_dependency"
    PLUGIN = "plugin"
    SCRIPT = "script"
    TOOLCHAIN = "toolchain"
    SDK = "sdk"
    DEX = "dex"
    SIGNING = "signing"
    NATIVE = "native"
    TEST = "test"
    LINT = "lint"
    MEMORY = "memory"
    DISK = "disk"
    DAEMON = "daemon"
    CANCELLED = "cancelled"
    OTHER = "other"


class Outcome(StrEnum):
    """How Gradle said that the build ended; unknown where the log ends before it said so."""

    SUCCESS = "success"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Problem:
    """One diagnostic of one tool.

    `file` is as the log gives it, without a `file://` prefix; `line` and `column` count from one.
    `message` may have several lines, the first being the gist. `log_line` is the line of the log,
    from one, at which it begins; `task` is the Gradle task it belongs to, where that is known.
    """

    severity: Severity
    tool: Tool
    file: str | None
    line: int | None
    column: int | None
    message: str
    log_line: int
    task: str | None = None

    @property
    def gist(self) -> str:
        """The first line of the message."""
        return self.message.partition("\n")[0]

    @property
    def place(self) -> str | None:
        """File, line and column in the form that editors and terminals can open."""
        if self.file is None:
            return None
        return ":".join(str(part) for part in (self.file, self.line, self.column) if part is not None)


@dataclass(frozen=True, slots=True)
class LogReport:
    """Everything that one console log told.

    `failed_tasks` and `problems` are in the order of the log. `problems_left_out` counts those
    beyond the limit of what is kept; `duration_text` is Gradle's own word for how long it took.
    """

    outcome: Outcome
    failed_tasks: tuple[str, ...]
    kind: Kind | None
    problems: tuple[Problem, ...]
    problems_left_out: int = 0
    duration_text: str | None = None
    line_count: int = 0
    size_bytes: int = 0

    @property
    def errors(self) -> tuple[Problem, ...]:
        """The problems that are errors."""
        return tuple(problem for problem in self.problems if problem.severity is Severity.ERROR)

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """The problems that are warnings."""
        return tuple(problem for problem in self.problems if problem.severity is Severity.WARNING)
