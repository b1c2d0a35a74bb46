"""Encode requests of Anthropic Messages."""

from agent.message import (
    ConversationItem,
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


class AnthropicWriter:
    """Writes a conversation as turns in alternating roles; `request` says how long call ids are."""

    def __init__(self, request: Request) -> None:
        self._ids = CallIds(request.call_id_chars)
        self._messages: list[JsonObject] = []

    def add(self, item: ConversationItem) -> None:
        """Write the next item."""
        match item:
            case UserMessage():
                self._say("user", [{"type": "text", "text": item.text}] if item.text.strip() else [])
            case ToolResult():
                self._say("user", [_result(item, self._ids)])
            case Message():
                self._ids.begin(item)
                self._say("assistant", [block for part in item.parts for block in _blocks(part, self._ids)])

    def _say(self, role: str, blocks: list[JsonObject]) -> None:
        """Add to the turn of the role, or begin it; a turn's tool results stand before its text."""
        if blocks and self._messages and self._messages[-1]["role"] == role:
            # A body that was given out holds the turn as it was, so it is not added to but replaced.
            blocks = [*self._messages.pop()["content"], *blocks]
        if blocks:
            if role == "user":
                blocks.sort(key=lambda block: block["type"] != "tool_result")
            self._messages.append({"role": role, "content": blocks})

    def body(self, request: Request) -> JsonObject:
        """Give the body of a streaming request."""
        body: JsonObject = {
            "model": request.model,
            "max_tokens": request.max_output_tokens or _USUAL_MAX_TOKENS,
            "messages": list(self._messages),
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
    messages: list[JsonObject] = body["messages"]
    if "system" in body:
        body["system"] = _marked(body["system"], mark)
    turns = [place for place, message in enumerate(messages) if message["role"] == "user"]
    for place in turns[-_MARKED_MESSAGES:]:
        messages[place] = {**messages[place], "content": _marked(messages[place]["content"], mark)}


def _marked(blocks: list[JsonObject], mark: JsonObject) -> list[JsonObject]:
    return [*blocks[:-1], {**blocks[-1], "cache_control": mark}]


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
