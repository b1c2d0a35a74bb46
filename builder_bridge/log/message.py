"""A diagnostic that is being read: its head, and the lines below it that belong to it."""

import re

from builder_bridge.log.causes import CAUSED_BY
from builder_bridge.log.problem import Problem, Tool
from builder_bridge.log.problems import unit_test
from builder_bridge.log.problems.finding import Finding, Follow, task_name

MAX_LINES = 200
MAX_MESSAGE_CHARS = 16_000
"""Of a longer message the beginning is kept, with a note of how much is not."""

_SPEAKS_FOR_ITSELF = re.compile(
    r"\s*$|[ew]: |[^\s:][^\n:]*:\d+: (?:warning|警告): "
    r"|> (?:Task|Configure project|Transform) |:[\w.-]+(?::[\w.\[\]-]+)*(?: [A-Z][A-Z-]+)?$"
    r"|FAILURE: |Execution failed for task '|BUILD [FS]|\* [A-Z]|\s*\d+ (?:errors?|warnings?|Fehler|Warnung)"
    r"|\s*(?:Note|note|注|注意|ノート|Hinweis): |\s*\d+ ?个(?:错误|警告)|\s*(?:エラー|警告)\d+個"
    r"|\[Incubating\]|##\[|\d+ tests? completed|\s*\d+ (?:warning|error)s? (?:and|generated)|\s*ninja: "
    r"|\s*FAILED\s*$|Using fallback strategy|See http://g\.co/androidstudio|Picked up _JAVA"
)
_ONLY_BEGUN = re.compile(
    r"[A-Za-z]:?|(?:file:|(?:[A-Za-z]:)?[/\\]|\[)[^\n]*|D8|R8|R(?:e(?:s(?:o(?:u(?:r\w*)?)?)?)?)?"
    r"|e(?:r(?:ro?)?)?|error:?|w(?:a(?:r(?:n\w*)?)?)?|warning:"
)
"""The beginning of a path or of a word that stands before a message."""

_INDENTED = re.compile(r"\s")
_ENDS_IN_EXCEPTION = re.compile(r"(?:[^\n]*: )?(?:[\w$]+\.)+[\w$]*(?:Exception|Error|Throwable)[\w$]*:?\s*$")
_KSP_FRAME = re.compile(r"com\.google\.devtools\.ksp|\bKSP\b|symbol-processing")
_KAPT_FRAME = re.compile(r"kotlin\.kapt|kapt3|\bkapt\b")


class OpenMessage:
    """Collect a diagnostic until a line comes that is not part of it."""

    def __init__(self, finding: Finding, log_line: int, task: str | None) -> None:
        self._finding = finding
        self._log_line = log_line
        self._task = task
        self._lines: list[str] = []

    def take(self, line: str) -> bool:
        """Take a line in if it belongs to the message; say whether it did."""
        match self._finding.follow:
            case Follow.NOTHING:
                return False
            case Follow.INDENTED:
                belongs = not line.strip() or _INDENTED.match(line) is not None
            case Follow.TEXT:
                belongs = _SPEAKS_FOR_ITSELF.match(line) is None
        if not belongs or len(self._lines) >= MAX_LINES:
            return False
        self._lines.append(line)
        return True

    def is_only_a_place(self, cut_line: int | None) -> bool:
        """Whether the log ends in this line, before the message began."""
        if cut_line != self._log_line:
            return False
        finding = self._finding
        return _ONLY_BEGUN.fullmatch(finding.message) is not None and (
            finding.file is None or finding.tool in (Tool.GRADLE, Tool.KOTLINC)
        )

    def close(self) -> Problem | None:
        """Give the whole problem; None where the log ended before the message began."""
        finding = self._finding
        if finding.tool is Tool.TEST:
            unit_test.place(finding, self._lines)
        elif finding.tool is Tool.KOTLINC and finding.file is None:
            self._settle_tool()
        message = self._message()
        if not message:
            return None
        return Problem(
            finding.severity,
            finding.tool,
            finding.file,
            finding.line,
            finding.column,
            message,
            self._log_line,
            self._task,
        )

    def _settle_tool(self) -> None:
        """KSP and KAPT run inside the Kotlin compiler; frames and the task's name tell them apart."""
        text = "\n".join((self._finding.message, *self._lines))
        name = task_name(self._task)
        if name.startswith("ksp") or _KSP_FRAME.search(text):
            self._finding.tool = Tool.KSP
        elif (name.startswith("kapt") and not name.startswith("kaptGenerate")) or _KAPT_FRAME.search(text):
            self._finding.tool = Tool.KAPT

    def _message(self) -> str:
        lines = [self._finding.message.strip(), *(line.rstrip() for line in self._lines)]
        if not lines[0]:
            lines = [line.strip() for line in lines if line.strip()]
        if lines and _ENDS_IN_EXCEPTION.match(lines[0]):
            causes = [found[1].strip() for line in lines if (found := CAUSED_BY.match(line))]
            lines = [*causes[-1:], *lines]
        text = "\n".join(lines).rstrip()
        if len(text) > MAX_MESSAGE_CHARS:
            text = f"{text[:MAX_MESSAGE_CHARS]}\n… ({len(text) - MAX_MESSAGE_CHARS} more characters)"
        return text
