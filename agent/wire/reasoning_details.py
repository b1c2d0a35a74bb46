"""Collect `reasoning_details`, the list in which gateways stream thinking that must come back unchanged."""

from typing import Any

from agent.message import JsonObject
from agent.wire.limits import MAX_PARTS, LimitExceeded

_GROWING = ("text", "summary", "data")


class ReasoningDetails:
    """The entries of one response, the pieces of each put together by `settle`.

    A piece continues the last entry if it has the same type and index. MiniMax sends all of the text
    so far each time, and says so by its format; others send what is new.
    """

    def __init__(self) -> None:
        self.entries: list[JsonObject] = []
        self._pieces: dict[str, list[str]] = {}

    def take(self, details: list[Any]) -> str:
        """Take one delta's list; give the readable thinking that is new in it."""
        return "".join(self._take_entry(entry) for entry in details if isinstance(entry, dict))

    def settle(self) -> None:
        """Put the pieces of the last entry together; no more will come."""
        for key, pieces in self._pieces.items():
            self.entries[-1][key] = "".join(pieces)
        self._pieces = {}

    def _take_entry(self, entry: JsonObject) -> str:
        last = self.entries[-1] if self.entries else {}
        if not last or any(last.get(key) != entry.get(key) for key in ("type", "index")):
            self.settle()
            if len(self.entries) >= MAX_PARTS:
                raise LimitExceeded(f"a message takes {MAX_PARTS} reasoning details at most")
            last = dict(entry)
            self.entries.append(last)
        is_snapshot = "minimax" in str(entry.get("format")).lower()
        new = ""
        for key, value in entry.items():
            if key in _GROWING and isinstance(value, str):
                pieces = self._pieces.setdefault(key, [])
                fresh = value.removeprefix(pieces[-1]) if is_snapshot and pieces else value
                self._pieces[key] = [value] if is_snapshot else pieces
                if not is_snapshot:
                    pieces.append(value)
                new += fresh if key != "data" else ""
            elif value is not None:
                last[key] = value
        return new
