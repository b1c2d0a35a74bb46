"""What a matcher sees in one line, before the lines that belong to it are known."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

from builder_bridge.log.problem import Severity, Tool

TaskLookup = Callable[[], str | None]
"""Gives the Gradle task that runs at a line, where it is known; looked up only when asked."""


class Follow(Enum):
    """Which of the next lines belong to a message."""

    NOTHING = auto()
    TEXT = auto()
    """All lines up to an empty one or one that speaks for itself."""
    INDENTED = auto()
    """Indented and empty lines, as CMake and test frames have them."""


@dataclass(slots=True)
class Finding:
    """The head of a diagnostic; the reader adds its further lines to `lines`."""

    severity: Severity
    tool: Tool
    message: str
    file: str | None = None
    line: int | None = None
    column: int | None = None
    follow: Follow = Follow.TEXT


HEAD_CHARS = 8192
"""Matchers look at this much of a line: a place and the gist stand at its beginning."""

WARNING_WORDS = (
    "warning|warn|警告|경고|Warnung|avertissement|advertencia|aviso|avviso|avvertenza|advertência"
    "|предупреждение|ostrzeżenie|uyarı"
)
ERROR_WORDS = "error|错误|錯誤|エラー|오류|Fehler|erreur|erro|errore|ошибка|błąd|hata|fatal error"
_IS_WARNING = re.compile(rf"(?:{WARNING_WORDS})$", re.IGNORECASE)


PATH = r"(?:file:)?(?:(?:[A-Za-z]:)?[/\\][^\n]*?|[^\s:]*?)"
"""How a path begins at the beginning of a line; only an absolute one may have blanks in it."""


def severity_of(word: str) -> Severity:
    """Give the severity that a tool's word stands for, in any of the languages of javac."""
    return Severity.WARNING if _IS_WARNING.match(word) else Severity.ERROR


def plain_path(text: str) -> str:
    """Take a `file:` scheme off; the rest stays as the log has it."""
    return text.removeprefix("file://").removeprefix("file:")


def number(text: str | None) -> int | None:
    """Read a position that counts from one; absent, zero and negative ones are None."""
    if text is None or not text.isascii() or len(text) > 9:
        return None
    return int(text) if text.isdecimal() and int(text) > 0 else None


def task_name(task: str | None) -> str:
    """Give a task's own name, without the project it is of; "" where no task is known."""
    return task.rpartition(":")[2] if task else ""
