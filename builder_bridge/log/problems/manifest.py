"""The manifest merger: a place and `Error:` on one line, the text on the next, indented by a tab."""

import re

from builder_bridge.log.problem import Tool
from builder_bridge.log.problems.finding import Finding, number, plain_path, severity_of

MARKS = (r"Error:[ \t\r]*$", r"AndroidManifest[\w.-]*\.xml[-0-9:]* Error:")
WARNING_MARKS = (r"Warning:[ \t\r]*$", r"AndroidManifest[\w.-]*\.xml[-0-9:]* Warning:")

_PLACED = re.compile(
    r"(?:\[[^\]\n]*\] ?)?([^\n]*?\.xml)(?::(\d+)(?::(\d+))?(?:-[\d:]+)?)?:? (Error|Warning):\s*(.*)",
    re.DOTALL,
)


def match(line: str) -> Finding | None:
    """See the head of a merger message; its text may follow on the next line."""
    placed = _PLACED.match(line)
    if placed is None:
        return None
    file, at_line, column, word, message = placed.groups()
    if message and "AndroidManifest" not in file:
        return None
    return Finding(
        severity_of(word.lower()),
        Tool.MANIFEST,
        message,
        plain_path(file.strip()),
        number(at_line),
        number(column),
    )
