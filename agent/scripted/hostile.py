"""Flaws that providers have shown in public, laid over a sound response in any dialect.

Each flavor is the flaw of a row of public reports; where a dialect has no such place, the nearest flaw
with the same effect stands in (Gemini sends calls whole, so a cut call is one that never came).
"""

from collections.abc import Callable
from copy import deepcopy
from enum import StrEnum
from typing import Any

from agent.message import Dialect, JsonObject
from agent.scripted.frame import Frame


class Flavor(StrEnum):
    """A flaw of a response."""

    CALLS_ANNOUNCED_NONE_SENT = "calls_announced_none_sent"
    NO_INDEX = "no_index"
    ONE_INDEX_TWO_IDS = "one_index_two_ids"
    NO_NAME = "no_name"
    HEAD_REPEATED = "head_repeated"
    IDS_EMPTY = "ids_empty"
    ARGUMENTS_CUT = "arguments_cut"
    INDEX_FROM_ONE = "index_from_one"
    NO_FINISH = "no_finish"
    BROKEN_LINE = "broken_line"


def spoil(frames: list[Frame], flavor: Flavor, dialect: Dialect) -> list[Frame]:
    """Give the response with the flaw."""
    fresh = [Frame(deepcopy(frame.data), frame.event) for frame in frames]
    match flavor:
        case Flavor.BROKEN_LINE:
            middle = len(fresh) // 2
            return [*fresh[:middle], Frame('{"cut": "in the mid'), *fresh[middle:]]
        case Flavor.NO_FINISH:
            return [frame for frame in fresh if not _is_end(frame)]
        case Flavor.CALLS_ANNOUNCED_NONE_SENT:
            return _without_calls(fresh, dialect)
        case Flavor.ARGUMENTS_CUT:
            return _cut(fresh, dialect)
        case Flavor.HEAD_REPEATED:
            return _repeated(fresh, dialect)
        case _:
            change = _CHANGES[flavor]
            return [_changed(frame, change) for frame in fresh]


def _objects(value: Any) -> list[JsonObject]:
    """Give all objects inside a value, outermost first."""
    if isinstance(value, list):
        return [found for item in value for found in _objects(item)]
    if isinstance(value, dict):
        return [value, *(found for item in value.values() for found in _objects(item))]
    return []


def _is_call(found: JsonObject) -> bool:
    """Say whether an object is a call, or the head of one, in any dialect."""
    return (
        found.get("type") in ("tool_use", "function_call")
        or ("function" in found and "index" in found)
        or ("args" in found and "name" in found)
    )


def _changed(frame: Frame, change: Callable[[JsonObject], None]) -> Frame:
    for found in _objects(frame.data):
        change(found)
    return frame


_INDEX_KEYS = ("index", "output_index")


def _has_index_of_a_part(found: JsonObject) -> bool:
    """Leave alone the index of a choice or candidate: the flaw is about calls and blocks."""
    is_choice = found.keys() & {"finish_reason", "finishReason", "content"}
    return not is_choice and any(key in found for key in _INDEX_KEYS)


def _no_index(found: JsonObject) -> None:
    if _has_index_of_a_part(found):
        for key in _INDEX_KEYS:
            found.pop(key, None)


def _same_index(found: JsonObject) -> None:
    if _has_index_of_a_part(found):
        for key in _INDEX_KEYS:
            if key in found:
                found[key] = 0


def _index_from_one(found: JsonObject) -> None:
    if _has_index_of_a_part(found):
        for key in _INDEX_KEYS:
            if key in found:
                found[key] += 1


def _no_name(found: JsonObject) -> None:
    if _is_call(found):
        found.pop("name", None)
        if isinstance(found.get("function"), dict):
            found["function"].pop("name", None)


def _empty_ids(found: JsonObject) -> None:
    if _is_call(found):
        for key in ("id", "call_id"):
            if key in found:
                found[key] = ""


_CHANGES: dict[Flavor, Callable[[JsonObject], None]] = {
    Flavor.NO_INDEX: _no_index,
    Flavor.ONE_INDEX_TWO_IDS: _same_index,
    Flavor.INDEX_FROM_ONE: _index_from_one,
    Flavor.NO_NAME: _no_name,
    Flavor.IDS_EMPTY: _empty_ids,
}


def _is_end(frame: Frame) -> bool:
    """Say whether an event ends the response."""
    if isinstance(frame.data, str):
        return frame.data == "[DONE]"
    kinds = ("message_delta", "message_stop", "response.completed", "response.incomplete")
    finishes = any(f.get("finish_reason") or f.get("finishReason") for f in _objects(frame.data))
    return frame.data.get("type") in kinds or finishes


def _tells_of_call(frame: Frame) -> bool:
    """Say whether an event is part of a call, its arguments included."""
    if isinstance(frame.data, str) or _is_end(frame):
        return False
    is_part = "function_call_arguments" in str(frame.data.get("type"))
    return is_part or any(_is_call(f) or f.get("type") == "input_json_delta" for f in _objects(frame.data))


def _without_calls(frames: list[Frame], dialect: Dialect) -> list[Frame]:
    """Drop the calls but end as if they were there.

    The Responses dialect has no word for that; there the calls' arguments come without their heads.
    """
    kept = [f for f in frames if not _tells_of_call(f) or "arguments.delta" in str(f.event)]
    for frame in kept:
        for found in _objects(frame.data):
            if isinstance(found.get("output"), list):
                found["output"] = [item for item in found["output"] if not _is_call(item)]
            if dialect is Dialect.GEMINI and found.get("finishReason") == "STOP":
                found["finishReason"] = "MALFORMED_FUNCTION_CALL"
    return kept


def _cut(frames: list[Frame], dialect: Dialect) -> list[Frame]:
    """End the response in the middle of its last call, with the finish reason for length."""
    parts = [n for n, frame in enumerate(frames) if _tells_of_call(frame)]
    at = parts[0] if dialect is Dialect.GEMINI else parts[len(parts) // 2]
    head, tail = frames[:at], [frame for frame in frames[at:] if _is_end(frame) or not _objects(frame.data)]
    for frame in tail:
        for found in _objects(frame.data):
            for key, word in _LENGTH_WORDS.items():
                if found.get(key):
                    found[key] = word
            if isinstance(found.get("output"), list):
                found |= {
                    "output": [],
                    "incomplete_details": {"reason": "max_output_tokens"},
                    "status": "incomplete",
                }
        if isinstance(frame.data, dict) and frame.data.get("type") == "response.completed":
            frame.data["type"] = "response.incomplete"
    return head + tail


_LENGTH_WORDS = {"finish_reason": "length", "finishReason": "MAX_TOKENS", "stop_reason": "max_tokens"}


def _repeated(frames: list[Frame], dialect: Dialect) -> list[Frame]:
    """Send the head of each call, with id and name, again: in each piece on chat, else once more."""
    result: list[Frame] = []
    head: JsonObject = {}
    for frame in frames:
        heads = [found for found in _objects(frame.data) if _is_call(found)]
        result.append(frame)
        if dialect is Dialect.OPENAI_CHAT and heads:
            if heads[0].get("id"):
                head = {"id": heads[0]["id"], "name": heads[0]["function"]["name"]}
            heads[0]["id"], heads[0]["function"]["name"] = head["id"], head["name"]
        elif heads and not _is_end(frame) and not str(frame.event).endswith("done"):
            result.append(frame)
    return result
