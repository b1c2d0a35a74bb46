"""Say a turn in a dialect: the events that a provider of that dialect would stream."""

from typing import assert_never

from pydantic_core import to_json

from agent.message import Dialect, FinishReason, JsonObject
from agent.scripted.conversation import Turn
from agent.scripted.frame import Frame, pieces
from agent.scripted.render_responses import render_responses

_MODEL = "scripted"


def render(turn: Turn, number: int, dialect: Dialect) -> list[Frame]:
    """Give the events of a sound response; `number` makes ids of calls unique over a conversation."""
    match dialect:
        case Dialect.OPENAI_CHAT:
            return _chat(turn, number)
        case Dialect.OPENAI_RESPONSES:
            return render_responses(turn, number)
        case Dialect.ANTHROPIC:
            return _anthropic(turn, number)
        case Dialect.GEMINI:
            return _gemini(turn, number)
        case _:
            assert_never(dialect)


def _chat(turn: Turn, number: int) -> list[Frame]:
    def chunk(delta: JsonObject, finish: str | None = None) -> Frame:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return Frame(
            {
                "id": f"scripted-{number}",
                "object": "chat.completion.chunk",
                "model": _MODEL,
                "choices": [choice],
            }
        )

    frames = [chunk({"role": "assistant", "content": ""})]
    frames += [chunk({"reasoning_content": piece}) for piece in pieces(turn.reasoning)]
    frames += [chunk({"content": piece}) for piece in pieces(turn.text)]
    for index, call in enumerate(turn.calls):
        head = {"name": call.tool, "arguments": ""}
        opened = {"index": index, "id": f"call_{number}_{index}", "type": "function", "function": head}
        frames.append(chunk({"tool_calls": [opened]}))
        frames += [
            chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
            for piece in pieces(to_json(call.arguments).decode())
        ]
    frames.append(chunk({}, turn.claimed_finish.value))
    counts = {
        "prompt_tokens": turn.usage.input,
        "completion_tokens": turn.usage.output,
        "prompt_tokens_details": {"cached_tokens": turn.usage.cached},
    }
    frames.append(Frame({"id": f"scripted-{number}", "model": _MODEL, "choices": [], "usage": counts}))
    return [*frames, Frame("[DONE]")]


_ANTHROPIC_STOP = {
    FinishReason.STOP: "end_turn",
    FinishReason.TOOL_CALLS: "tool_use",
    FinishReason.LENGTH: "max_tokens",
    FinishReason.CONTENT_FILTER: "refusal",
    FinishReason.ERROR: "error",
}


def _anthropic(turn: Turn, number: int) -> list[Frame]:
    def event(kind: str, **data: object) -> Frame:
        return Frame({"type": kind, **data}, kind)

    def block(index: int, opened: JsonObject, deltas: list[JsonObject]) -> list[Frame]:
        return [
            event("content_block_start", index=index, content_block=opened),
            *(event("content_block_delta", index=index, delta=delta) for delta in deltas),
            event("content_block_stop", index=index),
        ]

    counts = {
        "input_tokens": turn.usage.input - turn.usage.cached,
        "cache_read_input_tokens": turn.usage.cached,
        "output_tokens": 1,
    }
    message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": _MODEL, "content": []}
    blocks: list[tuple[JsonObject, list[JsonObject]]] = []
    if turn.reasoning:
        thoughts: list[JsonObject] = [
            {"type": "thinking_delta", "thinking": p} for p in pieces(turn.reasoning)
        ]
        signed = {"type": "signature_delta", "signature": f"scripted-signature-{number}"}
        blocks.append(({"type": "thinking", "thinking": ""}, [*thoughts, signed]))
    if turn.text:
        blocks.append(
            ({"type": "text", "text": ""}, [{"type": "text_delta", "text": p} for p in pieces(turn.text)])
        )
    for index, call in enumerate(turn.calls):
        opened = {"type": "tool_use", "id": f"toolu_{number}_{index}", "name": call.tool, "input": {}}
        parts = pieces(to_json(call.arguments).decode())
        blocks.append((opened, [{"type": "input_json_delta", "partial_json": part} for part in parts]))
    stop = {"stop_reason": _ANTHROPIC_STOP[turn.claimed_finish], "stop_sequence": None}
    return [
        event("message_start", message={**message, "usage": counts}),
        *(frame for index, (opened, deltas) in enumerate(blocks) for frame in block(index, opened, deltas)),
        event("message_delta", delta=stop, usage={"output_tokens": turn.usage.output}),
        event("message_stop"),
    ]


_GEMINI_STOP = {
    FinishReason.STOP: "STOP",
    FinishReason.TOOL_CALLS: "STOP",
    FinishReason.LENGTH: "MAX_TOKENS",
    FinishReason.CONTENT_FILTER: "SAFETY",
    FinishReason.ERROR: "MALFORMED_FUNCTION_CALL",
}


def _gemini(turn: Turn, number: int) -> list[Frame]:
    def event(parts: list[JsonObject], finish: str | None = None) -> Frame:
        candidate: JsonObject = {"content": {"role": "model", "parts": parts}, "index": 0}
        if finish:
            candidate["finishReason"] = finish
        counts = {
            "promptTokenCount": turn.usage.input,
            "candidatesTokenCount": turn.usage.output,
            "cachedContentTokenCount": turn.usage.cached,
        }
        return Frame({"candidates": [candidate], "usageMetadata": counts, "modelVersion": _MODEL})

    frames = [event([{"text": piece, "thought": True}]) for piece in pieces(turn.reasoning)]
    frames += [event([{"text": piece}]) for piece in pieces(turn.text)]
    for index, call in enumerate(turn.calls):
        part: JsonObject = {
            "functionCall": {"id": f"fc-{number}-{index}", "name": call.tool, "args": call.arguments}
        }
        if index == 0:
            part["thoughtSignature"] = f"scripted-signature-{number}"
        frames.append(event([part]))
    return [*frames, event([], _GEMINI_STOP[turn.claimed_finish])]
