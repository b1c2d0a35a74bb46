"""Which Gradle task a line of the log stands under, looked up only for lines that matter."""

import re

GLUED_END = r"(?=/[\w.]|[ew]: |(?:warning|error): |ERROR: ?|AGPBI: |Killed\b)"
"""Before 4.6 Gradle prints the first message of a task on the task's own line, with nothing between."""

_TASK = re.compile(rb"(?:> Task )?(:[^\s/\\]+?)(?:" + GLUED_END.encode() + rb"|[\s/\\]|$)")


class TaskTracker:
    """Find the last task line before a position; each byte of a block is searched at most once.

    Gradle prints `> Task :app:x`, before 4.10 `:app:x`. Parallel tasks make this a guess.
    """

    def __init__(self) -> None:
        self._data = b""
        self._searched_to = 0
        self._task: str | None = None

    def enter(self, data: bytes) -> None:
        """Begin a block of whole lines."""
        self._data = data
        self._searched_to = 0

    def before(self, position: int) -> str | None:
        """Give the task whose line is the last before `position`, which never goes back in a block."""
        start = self._last_start(self._searched_to, position)
        self._searched_to = max(self._searched_to, position)
        if start >= 0:
            found = _TASK.match(self._data, start)
            if found:
                self._task = found[1].decode(errors="replace")
        return self._task

    def leave(self) -> None:
        """End the block; what it said last holds on."""
        self.before(len(self._data))
        self._data = b""

    def _last_start(self, begin: int, end: int) -> int:
        marked = self._data.rfind(b"> Task :", begin, end)
        plain = self._data.rfind(b"\n:", max(marked, begin - 1, 0), end)
        if plain >= 0:
            return plain + 1
        if marked < 0 and begin == 0 and self._data.startswith(b":") and end > 0:
            return 0
        return marked
