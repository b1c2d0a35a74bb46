"""Two calls are rebuilt whatever mixture of the known quirks they come with."""

import json
from itertools import product
from typing import Any

import pytest

from agent.message import Dialect
from tests.agent.wire.bodies import normalized, read

CALLS = (("call_a1", "read_file", {"path": "app/x.kt"}), ("call_b2", "build", {"task": "assemble"}))
SAME_TOOL = (CALLS[0], ("call_b2", "read_file", {"path": "b"}))
ABSENT = object()

INDEXES = ("right", "absent", "null", "zero", "from_one", "string", "float", "gap", "head_only", "tail_only")
IDS = ("head_only", "every", "empty_in_tail", "null_in_tail", "never", "empty")
NAMES = ("head_only", "every", "empty_in_tail", "null_in_tail")
HEADS = ("empty", "absent", "null", "first_fragment", "placeholder")
TELLINGS = ("snapshots", "replayed", "encoded_twice", "placeholder_in_pieces")


def _index(quirk: str, place: int, *, is_head: bool) -> Any:
    return {
        "right": place,
        "absent": ABSENT,
        "null": None,
        "zero": 0,
        "from_one": place + 1,
        "string": str(place),
        "float": float(place),
        "gap": place * 3,
        "head_only": place if is_head else ABSENT,
        "tail_only": ABSENT if is_head else place,
    }[quirk]


def _in_tail(quirk: str, value: str) -> Any:
    return {"every": value, "empty_in_tail": "", "null_in_tail": None, "empty": ""}.get(quirk, ABSENT)


def _delta(index: Any, call_id: Any, name: Any, arguments: Any) -> str:
    function = {"name": name, "arguments": arguments}
    call = {"index": index, "id": call_id, "function": _present(function)}
    choice = {"index": 0, "delta": {"tool_calls": [_present(call)]}, "finish_reason": None}
    return f"data: {json.dumps({'choices': [choice]})}\n\n"


def _present(keys: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in keys.items() if value is not ABSENT}


def _told(arguments: Any, fragments: int, telling: str) -> list[Any]:
    """Give the pieces in which arguments come, told in one of the ways with only one reading."""
    text = json.dumps(json.dumps(arguments)) if telling == "encoded_twice" else json.dumps(arguments)
    size = len(text) // fragments + 1
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    match telling:
        case "snapshots":
            return [text[: at + size] for at in range(0, len(text), size)]
        case "replayed":
            return [*pieces, text]
        case "placeholder_in_pieces":
            return ["{", "}", *pieces]
    return pieces


def _body(
    calls: Any, index: str, ids: str, names: str, head: str, fragments: int, telling: str = "once"
) -> bytes:
    body = []
    for place, (call_id, name, arguments) in enumerate(calls):
        pieces = _told(arguments, fragments, telling)
        if head != "first_fragment":
            pieces.insert(0, {"empty": "", "absent": ABSENT, "null": None, "placeholder": "{}"}[head])
        head_id = {"never": ABSENT, "empty": ""}.get(ids, call_id)
        body.append(_delta(_index(index, place, is_head=True), head_id, name, pieces[0]))
        at = _index(index, place, is_head=False)
        body += [_delta(at, _in_tail(ids, call_id), _in_tail(names, name), piece) for piece in pieces[1:]]
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
    return "".join([*body, f"data: {json.dumps(end)}\n\n", "data: [DONE]\n\n"]).encode()


@pytest.mark.parametrize("index", INDEXES)
def test_two_calls_survive_every_mixture_of_quirks(index: str) -> None:
    for calls, ids, names, head, fragments in product((CALLS, SAME_TOOL), IDS, NAMES, HEADS, (1, 3)):
        message = read(Dialect.OPENAI_CHAT, [_body(calls, index, ids, names, head, fragments)])
        has_ids = ids not in ("never", "empty")
        assert normalized(message)["tool_calls"] == [
            {"id": call_id if has_ids else f"call_{place}", "name": name, "arguments": arguments}
            for place, (call_id, name, arguments) in enumerate(calls)
        ], (ids, names, head, fragments)


@pytest.mark.parametrize("index", INDEXES)
def test_arguments_told_in_another_way_are_no_other_calls(index: str) -> None:
    names = ("head_only", "empty_in_tail", "null_in_tail")
    for calls, ids, name, telling, pieces in product((CALLS, SAME_TOOL), IDS, names, TELLINGS, (1, 3)):
        message = read(Dialect.OPENAI_CHAT, [_body(calls, index, ids, name, "empty", pieces, telling)])
        assert [call.arguments for call in message.tool_calls] == [call[2] for call in calls]
        assert all(call.is_executable for call in message.tool_calls), (ids, name, telling, pieces)
