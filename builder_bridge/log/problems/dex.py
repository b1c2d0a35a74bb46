"""D8 and R8, and AGP's `ERROR:` lines around them.

`ERROR: D8: text`, AGP 7's `ERROR:: D8: text`, and `ERROR: /a.jar: D8: text` with the input's path;
R8 gives rule files a line and a column.
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

MARKS = (r"ERROR:", r"D8: ", r"R8: ")

_MARKED = re.compile(
    r"(?:(ERROR|WARNING|WARN):{1,2} ?)?(?:([^\n]*?)(?::(\d+)(?::(\d+))?)?: )?(D8|R8): (\S.*)", re.DOTALL
)
_ERROR = re.compile(
    r"ERROR: ?(?:([/\\]|[A-Za-z]:[/\\])([^\n]*?)(?::(\d+)(?:[:.](\d+)(?:-[\d.]+)?)?)?: )?(\S.*)", re.DOTALL
)
_OF_THE_RUNNER = re.compile(
    r"Job failed|Job succeeded|script returned exit code|failed to (?:solve|build)\b|Step .* failed"
    r"|[^\n]{0,300}(?:exit(?:ed with)? (?:code|status)|non-zero code)\W* \d+\s*$"
)
"""How CI systems and containers say that what they ran has failed; Gradle has said why."""
_ONLY_A_PATH = re.compile(r"(?:[/\\]|[A-Za-z]:[/\\])\S*\s*$")
_R8_HEADING = re.compile(r"Missing class(?:es)?\b")
_RESOURCE_TASK = re.compile(r"Resources?$|Resources?[A-Z]|aapt", re.IGNORECASE)
_DEX_TASK = re.compile(r"[Dd]ex|D8|R8|minify|desugar|[Pp]roguard")


def match(line: str, task: TaskLookup) -> Finding | None:
    """See a message of D8 or R8, or another of AGP's `ERROR:` lines."""
    marked = _MARKED.match(line)
    if marked:
        level, file, at_line, column, name, message = marked.groups()
        severity = severity_of((level or "error").lower())
        tool = Tool.D8 if name == "D8" else Tool.R8
        path = plain_path(file.strip(": ")) if file else ""
        return Finding(severity, tool, message, path or None, number(at_line), number(column))
    plain = _ERROR.match(line)
    if plain is None:
        return None
    root, rest, at_line, column, message = plain.groups()
    is_cut = (root is None and _ONLY_A_PATH.match(message)) or message.startswith("AAPT: ")
    if is_cut or (root is None and _OF_THE_RUNNER.match(message)):
        return None
    file = root + rest if root else None
    return Finding(
        Severity.ERROR,
        _tool_of(message, task_name(task())),
        message,
        file,
        number(at_line),
        number(column),
        Follow.TEXT,
    )


def _tool_of(message: str, name: str) -> Tool:
    if _R8_HEADING.match(message) or "R8" in name or "Proguard" in name:
        return Tool.R8
    if _RESOURCE_TASK.search(name) or message.startswith("In <declare-styleable>"):
        return Tool.AAPT2
    return Tool.D8 if _DEX_TASK.search(name) else Tool.GRADLE
