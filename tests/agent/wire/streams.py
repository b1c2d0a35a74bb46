"""Writes messages as each dialect's own servers stream them."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from agent.message import Dialect


@dataclass(frozen=True)
class SpokenCall:
    """A call and the fragments in which its arguments are sent."""

    id: str
    name: str
    arguments: dict[str, Any]
    fragments: tuple[str, ...] = ()


@dataclass(frozen=True)
class Spoken:
    """What a model says: thinking, text, calls; `order` tells which call's fragment comes next."""

    reasoning: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    calls: tuple[SpokenCall, ...] = ()
    order: tuple[int, ...] = field(default=())

    def fragments(self) -> Iterator[tuple[int, str]]:
        waiting = [list(call.fragments) for call in self.calls]
        for turn in self.order:
            number = turn % len(self.calls) if self.calls else 0
            if self.calls and waiting[number]:
                yield number, waiting[number].pop(0)
        for number, rest in enumerate(waiting):
            yield from ((number, piece) for piece in rest)


def write(dialect: Dialect, spoken: Spoken) -> bytes:
    match dialect:
        case Dialect.OPENAI_CHAT:
            return _framed(_chat(spoken)) + b"data: [DONE]\n\n"
        case Dialect.OPENAI_RESPONSES:
            return _framed(_responses(spoken), named=True)
        case Dialect.ANTHROPIC:
            return _framed(_anthropic(spoken), named=True)
        case Dialect.GEMINI:
            return _framed(_gemini(spoken))


def _framed(events: Iterator[dict[str, Any]], *, named: bool = False) -> bytes:
    lines = []
    for event in events:
        name = f"event: {event['type']}\n" if named else ""
        lines.append(f"{name}data: {json.dumps(event, ensure_ascii=False)}\n\n")
    return "".join(lines).encode()


def _chat(spoken: Spoken) -> Iterator[dict[str, Any]]:
    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}

    yield chunk({"role": "assistant", "content": ""})
    yield from (chunk({"reasoning_content": piece}) for piece in spoken.reasoning)
    yield from (chunk({"content": piece}) for piece in spoken.text)
    for number, call in enumerate(spoken.calls):
        function = {"name": call.name, "arguments": ""}
        yield chunk(
            {"tool_calls": [{"index": number, "id": call.id, "type": "function", "function": function}]}
        )
    for number, piece in spoken.fragments():
        yield chunk({"tool_calls": [{"index": number, "function": {"arguments": piece}}]})
    yield chunk({}, "tool_calls" if spoken.calls else "stop")
    yield {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}}


def _anthropic(spoken: Spoken) -> Iterator[dict[str, Any]]:
    def delta(index: int, **what: str) -> dict[str, Any]:
        return {"type": "content_block_delta", "index": index, "delta": what}

    usage = {"input_tokens": 7, "output_tokens": 1}
    yield {"type": "message_start", "message": {"type": "message", "content": [], "usage": usage}}
    index = 0
    if spoken.reasoning:
        yield {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "thinking", "thinking": "", "signature": ""},
        }
        yield from (delta(0, type="thinking_delta", thinking=piece) for piece in spoken.reasoning)
        yield delta(0, type="signature_delta", signature="sig")
        yield {"type": "content_block_stop", "index": 0}
        index += 1
    if spoken.text:
        yield {"type": "content_block_start", "index": index, "content_block": {"type": "text", "text": ""}}
        yield from (delta(index, type="text_delta", text=piece) for piece in spoken.text)
        yield {"type": "content_block_stop", "index": index}
        index += 1
    for number, call in enumerate(spoken.calls):
        block = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
        yield {"type": "content_block_start", "index": index + number, "content_block": block}
    for number, piece in spoken.fragments():
        yield delta(index + number, type="input_json_delta", partial_json=piece)
    yield from ({"type": "content_block_stop", "index": index + n} for n in range(len(spoken.calls)))
    reason = "tool_use" if spoken.calls else "end_turn"
    yield {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 3}}
    yield {"type": "message_stop"}


def _responses(spoken: Spoken) -> Iterator[dict[str, Any]]:
    output: list[dict[str, Any]] = []
    yield {"type": "response.created", "response": {"status": "in_progress", "output": []}}
    if spoken.reasoning:
        place: dict[str, Any] = {"item_id": "rs", "output_index": 0, "summary_index": 0}
        for piece in spoken.reasoning:
            yield {"type": "response.reasoning_summary_text.delta", **place, "delta": piece}
        summary = [{"type": "summary_text", "text": "".join(spoken.reasoning)}]
        output.append({"id": "rs", "type": "reasoning", "summary": summary, "encrypted_content": "enc"})
        yield {"type": "response.output_item.done", "output_index": 0, "item": output[-1]}
    if spoken.text:
        place = {"item_id": "msg", "output_index": len(output), "content_index": 0}
        for piece in spoken.text:
            yield {"type": "response.output_text.delta", **place, "delta": piece}
        yield {"type": "response.output_text.done", **place, "text": "".join(spoken.text)}
        output.append({"type": "message", "content": [{"type": "output_text", "text": "".join(spoken.text)}]})
    first = len(output)
    items = []
    for number, call in enumerate(spoken.calls):
        item = {"id": f"fc_{number}", "type": "function_call", "call_id": call.id, "name": call.name}
        items.append({**item, "arguments": "".join(call.fragments)})
        yield {
            "type": "response.output_item.added",
            "output_index": first + number,
            "item": {**item, "arguments": ""},
        }
    for number, piece in spoken.fragments():
        place = {"item_id": f"fc_{number}", "output_index": first + number}
        yield {"type": "response.function_call_arguments.delta", **place, "delta": piece}
    usage = {"input_tokens": 7, "output_tokens": 3}
    response = {"status": "completed", "output": output + items, "usage": usage}
    yield {"type": "response.completed", "response": response}


def _gemini(spoken: Spoken) -> Iterator[dict[str, Any]]:
    def chunk(parts: list[dict[str, Any]], **more: str) -> dict[str, Any]:
        return {"candidates": [{"content": {"parts": parts, "role": "model"}, "index": 0, **more}]}

    yield from (chunk([{"text": piece, "thought": True}]) for piece in spoken.reasoning)
    yield from (chunk([{"text": piece}]) for piece in spoken.text)
    for call in spoken.calls:
        yield chunk([{"functionCall": {"name": call.name, "args": call.arguments, "id": call.id}}])
    usage = {"promptTokenCount": 7, "candidatesTokenCount": 3}
    yield {**chunk([], finishReason="STOP"), "usageMetadata": usage}
