"""What holds for every response: any cut, any interleaving, any garbage."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.message import Dialect, FinishReason, Usage
from agent.wire.think_tag import CLOSE_TAG, OPEN_TAG
from tests.agent.wire.bodies import load_cases, read, watch
from tests.agent.wire.streams import Spoken, SpokenCall, write

BODIES = {
    dialect: [case.body for case in load_cases() if case.dialect is dialect and len(case.body) < 6_000]
    for dialect in Dialect
}
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
UNICODE = st.characters(exclude_categories=["Cs"])
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**20), 10**20),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(UNICODE, max_size=20),
)
JSON_VALUES: st.SearchStrategy[Any] = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
ARGUMENTS = st.dictionaries(st.text(UNICODE, max_size=8), JSON_VALUES, max_size=4)
KEYS = st.sampled_from(
    [
        "type",
        "index",
        "id",
        "call_id",
        "item_id",
        "output_index",
        "delta",
        "choices",
        "message",
        "content",
        "text",
        "tool_calls",
        "function",
        "name",
        "arguments",
        "partial_json",
        "candidates",
        "parts",
        "functionCall",
        "args",
        "item",
        "response",
        "output",
        "status",
        "usage",
        "error",
        "finish_reason",
        "stop_reason",
        "content_block",
    ]
)
VALUES = st.sampled_from(
    [
        *("", "f", "{}", '{"a":1}', "\ud83d", None, True, -1, 0, 1, 1.5),
        *[
            "stop",
            "tool_calls",
            "function_call",
            "tool_use",
            "message_delta",
            "content_block_start",
            "content_block_delta",
        ],
        *["response.output_item.added", "response.output_item.done", "response.output_text.delta"],
        *["response.function_call_arguments.delta", "response.completed"],
    ]
)
ODD_EVENTS: st.SearchStrategy[Any] = st.dictionaries(
    KEYS,
    st.recursive(
        VALUES,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5),
        max_leaves=12,
    ),
    max_size=6,
)


@st.composite
def spoken_calls(draw: st.DrawFn) -> SpokenCall:
    arguments = draw(ARGUMENTS)
    text = json.dumps(arguments, ensure_ascii=draw(st.booleans()))
    places = sorted(draw(st.lists(st.integers(0, len(text)), max_size=6)))
    pieces = tuple(text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True))
    name = draw(st.sampled_from(["read_file", "write_file", "build_gradle_project"]))
    return SpokenCall("", name, arguments, pieces)


@st.composite
def spoken(draw: st.DrawFn) -> Spoken:
    drawn = draw(st.lists(spoken_calls(), max_size=4))
    calls = tuple(SpokenCall(f"id{n}", c.name, c.arguments, c.fragments) for n, c in enumerate(drawn))
    text = tuple(draw(st.lists(TEXTS, max_size=4)))
    if "".join(text).startswith(OPEN_TAG[0]):
        text = (".", *text)
    return Spoken(
        tuple(draw(st.lists(TEXTS, max_size=3))),
        text,
        calls,
        tuple(draw(st.lists(st.integers(0, 3), max_size=12))),
    )


def cut_at(body: bytes, places: list[int]) -> list[bytes]:
    ends = sorted(place % (len(body) + 1) for place in places)
    return [body[a:b] for a, b in zip([0, *ends], [*ends, len(body)], strict=True)]


@pytest.mark.parametrize("dialect", Dialect)
@given(message=spoken(), places=st.lists(st.integers(0, 10_000), max_size=8))
@settings(deadline=None, max_examples=40)
def test_what_a_dialect_streams_is_read_exactly_in_any_interleaving(
    dialect: Dialect, message: Spoken, places: list[int]
) -> None:
    body = write(dialect, message)
    found = read(dialect, cut_at(body, places))
    assert found.text == "".join(message.text)
    assert found.reasoning == "".join(message.reasoning)
    assert [(call.id, call.name, call.arguments, call.fault) for call in found.tool_calls] == [
        (call.id, call.name, call.arguments, None) for call in message.calls
    ]
    assert found.finish_reason is (FinishReason.TOOL_CALLS if message.calls else FinishReason.STOP)
    assert found.usage == Usage(7, 3)
    assert {code.code for code in found.diagnostics} <= {"tool_call_in_text"}


@pytest.mark.parametrize("dialect", Dialect)
@given(message=spoken(), places=st.lists(st.integers(0, 10_000), max_size=8))
@settings(deadline=None, max_examples=40)
def test_the_events_add_up_to_the_message(dialect: Dialect, message: Spoken, places: list[int]) -> None:
    told: dict[str, str] = {}
    for event in watch(dialect, cut_at(write(dialect, message), places)):
        kind = type(event).__name__
        text = getattr(event, "text", "") or getattr(event, "arguments", "")
        told[kind] = told.get(kind, "") + text
    assert told.get("TextDelta", "") == "".join(message.text)
    assert told.get("ReasoningDelta", "") == "".join(message.reasoning)
    if dialect is not Dialect.GEMINI:
        assert sorted(told.get("CallDelta", "")) == sorted(
            "".join(p for c in message.calls for p in c.fragments)
        )


@pytest.mark.parametrize("dialect", Dialect)
@given(data=st.data())
@settings(deadline=None, max_examples=40)
def test_any_cut_of_any_body_gives_the_same(dialect: Dialect, data: st.DataObject) -> None:
    body = data.draw(st.sampled_from(BODIES[dialect]))
    places = data.draw(st.lists(st.integers(0, len(body)), max_size=20))
    assert read(dialect, cut_at(body, places)) == read(dialect, [body])


@pytest.mark.parametrize("dialect", Dialect)
@given(
    thinking=st.lists(st.sampled_from(["<", "/", "think>", "</thin", "<think>", "a"]), max_size=5),
    places=st.lists(st.integers(0, 60), max_size=20),
)
@settings(deadline=None, max_examples=40)
def test_a_think_block_is_thinking_wherever_deltas_cut_it(
    dialect: Dialect, thinking: list[str], places: list[int]
) -> None:
    inside = "".join(thinking).replace(CLOSE_TAG, "")
    text = f"{OPEN_TAG}{inside}{CLOSE_TAG}Answer."
    ends = sorted(min(place, len(text)) for place in places)
    cut = tuple(text[a:b] for a, b in zip([0, *ends], [*ends, len(text)], strict=True))
    told, _, rest = (inside + CLOSE_TAG + "Answer.").partition(CLOSE_TAG)
    for pieces in (cut, tuple(text)):
        message = read(dialect, [write(dialect, Spoken(text=pieces))])
        assert (message.reasoning, message.text) == (told, rest)


@pytest.mark.parametrize("dialect", Dialect)
@given(pieces=st.lists(st.binary(max_size=60) | st.sampled_from([b"data: ", b"\n\n", b"{", b'"', b"[DONE]"])))
@settings(deadline=None, max_examples=40)
def test_bytes_of_any_kind_raise_nothing(dialect: Dialect, pieces: list[bytes]) -> None:
    assert read(dialect, pieces) == read(dialect, [b"".join(pieces)])


@pytest.mark.parametrize("dialect", Dialect)
@given(events=st.lists(ODD_EVENTS, max_size=6))
@settings(deadline=None, max_examples=60)
def test_events_of_any_shape_raise_nothing(dialect: Dialect, events: list[dict[str, Any]]) -> None:
    body = "".join(f"data: {json.dumps(event)}\n\n" for event in events).encode()
    message = read(dialect, [body])
    ids = [call.id for call in message.tool_calls]
    assert len(set(ids)) == len(ids)
    assert all(call.fault is None or call.fault.startswith(("The arguments", "A call", "Arguments"))
               for call in message.tool_calls)  # fmt: skip
