"""Encode requests of OpenAI Chat Completions."""

from typing import Any

from agent.message import (
    ConversationItem,
    Dialect,
    JsonObject,
    Message,
    ReasoningPart,
    Request,
    ToolCall,
    ToolResult,
    UserMessage,
)
from agent.wire.call_ids import CallIds
from agent.wire.request_body import arguments_text, finish_body, own_data, tool_name, visible_text

_DIALECT = Dialect.OPENAI_CHAT


class ChatWriter:
    """Writes a conversation as messages; `request` says what of them goes back, and how."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._ids = CallIds(request.call_id_chars)
        self._messages: list[JsonObject] = []

    def add(self, item: ConversationItem) -> None:
        """Write the next item."""
        match item:
            case UserMessage():
                self._messages.append({"role": "user", "content": item.text})
            case ToolResult():
                self._messages.append(
                    {"role": "tool", "tool_call_id": self._ids.of(item), "content": item.content}
                )
            case Message():
                self._ids.begin(item)
                self._messages += _assistant(item, self._request, self._ids)

    def body(self, request: Request) -> JsonObject:
        """Give the body of a streaming request."""
        system = [{"role": "system", "content": request.system}] if request.system else []
        body: JsonObject = {
            "model": request.model,
            "messages": [*system, *self._messages],
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if request.max_output_tokens is not None:
            body[request.max_tokens_field] = request.max_output_tokens
        if request.effort is not None:
            body["reasoning_effort"] = request.effort
        if request.tools:
            body["tools"] = [
                {
                    "type": "function",
                    "function": {
                        "name": tool.name,
                        "description": tool.description,
                        "parameters": tool.parameters,
                    },
                }
                for tool in request.tools
            ]
            if request.tool_choice in ("required", "none"):
                body["tool_choice"] = request.tool_choice
            elif request.tool_choice != "auto":
                body["tool_choice"] = {"type": "function", "function": {"name": request.tool_choice}}
        return finish_body(body, request)


def _assistant(message: Message, request: Request, ids: CallIds) -> list[JsonObject]:
    """Give the message as it came, none where nothing of it can go back."""
    thinking = _thinking(message, request)
    content: Any = visible_text(message, _DIALECT)
    if "content" in thinking:
        parts = [{"type": "thinking", "thinking": [{"type": "text", "text": thinking.pop("content")}]}]
        content = parts + ([{"type": "text", "text": content}] if content else [])
    encoded: JsonObject = {"role": "assistant", "content": content, **thinking}
    if calls := [_call(call, ids) for call in message.tool_calls]:
        encoded["tool_calls"] = calls
    return [encoded] if content or calls else []


def _call(call: ToolCall, ids: CallIds) -> JsonObject:
    return {
        "id": ids.of(call),
        "type": "function",
        "function": {"name": tool_name(call), "arguments": arguments_text(call)},
        **own_data(call, _DIALECT),
    }


def _thinking(message: Message, request: Request) -> JsonObject:
    """Give thinking under the fields in which it came, or under the one in which the provider wants it."""
    fields: JsonObject = {}
    for part in message.parts:
        if not isinstance(part, ReasoningPart):
            continue
        data = own_data(part, _DIALECT)
        field = data.get("field")
        if field in (None, "reasoning_content", "reasoning") and request.echo_reasoning not in (
            None,
            "reasoning_details",
        ):
            field = request.echo_reasoning
        if details := data.get("reasoning_details"):
            fields["reasoning_details"] = details
        if isinstance(field, str) and field != "reasoning_details" and not data.get("is_tagged"):
            fields[field] = fields.get(field, "") + part.text
    if request.echo_empty and request.echo_reasoning and request.echo_reasoning != "reasoning_details":
        fields.setdefault(request.echo_reasoning, "")
    return fields
