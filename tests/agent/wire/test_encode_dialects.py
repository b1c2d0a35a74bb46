"""A whole conversation in each dialect: what goes back, and where it stands."""

import json

from agent.message import (
    Dialect,
    UserMessage,
)
from agent.wire import encode
from tests.agent.wire.bodies import read
from tests.agent.wire.conversations import TOOL, ask, conversation, results_of


def test_a_chat_request_sends_thinking_back_in_the_field_it_came_in() -> None:
    function = {"name": TOOL.name, "description": TOOL.description, "parameters": TOOL.parameters}
    assert conversation(Dialect.OPENAI_CHAT, max_output_tokens=50, effort="high") == {
        "model": "m-1",
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 50,
        "reasoning_effort": "high",
        "tools": [{"type": "function", "function": function}],
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "go"},
            {
                "role": "assistant",
                "content": "I read.",
                "reasoning_content": "Hm, so.",
                "tool_calls": [
                    {
                        "id": "id0",
                        "type": "function",
                        "function": {"name": "read_file", "arguments": '{"path":"a.kt"}'},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "id0", "content": "result of id0"},
        ],
    }


def test_an_anthropic_request_sends_signed_thinking_back_first() -> None:
    body = conversation(Dialect.ANTHROPIC, max_output_tokens=50, effort="high")
    assert body["output_config"] == {"effort": "high"}
    assert body["tools"] == [
        {"name": TOOL.name, "description": TOOL.description, "input_schema": TOOL.parameters}
    ]
    assert body["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "go"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Hm, so.", "signature": "sig"},
                {"type": "text", "text": "I read."},
                {"type": "tool_use", "id": "id0", "name": "read_file", "input": {"path": "a.kt"}},
            ],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "id0", "content": "result of id0"}],
        },
    ]


def test_a_responses_request_sends_encrypted_reasoning_items_back() -> None:
    body = conversation(Dialect.OPENAI_RESPONSES, effort="high")
    assert body["store"] is False
    assert body["include"] == ["reasoning.encrypted_content"]
    assert body["reasoning"] == {"effort": "high", "summary": "auto"}
    summary = [{"type": "summary_text", "text": "Hm, so."}]
    assert body["input"] == [
        {"role": "user", "content": "go"},
        {"id": "rs", "type": "reasoning", "summary": summary, "encrypted_content": "enc"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I read."}]},
        {"type": "function_call", "call_id": "id0", "name": "read_file", "arguments": '{"path":"a.kt"}'},
        {"type": "function_call_output", "call_id": "id0", "output": "result of id0"},
    ]


def test_a_gemini_request_sends_signatures_back_on_the_very_part() -> None:
    parts = [
        {"text": "secret", "thought": True},
        {"text": "I read."},
        {"functionCall": {"name": "read_file", "args": {"path": "a"}, "id": "x"}, "thoughtSignature": "s1"},
        {"functionCall": {"name": "read_file", "args": {"path": "b"}}},
        {"text": "", "thoughtSignature": "s2"},
    ]
    event = {"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]}
    message = read(Dialect.GEMINI, [f"data: {json.dumps(event)}\n\n".encode()])
    body = encode(Dialect.GEMINI, ask(UserMessage("go"), message, *results_of(message), effort="high"))
    assert body["contents"] == [
        {"role": "user", "parts": [{"text": "go"}]},
        {"role": "model", "parts": parts[1:]},
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"id": "x", "name": "read_file", "response": {"result": "result of x"}}},
                {"functionResponse": {"name": "read_file", "response": {"result": "result of call_1"}}},
            ],
        },
    ]
    assert body["generationConfig"] == {"thinkingConfig": {"thinkingLevel": "high", "includeThoughts": True}}
