"""Encode requests of OpenAI Responses, without state at the provider."""

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
from agent.wire.request_body import arguments_text, finish_body, own_data, tool_name

_DIALECT = Dialect.OPENAI_RESPONSES


class ResponsesWriter:
    """Writes a conversation as input items; `request` says how long call ids are."""

    def __init__(self, request: Request) -> None:
        self._ids = CallIds(request.call_id_chars)
        self._custom: set[str] = set()
        self._input: list[JsonObject] = []

    def add(self, item: ConversationItem) -> None:
        """Write the next item."""
        ids = self._ids
        match item:
            case UserMessage():
                self._input.append({"role": "user", "content": item.text})
            case ToolResult():
                is_custom = ids.of(item) in self._custom
                kind = "custom_tool_call_output" if is_custom else "function_call_output"
                self._input.append({"type": kind, "call_id": ids.of(item), "output": item.content})
            case Message():
                ids.begin(item)
                self._custom |= {ids.of(call) for call in item.tool_calls if _is_custom(call)}
                self._input += [encoded for part in item.parts for encoded in _part(part, ids)]

    def body(self, request: Request) -> JsonObject:
        """Give the body of a streaming request; encrypted reasoning is asked for, to be sent back."""
        body: JsonObject = {
            "model": request.model,
            "input": list(self._input),
            "stream": True,
            "store": False,
            "include": ["reasoning.encrypted_content"],
        }
        if request.system:
            body["instructions"] = request.system
        if request.max_output_tokens is not None:
            body["max_output_tokens"] = request.max_output_tokens
        if request.effort is not None:
            body["reasoning"] = {"effort": request.effort, "summary": "auto"}
        if request.tools:
            body["tools"] = [
                {
                    "type": "function",
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.parameters,
                    "strict": False,
                }
                for tool in request.tools
            ]
            if request.tool_choice in ("required", "none"):
                body["tool_choice"] = request.tool_choice
            elif request.tool_choice != "auto":
                body["tool_choice"] = {"type": "function", "name": request.tool_choice}
        return finish_body(body, request)


def _part(part: TextPart | ReasoningPart | ToolCall, ids: CallIds) -> list[JsonObject]:
    kept = own_data(part, _DIALECT).get("item")
    match part:
        case ToolCall() if _is_custom(part):
            text = part.arguments.get("input")
            text = text if isinstance(text, str) and len(part.arguments) == 1 else arguments_text(part)
            return [
                {"type": "custom_tool_call", "call_id": ids.of(part), "name": tool_name(part), "input": text}
            ]
        case ToolCall():
            call = {"call_id": ids.of(part), "name": tool_name(part), "arguments": arguments_text(part)}
            return [{"type": "function_call", **call}]
        case ReasoningPart():
            # Without its content an item is only an id, and the provider keeps nothing under it.
            if not isinstance(kept, dict) or not (kept.get("encrypted_content") or kept.get("content")):
                return []
            return [{key: value for key, value in kept.items() if key != "status"}]
        case TextPart():
            if isinstance(kept, dict):
                return [kept]
            content = [{"type": "output_text", "text": part.text}]
            return [{"type": "message", "role": "assistant", "content": content}] if part.text else []


def _is_custom(call: ToolCall) -> bool:
    return own_data(call, _DIALECT).get("type") == "custom_tool_call"
