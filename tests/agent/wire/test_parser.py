"""The door: events for those who watch, limits, offsets, words for the model."""

import json
from typing import Any

import pytest

from agent.message import Diagnostic, Dialect, FinishReason, Usage
from agent.wire import CallDelta, ReasoningDelta, ResponseParser, TextDelta, UsageReport
from agent.wire.limits import MAX_ARGUMENT_CHARS, MAX_CALLS, MAX_DIAGNOSTICS, MAX_PARTS
from tests.agent.wire.bodies import codes, read, watch

CHAT = Dialect.OPENAI_CHAT


def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"


def call(index: int, arguments: str, **more: Any) -> bytes:
    function = {"arguments": arguments, **({"name": more.pop("name")} if "name" in more else {})}
    return chunk({"tool_calls": [{"index": index, "function": function, **more}]})


def test_events_tell_what_came_as_it_comes() -> None:
    usage = b'data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2}}\n\n'
    pieces = [
        chunk({"reasoning_content": "Hm"}),
        chunk({"content": "I "}) + chunk({"content": "write."}),
        call(0, "", id="a", name="write_file"),
        call(0, '{"path":') + call(0, '"a"}'),
        b"data: {broken\n\n",
        usage,
    ]
    assert watch(CHAT, pieces) == [
        ReasoningDelta("Hm"),
        TextDelta("I write."),
        CallDelta(0, "write_file", "", 0),
        CallDelta(0, "write_file", '{"path":"a"}', 12),
        Diagnostic("malformed_event", "no JSON object: {broken", sum(map(len, pieces[:4]))),
        UsageReport(Usage(5, 2)),
    ]


def test_half_of_an_emoji_waits_for_the_other_half() -> None:
    pieces = [chunk({"content": "Los \ud83d"}), chunk({"content": "\ude80!"})]
    assert watch(CHAT, pieces) == [TextDelta("Los "), TextDelta("🚀!")]


def test_what_may_be_a_tag_is_held_back() -> None:
    pieces = [chunk({"content": text}) for text in ("<th", "ink>Erst", " so</", "think>", "Gut")]
    assert watch(CHAT, pieces) == [ReasoningDelta("Erst"), ReasoningDelta(" so"), TextDelta("Gut")]


def test_a_parser_says_when_nothing_more_counts() -> None:
    parser = ResponseParser(CHAT)
    parser.feed(chunk({"content": "x"}, "stop"))
    assert not parser.is_done
    parser.feed(b"data: [DONE]\n\n")
    assert parser.is_done
    assert parser.feed(chunk({"content": "y"})) == []
    assert parser.close().text == "x"


ONE_OBJECT = "Nothing was run. Send the call again with its arguments as exactly one complete JSON object."
SHORTER = "Nothing was run. Send the call again with shorter arguments, or split the work into several calls."


@pytest.mark.parametrize(
    ("arguments", "finish", "fault"),
    [
        ('{"content":"unfin', "length", f"cut off after 17 characters (finish reason: length). {SHORTER}"),
        ('{"content":"unfin', "tool_calls", f"cut off after 17 characters. {ONE_OBJECT}"),
        (
            '{"path": a}',
            "tool_calls",
            f'not JSON: expected value at character 10, near "{{\\"path\\": a}}". {ONE_OBJECT}',
        ),
    ],
)
def test_a_refusal_tells_the_model_what_was_wrong_and_what_to_send(
    arguments: str, finish: str, fault: str
) -> None:
    message = read(CHAT, [call(0, arguments, id="a", name="write_file"), chunk({}, finish)])
    assert message.tool_calls[0].fault == f"The arguments of write_file are {fault}"
    assert message.tool_calls[0].raw_arguments == arguments


def test_a_call_whose_name_never_came_says_so() -> None:
    message = read(CHAT, [call(0, '{"a":1}'), chunk({}, "tool_calls")])
    assert message.tool_calls[0].fault == (
        "Arguments came that belong to no announced call (7 characters), so it is not known which tool was "
        "meant. Nothing was run. Send the call again with the tool's name and all of its arguments."
    )


