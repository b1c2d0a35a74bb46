"""AAPT2 and the resource mergers around it.

AGP prints `ERROR: /a.xml:21: AAPT: error: text`, with the blank after `ERROR:` missing in some
versions; the mergers print `/a.xml: Error: text` or `ERROR: /a.xml: Resource and asset merger: text`.
AAPT1 and AGP 3 print `/a.xml:21: error: text`.
"""

import re

from builder_bridge.log.problem import Tool
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
)
WARNING_MARKS = (r"\.(?:xml|png|webp|jpe?g|gif|ttf|otf)[-0-9:]*: [Ww]arn",)

_LEVEL = r"(?:ERROR|WARN|WARNING): ?"
_PLACE = r"([^\n]*?)(?::(\d+)(?::(\d+))?(?:-[\d:]+)?)?"
_MARKED = re.compile(rf"\s*(?:{_LEVEL})?(?:{_PLACE}: ?)?AAPT: (?:(error|warn|warning): ?)?(\S.*)", re.DOTALL)
_CUT_WORD = re.compile(r"(?:e(?:r(?:ro?)?)?|error|w(?:a(?:rn?)?)?|warning?):?\s*$")
_MERGER = re.compile(rf"(?:({_LEVEL}))?(?:{_PLACE}: )?Resource and asset merger: (\S.*)", re.DOTALL)
_RESOURCE_FILE = (
    r"(?:\[[^\]\n]*\] ?)?([^\n]*?\.(?:xml|png|webp|jpe?g|gif|ttf|otf))(?::(\d+)(?::(\d+))?(?:-[\d:]+)?)?"
)
_PLAIN = re.compile(rf"{_RESOURCE_FILE}: (error|warn|warning|Error|Warning): (\S.*)", re.DOTALL)
_RESOURCE_SUFFIX = re.compile(r"\.(?:xml|png|webp|jpe?g|gif|ttf|otf)\b")
_LINT_TAG = re.compile(r"\[[A-Z]\w+(?: from [\w.]+)?\]\s*$")
_DUPLICATES = re.compile(r"(?:\[[^\]\n]*\] ?[^\n\t]*\t)+[^\n]*: Error: Duplicate resources")


def match(line: str, task: TaskLookup) -> Finding | None:
    """See a message about a resource; `task` tells lint's plain form from the merger's."""
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
            severity, Tool.AAPT2, message, file or None, number(at_line), number(column), Follow.NOTHING
        )
    return _match_plain(line, task)


def _match_plain(line: str, task: TaskLookup) -> Finding | None:
    plain = _PLAIN.match(line) if _RESOURCE_SUFFIX.search(line) else None
    if plain is None:
        return None
    file, at_line, column, word, message = plain.groups()
    if word[0].isupper() and file.endswith("AndroidManifest.xml"):
        return None
    if word[0].isupper() and (_LINT_TAG.search(message) or task_name(task()).startswith("lint")):
        return None
    if _DUPLICATES.match(line):
        file = line.partition("] ")[2].partition("\t")[0]
    return Finding(
        severity_of(word.lower()),
        Tool.AAPT2,
        message,
        plain_path(file.strip()),
        number(at_line),
        number(column),
        Follow.NOTHING,
    )
