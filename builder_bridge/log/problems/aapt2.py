"""AAPT2 and the resource mergers around it.

AGP prints `ERROR: /a.xml:21: AAPT: error: text`, with the blank after `ERROR:` missing in some
versions; the mergers print `/a.xml: Error: text` or `ERROR: /a.xml: Resource and asset merger: text`.
AAPT1 and AGP 3 print `/a.xml:21: error: text`.
"""

import re

from builder_bridge.log.problem import Severity, Tool
from builder_bridge.log.problems.finding import (
    Finding,
    Follow,
    TaskLookup,
    number,
    plain_path,
    severity_of,
    task_name,
)

MARKS = (
    r"AAPT: ",
    r"\.(?:xml|png|webp|jpe?g|gif|ttf|otf)[-0-9:]*: [Ee]rror",
    r"asset merger: ",
    r": Error: Duplicate resources",
)
WARNING_MARKS = (r"\.(?:xml|png|webp|jpe?g|gif|ttf|otf)[-0-9:]*: [Ww]arn",)

_LEVEL = r"(?:ERROR|WARN|WARNING): ?"
_PLACE = r"([^\n]*?)(?::(\d+)(?::(\d+))?(?:-[\d:]+)?)?"
_MARKED = re.compile(rf"\s*(?:{_LEVEL})?(?:{_PLACE}: ?)?AAPT: (?:(error|warn|warning): ?)?(\S.*)", re.DOTALL)
_CUT_WORD = re.compile(r"(?:e(?:r(?:ro?)?)?|error|w(?:a(?:rn?)?)?|warning?):?\s*$")
_MERGER = re.compile(rf"(?:({_LEVEL}))?(?:{_PLACE}: )?Resource and asset merger: (\S.*)", re.DOTALL)
_RESOURCE_FILE = r"([^\n]*?\.(?:xml|png|webp|jpe?g|gif|ttf|otf))(?::(\d+)(?::(\d+))?(?:-[\d:]+)?)?"
_PLAIN = re.compile(rf"(?:{_LEVEL})?{_RESOURCE_FILE}: (error|warn|warning|Error|Warning): (\S.*)", re.DOTALL)
_RESOURCE_SUFFIX = re.compile(r"\.(?:xml|png|webp|jpe?g|gif|ttf|otf)\b")
_DUPLICATES = re.compile(r"(?:ERROR: ?)?(\[[^\]\n]*\] ?[^\n]*): Error: (Duplicate resources.*)", re.DOTALL)
_LISTED = re.compile(r"(\[[^\]\n]*\]) ?")
_OUTPUT = re.compile(r"\s*Output: +")
"""Before AGP 3.4 the failure block gives what AAPT2 said behind this word."""
_LINT_TAG = re.compile(r"\[[A-Z]\w+(?: from [\w.]+)?\]\s*$")


def match(line: str, task: TaskLookup) -> Finding | None:
    """See a message about a resource; `task` tells lint's plain form from the merger's."""
    output = _OUTPUT.match(line)
    line = line[output.end() :] if output else line
    marked = _MARKED.match(line) if "AAPT: " in line else None
    if marked:
        file, at_line, column, word, message = marked.groups()
        if word is None and _CUT_WORD.match(message):
            return None
        return Finding(
            severity_of(word or ("warn" if line.lstrip().startswith("WARN") else "error")),
            Tool.AAPT2,
            message,
            plain_path(file.strip()) if file else None,
            number(at_line),
            number(column),
            Follow.NOTHING,
        )
    merger = _MERGER.match(line) if "asset merger: " in line else None
    if merger:
        level, file, at_line, column, message = merger.groups()
        severity = severity_of("warn" if level and level.startswith("WARN") else "error")
        return Finding(
            severity, Tool.AAPT2, message, _first_of(file), number(at_line), number(column), Follow.NOTHING
        )
    return _match_plain(line, task)


def _match_plain(line: str, task: TaskLookup) -> Finding | None:
    twice = _DUPLICATES.match(line) if "Duplicate resources" in line else None
    if twice:
        return Finding(Severity.ERROR, Tool.AAPT2, twice[2], _first_of(twice[1]), None, None, Follow.NOTHING)
    plain = _PLAIN.match(line) if _RESOURCE_SUFFIX.search(line) else None
    if plain is None:
        return None
    file, at_line, column, word, message = plain.groups()
    if word[0].isupper() and file.endswith("AndroidManifest.xml"):
        return None
    if word[0].isupper() and (_LINT_TAG.search(message) or task_name(task()).startswith("lint")):
        return None
    return Finding(
        severity_of(word.lower()),
        Tool.AAPT2,
        message,
        _first_of(file),
        number(at_line),
        number(column),
        Follow.NOTHING,
    )


def _first_of(listed: str | None) -> str | None:
    """Give the first path of `[string/a] /a.xml [string/a] /b.xml`, or the only one there is."""
    name = _LISTED.match(listed or "")
    if name is None or listed is None:
        return plain_path(listed.strip()) if listed else None
    first, _, _ = listed[name.end() :].partition(name[1])
    return plain_path(first.strip()) or None
