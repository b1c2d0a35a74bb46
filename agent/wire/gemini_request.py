"""Encode requests of Gemini's streamGenerateContent."""

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
from agent.wire.request_body import finish_body, own_data, tool_name, visible_text

_DIALECT = Dialect.GEMINI


class GeminiWriter:
    """Writes a conversation as turns in alternating roles; ids go back only where the provider gave them."""

    def __init__(self) -> None:
        self._contents: list[JsonObject] = []
        self._ids: dict[str, str | None] = {}

    def add(self, item: ConversationItem) -> None:
        """Write the next item."""
        match item:
            case UserMessage():
                self._say("user", [{"text": item.text}] if item.text else [])
            case ToolResult():
                self._say("user", [_response(item, self._ids.get(item.call_id))])
            case Message():
                self._ids |= {call.id: call.raw_id for call in item.tool_calls}
                self._say("model", [encoded for part in item.parts for encoded in _part(part)])

    def _say(self, role: str, parts: list[JsonObject]) -> None:
        if parts and self._contents and self._contents[-1]["role"] == role:
            # A body that was given out holds the turn as it was, so it is not added to but replaced.
            parts = [*self._contents.pop()["parts"], *parts]
        if parts:
            self._contents.append({"role": role, "parts": parts})

    def body(self, request: Request) -> JsonObject:
        """Give the body of a request; the model's name stands in the address, not here."""
        body: JsonObject = {"contents": list(self._contents)}
        if request.system:
            body["systemInstruction"] = {"parts": [{"text": request.system}]}
        settings: JsonObject = {}
        if request.max_output_tokens is not None:
            settings["maxOutputTokens"] = request.max_output_tokens
        if request.effort is not None:
            is_budget = request.effort.lstrip("-").isdigit()
            level = (
                {"thinkingBudget": int(request.effort)} if is_budget else {"thinkingLevel": request.effort}
            )
            settings["thinkingConfig"] = {**level, "includeThoughts": True}
        if settings:
            body["generationConfig"] = settings
        if request.tools:
            declarations = [
                {"name": tool.name, "description": tool.description, "parametersJsonSchema": tool.parameters}
                for tool in request.tools
            ]
            body["tools"] = [{"functionDeclarations": declarations}]
            if request.tool_choice != "auto":
                body["toolConfig"] = {"functionCallingConfig": _calling(request.tool_choice)}
        return finish_body(body, request)


def _thinking(effort: str) -> JsonObject:
    is_budget = effort.lstrip("-").isdigit()
    return {"thinkingBudget": int(effort)} if is_budget else {"thinkingLevel": effort}


def _calling(tool_choice: str) -> JsonObject:
    match tool_choice:
        case "none":
            return {"mode": "NONE"}
        case "required":
            return {"mode": "ANY"}
    return {"mode": "ANY", "allowedFunctionNames": [tool_choice]}


def _response(result: ToolResult, call_id: str | None) -> JsonObject:
    response: JsonObject = {
        "name": result.name,
        "response": {"error" if result.is_error else "result": result.content},
    }
    return {"functionResponse": {"id": call_id, **response} if call_id else response}


def _part(part: TextPart | ReasoningPart | ToolCall) -> list[JsonObject]:
    """Give a part with its signature; thinking goes back only where it is signed."""
    data = own_data(part, _DIALECT)
    match part:
        case ToolCall():
            call: JsonObject = {"name": tool_name(part), "args": part.arguments}
            return [{"functionCall": {"id": part.raw_id, **call} if part.raw_id else call, **data}]
        case ReasoningPart():
            if data.get("is_tagged"):
                return [{"text": visible_text(Message((part,)), _DIALECT)}]
            return [{"text": part.text, "thought": True, **data}] if data else []
        case TextPart():
            if data.keys() - {"thoughtSignature"}:
                return [data]
            return [{"text": part.text, **data}] if part.text or data else []