def test_calls_beyond_the_limit_are_dropped_and_the_message_is_an_error() -> None:
    calls = [call(n, "{}", id=f"id{n}", name="f") for n in range(MAX_CALLS + 50)]
    message = read(CHAT, [*calls, chunk({}, "tool_calls")])
    assert len(message.tool_calls) == MAX_CALLS
    assert message.finish_reason is FinishReason.ERROR
    assert [found.code for found in message.diagnostics].count("limit_exceeded") == 1


def test_arguments_beyond_the_limit_are_refused() -> None:
    pieces = [call(0, '{"content":"', id="a", name="f"), *[call(0, "x" * 1_000_000)] * 17, call(0, '"}')]
    message = read(CHAT, [*pieces, call(1, "{}", id="b", name="f"), chunk({}, "tool_calls")])
    assert [found.is_executable for found in message.tool_calls] == [False, True]
    assert "limit_exceeded" in codes(message)
    assert message.tool_calls[0].fault == (
        f"The arguments of f are longer than {MAX_ARGUMENT_CHARS} characters. Nothing was run. "
        "Split the work into several calls with shorter arguments."
    )


@pytest.mark.parametrize("dialect", Dialect)
def test_a_line_of_64_mib_ends_the_message_cleanly(dialect: Dialect) -> None:
    megabyte = b"x" * (1 << 20)
    parser = ResponseParser(dialect)
    parser.feed(b'data: {"choices":[],"x":"')
    for _ in range(64):
        parser.feed(megabyte)
    assert parser.is_done
    message = parser.close()
    assert message.finish_reason is FinishReason.ERROR
    assert codes(message) == {"limit_exceeded"}


def test_a_stream_of_nothing_but_faults_keeps_few_diagnostics() -> None:
    message = read(CHAT, [b"data: {broken\n\n" * 10_000])
    assert len(message.diagnostics) == MAX_DIAGNOSTICS + 1
    assert message.diagnostics[-1].code == "stream_truncated"


def test_a_limit_is_told_even_after_many_faults() -> None:
    block = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    message = read(Dialect.ANTHROPIC, [b"data: " + json.dumps(block).encode() + b"\n\n"] * (MAX_PARTS + 1))
    assert message.finish_reason is FinishReason.ERROR
    assert message.diagnostics[-1].code == "limit_exceeded"


def test_a_stream_of_failures_keeps_few_diagnostics() -> None:
    message = read(CHAT, [b'data: {"error":"x"}\n\n' * 10_000])
    assert codes(message) == {"provider_error"}
    assert len(message.diagnostics) <= MAX_DIAGNOSTICS


def test_a_name_repeated_with_every_fragment_takes_linear_time() -> None:
    pieces = [call(0, "", id="a", name="f"), *(call(0, piece, name="f") for piece in '{"n":"' + "x" * 5_000)]
    message = read(CHAT, [*pieces, call(0, '"}', name="f"), chunk({}, "tool_calls")])
    assert message.tool_calls[0].arguments == {"n": "x" * 5_000}


def test_diagnostics_name_the_byte_where_it_arose() -> None:
    first = chunk({"content": "ü"})
    lost = b"\r\ndata: {lost\r\n\r\n"
    odd = call(3, "[1]", id="a", name="f")
    message = read(CHAT, [first, lost, odd, chunk({}, "tool_calls")])
    places = {found.code: found.offset_bytes for found in message.diagnostics}
    assert places == {
        "malformed_event": len(first) + 2,
        "index_renumbered": len(first + lost),
        "invalid_arguments": len(first + lost),
        "no_executable_tool_call": len(first + lost + odd),
    }


def test_a_failed_gemini_call_carries_the_providers_words() -> None:
    candidate = {
        "finishReason": "MALFORMED_FUNCTION_CALL",
        "finishMessage": "Malformed function call: print(",
    }
    message = read(Dialect.GEMINI, [b"data: " + json.dumps({"candidates": [candidate]}).encode() + b"\n\n"])
    assert message.finish_reason is FinishReason.ERROR
    assert message.diagnostics[0].detail.endswith("Malformed function call: print(")
