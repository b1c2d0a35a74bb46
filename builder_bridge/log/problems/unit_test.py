"""Failed tests: `Class > method FAILED`, then the exception, indented, with its place.

The short form names the place at the end of the exception's line; in the full form it is the
first frame in the test's own file. Frameworks and fakes above it are not where the test is.
"""

import re

from builder_bridge.log.problem import Severity, Tool
from builder_bridge.log.problems.finding import Finding, Follow, number

MARKS = (r" FAILED",)

_HEAD = re.compile(
    r"(?!> |:)(?:Gradle Test Run \S+ > Gradle Test Executor \d+ > )?(\S[^\n]*? > [^\n]*?\S) FAILED\s*$"
)
_NAME_END = re.compile(r"[^\w-]+")
_SHORT = re.compile(r"^\s+[\w.$]+(?:: [^\n]*)? at ([\w$-]+\.\w+):(\d+)\s*$")
_FRAME = re.compile(r"^\s*at [^(\n]+\(([\w$-]+\.\w+):(\d+)\)")


def match(line: str) -> Finding | None:
    """See the head of a failed test."""
    head = _HEAD.match(line)
    return Finding(Severity.ERROR, Tool.TEST, head[1], follow=Follow.INDENTED) if head else None


def place(finding: Finding, lines: list[str]) -> None:
    """Find the place of a failed test in the lines below its head."""
    names = {name for name in _NAME_END.split(finding.message.rpartition(" > ")[0]) if name[:1].isupper()}
    own = names | {f"{name}Kt" for name in names}
    named: list[re.Match[str]] = []
    for text in lines:
        frame = _FRAME.match(text)
        if frame and frame[1].rpartition(".")[0] in own:
            finding.file, finding.line = frame[1], number(frame[2])
            return
        short = _SHORT.match(text)
        if short:
            named.append(short)
    if named:
        best = next((short for short in named if short[1].rpartition(".")[0] in own), named[0])
        finding.file, finding.line = best[1], number(best[2])
