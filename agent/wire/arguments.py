"""Make one JSON object of the pieces in which a tool call's arguments came, or say why there is none.

Plain concatenation wins whenever it parses. Besides it, shapes with only one reading are taken: a
`{}` placeholder before the real object, snapshots that each repeat the last one and go on, the whole
once more at the end, one extra layer of JSON encoding, raw control characters inside strings. Nothing
is repaired by guessing: running half of a guess is worse than asking again.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import dropwhile, pairwise
from typing import Any

from agent.message import JsonObject
from agent.wire.json_text import Nesting, read_strict

_NEAR_CHARS = 24
_MAX_TELLINGS = 8
"""How often one object may be told in the arguments of one call; beyond that nothing is clear."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Why text is no JSON object, as the end of a sentence that begins with `The arguments`."""

    why: str
    is_cut: bool = False
    is_too_long: bool = False


def read_arguments(fragments: Sequence[str]) -> JsonObject | Unreadable:
    """Read the arguments of one call; no text at all, or `null`, is a call without arguments."""
    text = "".join(fragments)
    plain = _read_object(text)
    if not isinstance(plain, Unreadable):
        return plain
    for other in _other_readings(fragments, text):
        found = _read_object(other)
        if not isinstance(found, Unreadable):
            return found
    return plain


def _other_readings(fragments: Sequence[str], text: str) -> list[str]:
    """Give the texts that the fragments can mean if they are not meant to be joined."""
    readings = []
    if (repeated := _repeated_object(text)) is not None:
        readings.append(repeated)
    pieces = [fragment for fragment in fragments if fragment.strip()]
    pieces = [*dropwhile(lambda piece: piece.strip() == "{}", pieces)]
    if len(pieces) > 1 and all(later.startswith(earlier) for earlier, later in pairwise(pieces)):
        readings.append(pieces[-1])
    return readings


def _repeated_object(text: str) -> str | None:
    """Give the one object that `text` says, after placeholders and again and again; None if there is none."""
    told, at = "", 0
    for _ in range(_MAX_TELLINGS):
        end = Nesting().feed(text, at)
        if end < 0:
            return None
        value, at = text[at:end], end
        if told and not is_same_object(told, value):
            return None
        if not told and _read_object(value) != {}:
            told = value
        if not text[at:].strip():
            return told or value
    return None


def check_object(arguments: JsonObject) -> JsonObject | Unreadable:
    """Give arguments that came as an object, unless they hold what JSON cannot tell."""
    try:
        json.dumps(arguments, ensure_ascii=False, allow_nan=False).encode()
    except ValueError as fault:
        return Unreadable(f"are not JSON: {fault}")
    return arguments


def is_same_object(text: str, other: str) -> bool:
    """Whether both texts are JSON objects with the same content, however they are spaced."""
    if text == other:
        return True
    found, again = _read_object(text), _read_object(other)
    return isinstance(found, dict) and isinstance(again, dict) and fingerprint(found) == fingerprint(again)


def fingerprint(arguments: JsonObject) -> str:
    """Give one text for all spellings of the same arguments; unlike `==` it tells 1 from true."""
    return json.dumps(arguments, sort_keys=True)


def _read_object(text: str) -> JsonObject | Unreadable:
    if not text or text.isspace():
        return {}
    try:
        found = read_strict(text)
        if isinstance(found, str) and (not found or found.isspace()):
            return {}
        if isinstance(found, str):
            found = read_strict(found)
    except (ValueError, RecursionError) as fault:
        return _explain(text, fault)
    if found is None:
        return {}
    return found if isinstance(found, dict) else Unreadable(f"are {_kind(found)} and not a JSON object")


def _kind(value: Any) -> str:
    match value:
        case bool():
            return "a JSON truth value"
        case list():
            return "a JSON array"
        case str():
            return "a JSON string"
    return "a JSON number"


def _explain(text: str, fault: Exception) -> Unreadable:
    """Put the parser's words into a sentence that tells a model what to mend, and where."""
    what, at = _place(text, fault)
    is_open = what.startswith(("EOF", "unterminated")) or at >= len(text.rstrip())
    if is_open and at >= 0:
        return Unreadable(f"are cut off after {len(text)} characters", is_cut=True)
    if at < 0:
        return Unreadable(f"are not JSON: {what}")
    if what == "trailing characters":
        what = "the object ends, but more text follows"
    near = text[max(0, at - _NEAR_CHARS) : at + _NEAR_CHARS]
    return Unreadable(f"are not JSON: {what} at character {at + 1}, near {json.dumps(near)}")


def _place(text: str, fault: Exception) -> tuple[str, int]:
    """Give a parser's complaint and the index it is about, -1 where it names none."""
    if isinstance(fault, json.JSONDecodeError):
        return fault.msg[:1].lower() + fault.msg[1:], fault.pos
    what, _, place = str(fault).partition(" at line ")
    line, _, column = place.partition(" column ")
    if not (line.isdigit() and column.isdigit()):
        return what, -1
    *before, broken = text.split("\n")[: int(line)]
    # pydantic_core counts columns in UTF-8 bytes, from one.
    head = broken.encode("utf-8", "replace")[: max(0, int(column) - 1)].decode("utf-8", "ignore")
    return what, sum(len(earlier) + 1 for earlier in before) + len(head)
