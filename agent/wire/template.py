"""Read lines that differ from an earlier one in a single string, without parsing them whole.

Most of a response is one line over and over: only the new text or the next fragment of arguments
changes. Where a line begins and ends like an earlier one and a JSON string stands between, it is the
same object with another string in that place; this follows from JSON's grammar, not from guessing.
"""

import re
from typing import Any

from pydantic_core import from_json

from agent.message import JsonObject

_KEYS = (
    "arguments",
    "partial_json",
    "content",
    "text",
    "thinking",
    "reasoning_content",
    "reasoning",
    "delta",
)
"""Under which keys providers stream; the string that changes stands under one of them."""

_STRING = re.compile(rb'\s*("(?:[^"\\]|\\.)+")')
"""A string that is not empty: where one begins empty, as in the line that opens a call, others follow it."""
_NEVER = b"\n"
_TRIES = 32


class Template:
    """The last line of which only one string is expected to change.

    The object that `read` gives is the same one each time, changed in that place: take from it what is
    needed and do not keep it. Where lines keep differing elsewhere, nothing more is learned.
    """

    __slots__ = ("_end", "_event", "_head", "_key", "_owner", "_start", "_tail", "_tries")

    def __init__(self) -> None:
        self._head = self._tail = _NEVER
        self._start = self._end = 0
        self._event: JsonObject = {}
        self._owner: JsonObject = {}
        self._key = ""
        self._tries = _TRIES

    def read(self, line: bytes) -> JsonObject | None:
        """Give the event of a line that is like the one that was learned, None for any other line."""
        if not (line.startswith(self._head) and line.endswith(self._tail)):
            return None
        try:
            text = from_json(line[self._start : self._end])
        except ValueError:
            return None
        if type(text) is not str:
            return None
        self._owner[self._key] = text
        self._tries = _TRIES
        return self._event

    def learn(self, line: bytes, event: JsonObject) -> None:
        """Learn the line that gave `event`, if one of the keys stands in it just once."""
        if self._tries <= 0:
            return
        self._tries -= 1
        for key in _KEYS:
            mark = b'"%b":' % key.encode()
            at = line.find(mark)
            found = _STRING.match(line, at + len(mark)) if at >= 0 and line.rfind(mark) == at else None
            owners = _owners(event, key) if found else []
            if found and len(owners) == 1:
                self._event, self._owner, self._key = event, owners[0], key
                self._head, self._tail = line[: found.start(1)], line[found.end(1) :]
                self._start, self._end = len(self._head), -len(self._tail)
                return


def _owners(value: Any, key: str) -> list[JsonObject]:
    """Give all objects inside `value` that have the key."""
    owners: list[JsonObject] = []
    waiting = [value]
    while waiting:
        inner = waiting.pop()
        if type(inner) is dict:
            if key in inner:
                owners.append(inner)
            waiting += inner.values()
        elif type(inner) is list:
            waiting += inner
    return owners
