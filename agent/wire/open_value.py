"""Collect a JSON object that is spread over several lines of a body."""

import re

from agent.wire.json_text import Nesting
from agent.wire.limits import MAX_EVENT_LINES, MAX_LINE_BYTES

JSON_LINE = re.compile(r'["{}\[\],]|-?\d|(true|false|null)\b', re.ASCII)
"""How a line begins that may go on with JSON."""


class OpenValue:
    """A JSON object of which more is to come, line by line (Latin-1 text of the bytes)."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget what came, for the next value."""
        self.lines: list[tuple[int, str]] = []
        self.size_chars = 0
        self.is_framed = False
        self._nesting = Nesting()

    @property
    def is_too_long(self) -> bool:
        """Whether more came than one value may have."""
        return self.size_chars > MAX_LINE_BYTES or len(self.lines) > MAX_EVENT_LINES

    def add(self, text: str, at: int, start: int) -> int:
        """Add what `text` holds of the value; give the index after its end, or -1 while it is open."""
        end = self._nesting.feed(text, at)
        self.lines.append((start, text[at:end] if end >= 0 else text[at:]))
        self.size_chars += len(text) - at
        return end

    def can_go_on_with(self, text: str, at: int, is_framed: bool) -> bool:
        """Whether `text` may be the next line of the value: an object fits only where one is due."""
        if is_framed and not self.is_framed:
            return False
        if text[at] == "{":
            return not self._nesting.in_string and self.lines[-1][1].endswith(("[", ",", ":"))
        return self._nesting.in_string or JSON_LINE.match(text, at) is not None
