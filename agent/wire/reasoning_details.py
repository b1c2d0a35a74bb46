"""Collect `reasoning_details`, the list in which gateways stream thinking that must come back unchanged."""

from typing import Any

from agent.message import JsonObject

_GROWING = ("text", "summary", "data")


class ReasoningDetails:
    """The entries of one response, the pieces of each put together.

    A piece continues the last entry if it has the same type and index. MiniMax sends all of the text
    so far each time, and says so by its format; others send what is new.
    """

    def __init__(self) -> None:
        self.entries: list[JsonObject] = []

    def take(self, details: list[Any]) -> str:
        """Take one delta's list; give the readable thinking that is new in it."""
        return "".join(self._take_entry(entry) for entry in details if isinstance(entry, dict))

    def _take_entry(self, entry: JsonObject) -> str:
        new = "".join(entry[key] for key in ("text", "summary") if isinstance(entry.get(key), str))
        last = self.entries[-1] if self.entries else {}
        if any(last.get(key) != entry.get(key) for key in ("type", "index")) or not last:
            self.entries.append(dict(entry))
            return new
        is_snapshot = "minimax" in str(entry.get("format")).lower()
        if is_snapshot:
            new = new.removeprefix("".join(str(last.get(key) or "") for key in ("text", "summary")))
        for key, value in entry.items():
            before = last.get(key)
            if key in _GROWING and isinstance(value, str) and isinstance(before, str) and not is_snapshot:
                last[key] = before + value
            elif value is not None:
                last[key] = value
        return new
