"""Android lint's text report: `/A.kt:16: Error: text [IssueId]`, then source, tildes, explanation."""

import re

from builder_bridge.log.problem import Tool
from builder_bridge.log.problems.finding import (
    Finding,
    TaskLookup,
    number,
    plain_path,
    severity_of,
    task_name,
)

MARKS = (r": Error: ",)
WARNING_MARKS = (r": Warning: ",)

_PLACED = re.compile(
    r"((?:[/\\]|[A-Za-z]:[/\\])[^\n]*?|[^\n]*?\.\w{1,10})(?::(\d+)(?::(\d+))?)?"
    r": (Error|Warning|Fatal): (\S.*)",
    re.DOTALL,
)
_BARE = re.compile(r"(Error|Warning): (\S.*\[[A-Z]\w+(?: from [\w.-]+)?\])\s*$")
_TAG = re.compile(r"\[[A-Z]\w+(?: from [\w.-]+)?\]\s*$")


def match(line: str, task: TaskLookup) -> Finding | None:
    """See one incident of lint; a message over several lines has its tag on a later one."""
    placed = _PLACED.match(line)
    if placed:
        file, at_line, column, word, message = placed.groups()
        if not (_TAG.search(message) or "lint" in task_name(task()).lower()):
            return None
        return Finding(
            severity_of(word.lower()),
            Tool.LINT,
            message,
            plain_path(file.strip()),
            number(at_line),
            number(column),
        )
    bare = _BARE.match(line)
    if bare:
        return Finding(severity_of(bare[1].lower()), Tool.LINT, bare[2])
    return None
