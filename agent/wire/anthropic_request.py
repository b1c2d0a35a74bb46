"""Encode requests of Anthropic Messages."""

from agent.message import (
    Dialect,
    JsonObject,
    Message,
    ReasoningPart,
    Request,
    TextPart,
    ToolCall,
    ToolResult,
    UserMessage,
)
from agent.wire.call_ids import CallIds
from agent.wire.request_body import finish_body, own_data, tool_name
from agent.wire.think_tag import CLOSE_TAG, OPEN_TAG

_DIALECT = Dialect.ANTHROPIC
_USUAL_MAX_TOKENS = 16_384
"""The dialect wants a limit in every request; this one is taken by all present models."""
_LONG_CACHE_S = 3600
_MARKED_MESSAGES = 2


def encode(request: Request) -> JsonObject:
    """Give the body of a streaming request."""
    body: JsonObject = {
        "model": request.model,
        "max_tokens": request.max_output_tokens or _USUAL_MAX_TOKENS,
        "messages": _messages(request),
        "stream": True,
    }
    if request.system:
        body["system"] = [{"type": "text", "text": request.system}]
    if request.effort is not None:
        body["output_config"] = {"effort": request.effort}
    if request.tools:
        body["tools"] = [
            {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
            for tool in request.tools
        ]
        match request.tool_choice:
            case "auto":
                pass
            case "required":
                body["tool_choice"] = {"type": "any"}
            case "none":
                body["tool_choice"] = {"type": "none"}
            case name:
                body["tool_choice"] = {"type": "tool", "name": name}
    if request.cache_ttl_s is not None:
        _mark_for_cache(body, request.cache_ttl_s)
    return finish_body(body, request)


def _mark_for_cache(body: JsonObject, ttl_s: int) -> None:
    """Ask that the prompt be kept up to the system prompt, and up to each of the last two user turns.

    The earlier of the two finds what the request before had written.
    """
    mark = {"type": "ephemeral", "ttl": "1h" if ttl_s >= _LONG_CACHE_S else "5m"}
    turns = [message["content"] for message in body["messages"] if message["role"] == "user"]
    for blocks in (body.get("system"), *turns[-_MARKED_MESSAGES:]):
        if blocks:
            blocks[-1] = {**blocks[-1], "cache_control": mark}


def _messages(request: Request) -> list[JsonObject]:
    """Give turns in alternating roles; a turn's tool results stand before its text."""
    messages: list[JsonObject] = []
    ids = CallIds(request.call_id_chars)

    def add(role: str, blocks: list[JsonObject]) -> None:
        if blocks and messages and messages[-1]["role"] == role:
            messages[-1]["content"] += blocks
        elif blocks:
            messages.append({"role": role, "content": blocks})

    for item in request.items:
        match item:
            case UserMessage():
                add("user", [{"type": "text", "text": item.text}] if item.text.strip() else [])
            case ToolResult():
                add("user", [_result(item, ids)])
            case Message():
                ids.begin(item)
                add("assistant", [block for part in item.parts for block in _blocks(part, ids)])
    for message in messages:
        if message["role"] == "user":
            message["content"].sort(key=lambda block: block["type"] != "tool_result")
    return messages


def _result(result: ToolResult, ids: CallIds) -> JsonObject:
    block: JsonObject = {"type": "tool_result", "tool_use_id": ids.of(result)}
    if result.content:
        block["content"] = result.content
    return {**block, "is_error": True} if result.is_error else block


def _blocks(part: TextPart | ReasoningPart | ToolCall, ids: CallIds) -> list[JsonObject]:
    """Give a part's block; empty text and thinking that is not this provider's are left out."""
    data = own_data(part, _DIALECT)
    match part:
        case ToolCall():
            return [
                {"type": "tool_use", "id": ids.of(part), "name": tool_name(part), "input": part.arguments}
            ]
        case ReasoningPart() if data.get("is_tagged"):
            return [{"type": "text", "text": f"{OPEN_TAG}{part.text}{CLOSE_TAG}"}]
        case ReasoningPart() if data.get("type") == "thinking":
            return [{"type": "thinking", "thinking": part.text, "signature": data.get("signature", "")}]
        case ReasoningPart() | TextPart() if data.get("type"):
            return [data]
        case TextPart() if part.text.strip():
            return [{"type": "text", "text": part.text}]
    return []
