"""One file of matchers for each tool that speaks in a build log, and the table of them."""

from builder_bridge.log.problems import (
    aapt2,
    agpbi,
    dex,
    gradle,
    javac,
    kotlinc,
    lint,
    manifest,
    native,
    unit_test,
)
from builder_bridge.log.problems.finding import Finding, TaskLookup

_MATCHERS = (kotlinc, javac, aapt2, dex, manifest, lint, native, unit_test, agpbi, gradle)

MARKS: tuple[str, ...] = tuple(dict.fromkeys(mark for matcher in _MATCHERS for mark in matcher.MARKS))
"""Patterns of which at least one matches in every line that a matcher may take for an error."""

WARNING_MARKS: tuple[str, ...] = tuple(
    dict.fromkeys(
        mark for matcher in (kotlinc, javac, aapt2, manifest, lint, native) for mark in matcher.WARNING_MARKS
    )
)
"""The same for lines that can only be warnings; some tools mark both alike."""


def find(line: str, task: TaskLookup) -> Finding | None:
    """Give what the first matcher sees in a line, or None; `task` tells the Gradle task that runs.

    The order matters where forms overlap: the marked ones (`AGPBI:`, `e:`, `AAPT:`, `D8:`) come
    before those that are known by the file's name alone. A look for the words that a form cannot
    do without spares most patterns.
    """
    if line.startswith(("e: ", "w: ")):
        return kotlinc.match(line)
    if line.startswith("AGPBI: "):
        return agpbi.match(line)
    found = None
    if " FAILED" in line:
        found = unit_test.match(line)
    if found is None and ("AAPT: " in line or "asset merger: " in line or _has_level(line)):
        found = aapt2.match(line, task)
    if found is None and ("ERROR:" in line or "D8: " in line or "R8: " in line):
        found = dex.match(line, task)
    if found is None and ("Error:" in line or "Warning:" in line):
        found = lint.match(line, task) or manifest.match(line)
    if found is None and (_has_level(line) or "undefined reference" in line or line.startswith("CMake ")):
        found = native.match(line)
    if found is None and (".kt:" in line or ".kts:" in line):
        found = kotlinc.match_bare(line)
    return found or javac.match(line, task)


def _has_level(line: str) -> bool:
    return "rror: " in line or "arn: " in line or "arning: " in line
