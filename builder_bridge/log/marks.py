"""The lines of a block that may matter, found by one automaton for all tools' marks.

The automaton is RE2's, which takes the same time for every byte whatever the patterns. Where so many
warnings or errors were found that no more are kept, their marks are left out of the search, and what
is passed over is counted by its plainest sign.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import re2

from builder_bridge.log import machine, problems

NO_MARK = 1 << 62
"""The end of the mark that there is none of: beyond any block."""

_WARNING_SIGNS = (b"\nw: ", b": warning: ")
_ERROR_SIGNS = (b"\ne: ", b": error: ")


class MarkFinder:
    """Give where the marks of a block end, for the kinds of marks that are still looked for."""

    def __init__(self) -> None:
        self._has_warnings = True
        self._has_errors = True

    def find(self, data: bytes, position: int) -> Iterator[int]:
        """Give the ends of the marks from a line's beginning on, in order."""
        pattern = _compiled(self._has_warnings, self._has_errors)
        return (mark.end() for mark in pattern.finditer(data, position))

    def drop(self, *, warnings: bool, errors: bool) -> bool:
        """Stop looking for warnings, or for warnings and errors; say whether that is a change."""
        before = (self._has_warnings, self._has_errors)
        self._has_errors = self._has_errors and not errors
        self._has_warnings = self._has_warnings and not warnings and self._has_errors
        return before != (self._has_warnings, self._has_errors)

    def count_dropped(self, data: bytes, position: int) -> int:
        """Count what is passed over from a line's beginning on."""
        signs = (() if self._has_warnings else _WARNING_SIGNS) + (() if self._has_errors else _ERROR_SIGNS)
        at_start = sum(data.startswith(sign[1:], position) for sign in signs if sign.startswith(b"\n"))
        return at_start + sum(data.count(sign, position) for sign in signs)


@lru_cache(maxsize=4)
def _compiled(has_warnings: bool, has_errors: bool) -> Any:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    marks = (
        machine.MARKS
        + (problems.MARKS if has_errors else ())
        + (problems.WARNING_MARKS if has_warnings else ())
    )
    # A lone CR ends a line within its physical line, so that `^` must know it too.
    joined = "|".join(dict.fromkeys(marks)).replace("(?:^|", "(?:^|\\r|")
    return re2.compile(f"(?m){joined}".encode(), options)
