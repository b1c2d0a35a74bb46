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

MARKS: tuple[str, ...] = tuple(
    dict.fromkeys(
        mark
        for matcher in (kotlinc, javac, aapt2, dex, manifest, lint, native, unit_test, agpbi, gradle)
        for mark in matcher.MARKS
    )
)
"""Patterns of which at least one matches in every line that a matcher may accept."""


def find(line: str, task: TaskLookup) -> Finding | None:
    """Give what the first matcher sees in a line, or None; `task` tells the Gradle task that runs.

    The order matters where forms overlap: the marked ones (`AGPBI:`, `e:`, `AAPT:`, `D8:`) come
    before those that are known by the file's name alone.
    """
    if line.startswith(("e: ", "w: ")):
        return kotlinc.match(line)
    return (
        agpbi.match(line)
        or unit_test.match(line)
        or aapt2.match(line, task)
        or dex.match(line, task)
        or manifest.match(line)
        or native.match(line)
        or javac.match(line, task)
        or lint.match(line, task)
    )
