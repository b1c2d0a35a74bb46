"""Kotlin's compiler, and KSP and KAPT, which speak through it.

K1 prints `e: /A.kt: (3, 5): text`, K2 `e: file:///A.kt:3:5 text` without a colon after the column,
build scripts `e: file:///b.gradle.kts:3:5: text` with one. Without a line K2 glues the text to
the path. KSP puts `[ksp]` first and gives no column; KAPT repeats javac's form behind `e:`.
The compiler by itself, as the plugin runs it where its daemon fails, prints `/A.kt:3:5: error: text`.
"""

import re

from builder_bridge.log.problem import Severity, Tool
from builder_bridge.log.problems.finding import PATH, Finding, number, plain_path, severity_of

MARKS = (r"(?:^|[^A-Za-z0-9_.\n]|Kotlin)e: ",)
WARNING_MARKS = (r"(?:^|[^A-Za-z0-9_.\n]|Kotlin)w: ",)
"""What every line of these tools has, as patterns over a whole block; those of warnings apart."""

_HEAD = re.compile(r"([ew]): (?:\[(ksp|kapt)\] ?)?(.*)", re.DOTALL)
_PATH_START = re.compile(r"(?:file:/{1,3})?(?:[A-Za-z]:)?[/\\]|[\w./-]{1,300}\.kts?:[ \d]")
_POSITION = re.compile(r": \((\d+), (\d+)\): (?=.)|:(\d+):(\d+):? +(?=\S)|:(\d+)(): +(?=\S)")
_SUFFIX = r"\.(?:kts?|java|class|jar|klib|kotlin_module|kotlin_builtins|xml)"
_SUFFIXES = (".kt", ".kts", ".java", ".xml", ".class", ".kotlin_module")
_UNPLACED = re.compile(rf"([^\n]*?{_SUFFIX})(?:: +(?=\S)|(?=[A-Z'\"<]))(.*)", re.DOTALL)
_ONLY_A_PLACE = re.compile(r"(?:file:|[/\\]|[A-Za-z]:[/\\])(?:\S*|[^\n]*\.(?:kts?|java)[:(), \d]*)\s*$")
"""What is left of a line that was cut before its message."""

_ONLY_A_MARK = re.compile(r"\[\w*$")
_BARE = re.compile(
    rf"(?:exception: )?({PATH}\.kts?):(\d+):(\d+): (error|warning|exception): (\S.*)", re.DOTALL
)
_JAVAC_WORD = re.compile(r"(error|warning|警告|错误|エラー): +")


def match(line: str) -> Finding | None:
    """See a compiler's message that begins with `e:` or `w:`."""
    head = _HEAD.match(line)
    if head is None:
        return None
    letter, mark, text = head.groups()
    severity = Severity.ERROR if letter == "e" else Severity.WARNING
    tool = Tool(mark) if mark else Tool.KOTLINC
    if _PATH_START.match(text):
        position = _POSITION.search(text)
        if position and text[: position.start()].endswith(_SUFFIXES):
            return _settle(_placed(severity, tool, text, position))
        if _ONLY_A_PLACE.match(text):
            return None
        unplaced = _UNPLACED.match(text)
        if unplaced:
            return _settle(Finding(severity, tool, unplaced[2], plain_path(unplaced[1])))
        if position:
            return _settle(_placed(severity, tool, text, position))
    elif not text.strip() or _ONLY_A_MARK.match(text) or "file:///".startswith(text):
        return None
    return _settle(Finding(severity, tool, text))


def match_bare(line: str) -> Finding | None:
    """See a message in the form of the compiler's own command line."""
    found = _BARE.match(line)
    if found is None:
        return None
    file, at_line, column, word, message = found.groups()
    severity = severity_of(word)
    return Finding(severity, Tool.KOTLINC, message, plain_path(file.strip()), number(at_line), number(column))


def _placed(severity: Severity, tool: Tool, text: str, position: re.Match[str]) -> Finding:
    line, column = next((position[n], position[n + 1]) for n in (1, 3, 5) if position[n] is not None)
    file = plain_path(text[: position.start()])
    return Finding(severity, tool, text[position.end() :], file, number(line), number(column))


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
