"""Check that brackets, strings and comments of Kotlin or Java close: what a cut or misplaced edit breaks.

A grammar would say more, but those that are packaged do not keep up: tree-sitter's for Java refuses module
imports, statements before `super(…)` and octal literals with underscores, all of which javac takes. This
knows only lexical rules (Kotlin language specification, lexical grammar; Java language specification,
chapter 3), and so finds nothing wrong with syntax to come. What could not be told for certain is passed.
"""

from dataclasses import dataclass, field
from enum import StrEnum

_CLOSES = {")": "(", "]": "[", "}": "{"}
_JAVA_UNTOLD = ("\\u", "\\{")
"""Escapes that javac reads before all else, and string templates, which one version of Java had."""


class Language(StrEnum):
    """Whose lexical rules hold."""

    KOTLIN = "kotlin"
    JAVA = "java"


@dataclass(slots=True)
class _Scan:
    text: str
    language: Language
    at: int = 0
    open: list[tuple[str, int]] = field(default_factory=list)
    fault: tuple[int, str] | None = None

    def fail(self, at: int, told: str) -> None:
        self.fault = (at, told)
        self.at = len(self.text)


def unclosed(text: str, language: Language) -> str | None:
    """Say where source does not close, as `LINE:COLUMN  reason`; None where it does, or cannot be told."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if "\0" in text or (language is Language.JAVA and any(word in text for word in _JAVA_UNTOLD)):
        return None
    scan = _Scan(text, language)
    if text.startswith("#!"):
        scan.at = len(text.partition("\n")[0])
    while scan.at < len(text) and scan.fault is None:
        _token(scan)
    if scan.fault is None and scan.open:
        scan.fault = (scan.open[-1][1], f"{scan.open[-1][0]!r} is never closed")
    if scan.fault is None:
        return None
    at, told = scan.fault
    return f"{text.count(chr(10), 0, at) + 1}:{at - text.rfind(chr(10), 0, at)}  {told}"


def _token(scan: _Scan) -> None:
    text, at = scan.text, scan.at
    char = text[at]
    if text.startswith("//", at):
        scan.at = end if (end := text.find("\n", at)) >= 0 else len(text)
    elif text.startswith("/*", at):
        _comment(scan)
    elif char in "([{":
        scan.open.append((char, at))
        scan.at += 1
    elif char in _CLOSES:
        _close(scan, char)
    elif char == '"' and scan.language is Language.KOTLIN:
        _string(scan)
    elif char == '"':
        _java_string(scan)
    elif char == "'":
        _character(scan)
    elif char == "`" and scan.language is Language.KOTLIN:
        end = text.find("`", at + 1)
        scan.at = end + 1 if end >= 0 else at + 1
    else:
        scan.at += 1


def _close(scan: _Scan, char: str) -> None:
    if not scan.open:
        scan.fail(scan.at, f"{char!r} closes nothing")
    elif scan.open[-1][0] != _CLOSES[char]:
        opened, at = scan.open[-1]
        line = scan.text.count("\n", 0, at) + 1
        scan.fail(scan.at, f"{char!r} does not close the {opened!r} of line {line}")
    else:
        scan.open.pop()
        scan.at += 1


def _comment(scan: _Scan) -> None:
    """Skip a comment; in Kotlin they nest, in Java they do not."""
    start, depth = scan.at, 0
    if scan.language is Language.JAVA:
        end = scan.text.find("*/", start + 2)
        scan.at = end + 2
        if end < 0:
            scan.fail(start, "the comment is never closed")
        return
    while scan.at < len(scan.text):
        if scan.text.startswith("/*", scan.at):
            depth, scan.at = depth + 1, scan.at + 2
        elif scan.text.startswith("*/", scan.at):
            depth, scan.at = depth - 1, scan.at + 2
            if depth == 0:
                return
        else:
            scan.at += 1
    scan.fail(start, "the comment is never closed")


def _character(scan: _Scan) -> None:
    """Skip a character literal; a lone apostrophe is left alone, for labels of the future's syntax."""
    text, at = scan.text, scan.at
    if text.startswith("\\", at + 1):
        end = text.find("'", at + 3)
        scan.at = end + 1 if 0 <= end - at <= 8 else at + 1
    else:
        scan.at = at + 3 if text.startswith("'", at + 2) else at + 1


def _java_string(scan: _Scan) -> None:
    """Skip a string or a text block."""
    text, start = scan.text, scan.at
    quote = '"""' if text.startswith('"""', start) else '"'
    scan.at += len(quote)
    while scan.at < len(text) and not text.startswith(quote, scan.at):
        if quote == '"' and text[scan.at] == "\n":
            break
        scan.at += 2 if text[scan.at] == "\\" else 1
    if text.startswith(quote, scan.at):
        scan.at += len(quote)
    else:
        scan.fail(start, "the string is never closed")


def _string(scan: _Scan) -> None:
    """Skip a string with its templates; `$$` before it makes templates begin with as many dollars."""
    text, start = scan.text, scan.at
    dollars = max(1, start - len(text[:start].rstrip("$")))
    quote = '"""' if text.startswith('"""', start) else '"'
    scan.at += len(quote)
    while scan.at < len(text) and scan.fault is None:
        at = scan.at
        if text.startswith("$" * dollars + "{", at):
            scan.at += dollars + 1
            _template(scan, at + dollars)
        elif text[at] == "\\" and quote == '"':
            scan.at += 2
        elif text.startswith(quote, at):
            scan.at += len(quote)
            while quote == '"""' and text.startswith('"', scan.at):
                scan.at += 1
            return
        elif text[at] == "\n" and quote == '"':
            scan.fail(start, "the string is never closed")
        else:
            scan.at += 1
    if scan.fault is None:
        scan.fail(start, "the string is never closed")


def _template(scan: _Scan, opened_at: int) -> None:
    depth = len(scan.open)
    scan.open.append(("{", opened_at))
    while scan.at < len(scan.text) and len(scan.open) > depth:
        _token(scan)
