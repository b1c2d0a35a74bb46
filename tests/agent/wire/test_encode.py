"""Requests: what goes back to a provider, in its own form, and what does not."""

import json
import re
from copy import deepcopy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.message import (
    ConversationItem,
    Dialect,
    FinishReason,
    Message,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolResult,
    UserMessage,
)
from agent.wire import Encoder, encode
from tests.agent.wire.bodies import Case, load_cases, read
from tests.agent.wire.conversations import SPOKEN, ask, results_of
from tests.agent.wire.streams import write


@pytest.mark.parametrize(
    ("dialect", "choice", "field", "expected"),
    [
        (Dialect.OPENAI_CHAT, "required", "tool_choice", "required"),
        (Dialect.OPENAI_CHAT, "f", "tool_choice", {"type": "function", "function": {"name": "f"}}),
        (Dialect.OPENAI_RESPONSES, "f", "tool_choice", {"type": "function", "name": "f"}),
        (Dialect.OPENAI_RESPONSES, "none", "tool_choice", "none"),
        (Dialect.ANTHROPIC, "required", "tool_choice", {"type": "any"}),
        (Dialect.ANTHROPIC, "none", "tool_choice", {"type": "none"}),
        (Dialect.ANTHROPIC, "f", "tool_choice", {"type": "tool", "name": "f"}),
        (Dialect.GEMINI, "required", "toolConfig", {"functionCallingConfig": {"mode": "ANY"}}),
        (Dialect.GEMINI, "none", "toolConfig", {"functionCallingConfig": {"mode": "NONE"}}),
        (
            Dialect.GEMINI,
            "f",
            "toolConfig",
            {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f"]}},
        ),
    ],
)
def test_a_tool_choice_is_told_in_the_dialects_words(
    dialect: Dialect, choice: str, field: str, expected: object
) -> None:
    assert encode(dialect, ask(UserMessage("go"), tool_choice=choice))[field] == expected
    assert field not in encode(dialect, ask(UserMessage("go")))


def test_what_a_provider_adds_is_merged_and_what_it_refuses_is_left_out() -> None:
    request = ask(
        UserMessage("go"),
        max_output_tokens=9,
        effort="8192",
        extra={"generationConfig": {"thinkingConfig": {"includeThoughts": False}, "topK": 1}, "x": 1},
        dropped_fields=frozenset({"tools", "systemInstruction"}),
    )
    assert encode(Dialect.GEMINI, request) == {
        "contents": [{"role": "user", "parts": [{"text": "go"}]}],
        "generationConfig": {
            "maxOutputTokens": 9,
            "thinkingConfig": {"thinkingBudget": 8192, "includeThoughts": False},
            "topK": 1,
        },
        "x": 1,
    }


def test_a_refused_call_goes_back_with_empty_arguments_and_a_name_that_providers_take() -> None:
    call = ToolCall("a b:0", "functions.read file", {}, "cut off", "a b:0", '{"pa')
    message = Message((call,), FinishReason.LENGTH)
    request = ask(UserMessage("go"), message, ToolResult("a b:0", call.name, "cut off", is_error=True))
    chat = encode(Dialect.OPENAI_CHAT, request)["messages"]
    assert chat[2]["tool_calls"][0]["function"] == {"name": "functions_read_file", "arguments": "{}"}
    assert chat[2]["tool_calls"][0]["id"] == chat[3]["tool_call_id"] == "a_b_0"
    blocks = encode(Dialect.ANTHROPIC, request)["messages"]
    assert blocks[1]["content"][0]["id"] == blocks[2]["content"][0]["tool_use_id"] == "a_b_0"
    assert blocks[2]["content"][0]["is_error"] is True


def test_made_ids_are_unique_over_the_whole_conversation_and_stay_as_it_grows() -> None:
    def turn(path: str) -> list[ConversationItem]:
        call = ToolCall("call_0", "read_file", {"path": path})
        return [Message((call,), FinishReason.TOOL_CALLS), ToolResult("call_0", "read_file", path)]

    items = [UserMessage("go"), *turn("a"), *turn("b"), *turn("c")]
    long = encode(Dialect.OPENAI_CHAT, ask(*items))["messages"]
    sent = [call["id"] for message in long for call in message.get("tool_calls", ())]
    answered = [message["tool_call_id"] for message in long if message["role"] == "tool"]
    assert len(set(sent)) == 3
    assert answered == sent
    short = encode(Dialect.OPENAI_CHAT, ask(*items[:5]))["messages"]
    assert long[: len(short)] == short


def test_a_provider_with_ids_of_one_length_gets_such_ids() -> None:
    calls = tuple(ToolCall(call_id, "f", {}) for call_id in ("call_0", "AbCdEf123", "functions.f:0"))
    items = [UserMessage("go"), Message(calls), *(ToolResult(call.id, "f", "x") for call in calls)]
    messages = encode(Dialect.OPENAI_CHAT, ask(*items, call_id_chars=9))["messages"]
    ids = [call["id"] for call in messages[2]["tool_calls"]]
    assert all(re.fullmatch(r"[A-Za-z0-9]{9}", call_id) for call_id in ids)
    assert ids[1] == "AbCdEf123"
    assert [message["tool_call_id"] for message in messages[3:]] == ids


def test_thinking_goes_back_in_the_field_that_the_provider_wants() -> None:
    foreign = Message((ReasoningPart("Hm."), TextPart("Yes.")))
    silent = Message((TextPart("No."),))
    request = ask(UserMessage("go"), foreign, silent, echo_reasoning="reasoning_content", echo_empty=True)
    messages = encode(Dialect.OPENAI_CHAT, request)["messages"]
    assert [message["reasoning_content"] for message in messages[2:]] == ["Hm.", ""]
    plain = encode(Dialect.OPENAI_CHAT, ask(UserMessage("go"), foreign))["messages"]
    assert plain[2] == {"role": "assistant", "content": "Yes."}


def test_reasoning_details_go_back_unmodified_with_their_pieces_joined() -> None:
    deltas = [
        {"reasoning": "Er", "reasoning_details": [{"type": "reasoning.text", "text": "Er", "index": 0}]},
        {"reasoning": "st", "reasoning_details": [{"type": "reasoning.text", "text": "st", "index": 0}]},
        {"reasoning_details": [{"type": "reasoning.text", "signature": "sig", "index": 0}]},
        {"reasoning_details": [{"type": "reasoning.encrypted", "data": "xyz", "index": 1}]},
        {"content": "Gut."},
    ]
    events = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    body = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
    message = read(Dialect.OPENAI_CHAT, [body.encode()])
    sent = encode(Dialect.OPENAI_CHAT, ask(UserMessage("go"), message))["messages"][2]
    assert message.reasoning == "Erst"
    assert sent["reasoning_details"] == [
        {"type": "reasoning.text", "text": "Erst", "index": 0, "signature": "sig"},
        {"type": "reasoning.encrypted", "data": "xyz", "index": 1},
    ]


def test_a_think_block_goes_back_where_it_stood() -> None:
    body = 'data: {"choices":[{"delta":{"content":"<think>Erst</think>Gut."}}]}\n\ndata: [DONE]\n\n'
    message = read(Dialect.OPENAI_CHAT, [body.encode()])
    sent = encode(Dialect.OPENAI_CHAT, ask(UserMessage("go"), message))["messages"][2]
    assert sent == {"role": "assistant", "content": "<think>Erst</think>Gut."}


def test_extra_content_of_a_chat_call_goes_back_with_it() -> None:
    extra = {"google": {"thought_signature": "s=="}}
    call = {"index": 0, "id": "x", "function": {"name": "f", "arguments": "{}"}, "extra_content": extra}
    event = {"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}
    message = read(Dialect.OPENAI_CHAT, [f"data: {json.dumps(event)}\n\n".encode()])
    sent = encode(Dialect.OPENAI_CHAT, ask(UserMessage("go"), message))["messages"][2]
    assert sent["tool_calls"][0]["extra_content"] == extra


def test_a_message_for_another_model_carries_no_signatures() -> None:
    for dialect in Dialect:
        bare = read(dialect, [write(dialect, SPOKEN)]).without_provider_data()
        body = json.dumps(encode(dialect, ask(UserMessage("go"), bare, *results_of(bare))))
        assert "sig" not in body.replace("signature", "")
        assert '"enc"' not in body
        assert "a.kt" in body


def test_cache_marks_stand_after_the_system_prompt_and_the_last_two_user_turns() -> None:
    message = Message((TextPart("Yes."),))
    request = ask(UserMessage("a"), message, UserMessage("b"), message, UserMessage("c"), cache_ttl_s=3600)
    body = encode(Dialect.ANTHROPIC, request)
    mark = {"type": "ephemeral", "ttl": "1h"}
    assert body["system"][-1]["cache_control"] == mark
    marked = [turn["content"][-1].get("cache_control") for turn in body["messages"] if turn["role"] == "user"]
    assert marked == [None, mark, mark]


def test_tool_results_stand_before_the_text_of_their_turn() -> None:
    calls = (ToolCall("a", "f", {}), ToolCall("b", "f", {}))
    items = [Message(calls), ToolResult("a", "f", "1"), UserMessage("and"), ToolResult("b", "f", "")]
    content = encode(Dialect.ANTHROPIC, ask(UserMessage("go"), *items))["messages"][2]["content"]
    assert [block["type"] for block in content] == ["tool_result", "tool_result", "text"]


def test_a_custom_tool_call_goes_back_as_text() -> None:
    item = {"type": "custom_tool_call", "call_id": "c", "name": "sh", "input": "ls -l", "status": "completed"}
    event = {"type": "response.completed", "response": {"status": "completed", "output": [item]}}
    message = read(Dialect.OPENAI_RESPONSES, [f"data: {json.dumps(event)}\n\n".encode()])
    sent = encode(Dialect.OPENAI_RESPONSES, ask(UserMessage("go"), message, *results_of(message)))["input"]
    assert sent[1:] == [
        {"type": "custom_tool_call", "call_id": "c", "name": "sh", "input": "ls -l"},
        {"type": "custom_tool_call_output", "call_id": "c", "output": "result of c"},
    ]


@pytest.mark.parametrize(
    ("case_id", "dialect", "kinds"),
    [
        (
            "anthropic-server-web-search-is-no-client-call",
            Dialect.ANTHROPIC,
            ["server_tool_use", "web_search_tool_result", "text"],
        ),
        ("openai-responses-web-search-item", Dialect.OPENAI_RESPONSES, ["web_search_call", "message"]),
    ],
)
def test_tools_that_the_provider_ran_go_back_in_their_place(
    case_id: str, dialect: Dialect, kinds: list[str]
) -> None:
    case = next(case for case in load_cases() if case.id == case_id)
    body = encode(dialect, ask(UserMessage("go"), read(dialect, [case.body])))
    sent = body["messages"][1]["content"] if dialect is Dialect.ANTHROPIC else body["input"][1:]
    assert [block["type"] for block in sent] == kinds


@pytest.mark.parametrize("case", load_cases(), ids=lambda case: case.id)
def test_every_message_can_go_back_in_every_dialect(case: Case) -> None:
    message = read(case.dialect, [case.body])
    items = [UserMessage("go"), message, *results_of(message), message, *results_of(message)]
    for dialect in Dialect:
        text = json.dumps(encode(dialect, ask(*items)), ensure_ascii=False, allow_nan=False)
        assert text.encode()
        if dialect is not Dialect.GEMINI:
            name = {"openai-chat": "tool_call_id", "anthropic": "tool_use_id"}.get(dialect, "call_id")
            ids = re.findall(rf'"{name}": "([^"]+)", "(?:content|output)": "result', text)
            assert len(set(ids)) == len(ids) == 2 * len(message.tool_calls)


def items_of(number: int) -> list[ConversationItem]:
    """Give a word of the person (even), or a message of some dialect with its results (odd)."""
    if number % 2 == 0:
        return [UserMessage(f"say {number}" if number % 4 else " ")]
    message = read(list(Dialect)[number % 4], [write(list(Dialect)[number % 4], SPOKEN)])
    return [message, *results_of(message)]


@pytest.mark.parametrize("dialect", Dialect)
@given(numbers=st.lists(st.integers(0, 7), max_size=6), folds_at=st.integers(1, 6), cache=st.booleans())
def test_what_is_kept_of_a_conversation_is_what_writing_it_anew_gives(
    dialect: Dialect, numbers: list[int], folds_at: int, cache: bool
) -> None:
    items: list[ConversationItem] = []
    encoder, given_out = Encoder(dialect), []
    for step, number in enumerate(numbers):
        items = [UserMessage("folded")] if step == folds_at else items
        items += items_of(number)
        how = {"cache_ttl_s": 300 if cache else None, "echo_reasoning": "reasoning" if step > 4 else None}
        body = encoder.encode(ask(*items, **how))
        assert body == encode(dialect, ask(*items, **how))
        given_out.append((body, deepcopy(body)))
    assert all(body == then for body, then in given_out)
