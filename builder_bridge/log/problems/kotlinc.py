"""Kotlin's compiler, and KSP and KAPT, which speak through it.

K1 prints `e: /A.kt: (3, 5): text`, K2 `e: file:///A.kt:3:5 text` without a colon after the column,
build scripts `e: file:///b.gradle.kts:3:5: text` with one. Without a line K2 glues the text to
the path. KSP puts `[ksp]` first and gives no column; KAPT repeats javac's form behind `e:`.
"""

import re

from builder_bridge.log.problem import Severity, Tool
from builder_bridge.log.problems.finding import Finding, number, plain_path, severity_of

MARKS = (r"(?:^|[^A-Za-z0-9_.\n]|Kotlin)[ew]: ",)
"""What every line of these tools has, as a pattern over a whole block."""

_PATH = r"(?:file:/{1,3})?(?:[A-Za-z]:)?[/\\][^\n]*?"
_SUFFIX = r"\.(?:kts?|java|class|jar|klib|kotlin_module|kotlin_builtins|xml)"
_HEAD = re.compile(r"([ew]): (?:\[(ksp|kapt)\] ?)?(.*)", re.DOTALL)
_PLACED = [
    re.compile(rf"({_PATH}): \((\d+), (\d+)\): (.+)", re.DOTALL),
    re.compile(rf"({_PATH}):(\d+):(\d+):? +(\S.*)", re.DOTALL),
    re.compile(rf"({_PATH}):(\d+)(): +(\S.*)", re.DOTALL),
    re.compile(rf"({_PATH}{_SUFFIX})()(): +(\S.*)", re.DOTALL),
    re.compile(rf"(file:{_PATH}{_SUFFIX})()() ?(?=[A-Z'\"<])(\S.*)", re.DOTALL),
]
_ONLY_A_PLACE = re.compile(
    r"(?:file:|[/\\]|[A-Za-z]:[/\\])(?:\S*|[^\n]*\.(?:kts?|java)[:(), \d]*)\s*$|\[\w*$"
)
"""What is left of a line that was cut before its message."""
_JAVAC_WORD = re.compile(r"(error|warning|警告|错误|エラー): +")


def match(line: str) -> Finding | None:
    """See a compiler's message that begins with `e:` or `w:`."""
    head = _HEAD.match(line)
    if head is None:
        return None
    letter, mark, text = head.groups()
    severity = Severity.ERROR if letter == "e" else Severity.WARNING
    tool = Tool(mark) if mark else Tool.KOTLINC
    if not text.strip() or _ONLY_A_PLACE.match(text):
        return None
    for pattern in _PLACED:
        placed = pattern.match(text)
        if placed:
            file, at_line, column, message = placed.groups()
            return _settle(
                Finding(severity, tool, message, plain_path(file), number(at_line), number(column))
            )
    return _settle(Finding(severity, tool, text))


def _settle(finding: Finding) -> Finding:
    """Tell KAPT's javac messages from the compiler's own."""
    word = _JAVAC_WORD.match(finding.message)
    if word is None or finding.tool is Tool.KSP:
        return finding
    finding.tool = Tool.KAPT
    if finding.severity is Severity.WARNING:
        finding.severity = severity_of(word[1])
    finding.message = finding.message[word.end() :]
    return finding
