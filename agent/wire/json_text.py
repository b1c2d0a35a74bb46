"""Read JSON as strangers write it, and find where a JSON value ends in text that is still coming."""

import json
import re
from typing import Any, Never

from pydantic_core import from_json

from agent.wire.limits import MAX_NESTING

_STRUCTURE = re.compile(r'["{}\[\]]')
_IN_STRING = re.compile(r'["\\]')
_CONTROL = re.compile(r"[\x00-\x1f]")


class Nesting:
    """Tell where a JSON object, array or string ends, however its text is cut.

    Only brackets and quotes are looked at; whether the text is JSON is for a parser to say.
    """

    __slots__ = ("_skip", "deepest", "depth", "in_string")

    def __init__(self) -> None:
        self.depth = 0
        self.deepest = 0
        self.in_string = False
        self._skip = 0

    def feed(self, text: str, start: int = 0) -> int:
        """Go on through `text` from `start`; give the index after the value's end, or -1 if it is open."""
        at, self._skip = start + self._skip, 0
        while True:
            found = (_IN_STRING if self.in_string else _STRUCTURE).search(text, at)
            if found is None:
                self._skip = max(0, at - len(text))
                return -1
            mark, at = found.group(), found.end()
            if mark == "\\":
                at += 1
            elif mark == '"':
                self.in_string = not self.in_string
                if not (self.in_string or self.depth):
                    return at
            elif mark in "{[":
                self.depth += 1
                self.deepest = max(self.deepest, self.depth)
            else:
                self.depth -= 1
                if self.depth <= 0:
                    return at


def read_event(data: bytes) -> Any:
    """Read the JSON of one event; raises `ValueError` where it is none.

    Tolerated, since they have one reading: raw control characters and halves of surrogate pairs inside
    strings, bytes that are no UTF-8 (each becomes U+FFFD), NaN and infinities (servers put them into
    log probabilities).
    """
    try:
        return from_json(data)
    except ValueError:
        return _read_odd(decode(data))


def is_text(data: bytes) -> bool:
    """Whether `decode` replaces nothing."""
    try:
        data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return False
    return True


def decode(data: bytes) -> str:
    """Decode UTF-8; surrogates encoded one by one stay what they are, all else that is wrong is replaced."""
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace")


def read_strict(text: str) -> Any:
    """Read JSON of which nothing may be guessed; raises `ValueError` where it is none.

    Raw control characters inside strings are taken as what they are; NaN, infinities and halves of
    surrogate pairs are refused.
    """
    text = mend_surrogates(text, replacement=None)
    try:
        found = from_json(text, allow_inf_nan=False)
    except ValueError:
        if not _CONTROL.search(text):
            raise
        found = _read_odd(text, parse_constant=_refuse)
        json.dumps(found, ensure_ascii=False).encode()
    if _has_infinity(found):
        raise ValueError("a number is too large")
    return found


def _read_odd(text: str, **hooks: Any) -> Any:
    if _deepest(text) > MAX_NESTING:
        raise ValueError(f"JSON nests deeper than {MAX_NESTING} levels")
    return json.loads(text, strict=False, **hooks)


def _deepest(text: str) -> int:
    nesting, at = Nesting(), 0
    while (at := nesting.feed(text, at)) >= 0:
        nesting.depth = 0
    return nesting.deepest


def _refuse(word: str) -> Never:
    raise ValueError(f"{word} is no JSON")


def _has_infinity(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_infinity, value.values()))
    if isinstance(value, list):
        return any(map(_has_infinity, value))
    return isinstance(value, float) and value in (float("inf"), float("-inf"))


def mend_surrogates(text: str, replacement: str | None = "\N{REPLACEMENT CHARACTER}") -> str:
    """Join halves of surrogate pairs that stand side by side; a half that is alone is replaced.

    Proxies that count UTF-16 units cut an emoji into two escapes in two deltas. Without a replacement
    a lone half raises `ValueError`.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        pairs = text.encode("utf-16-le", "surrogatepass")
        if replacement is None:
            return _joined(pairs)
        return pairs.decode("utf-16-le", "replace")
    return text


def mend_all(value: Any) -> Any:
    """Give a copy of a JSON value with all its strings mended."""
    match value:
        case str():
            return mend_surrogates(value)
        case dict():
            return {mend_surrogates(key): mend_all(inner) for key, inner in value.items()}
        case list():
            return [mend_all(inner) for inner in value]
    return value


def _joined(pairs: bytes) -> str:
    try:
        return pairs.decode("utf-16-le")
    except UnicodeDecodeError as fault:
        raise ValueError(f"half of a surrogate pair at character {fault.start // 2 + 1}") from fault


def ends_in_high_surrogate(text: str) -> bool:
    """Whether the last character waits for its other half."""
    return "\ud800" <= text[-1:] <= "\udbff"
