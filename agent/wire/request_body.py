"""What the request bodies of all dialects have in common."""

import json
import re
from typing import Any

from pydantic_core import PydanticSerializationError, to_json

from agent.message import Dialect, JsonObject, Message, ReasoningPart, Request, TextPart, ToolCall
from agent.wire.think_tag import CLOSE_TAG, OPEN_TAG

_UNFIT_IN_NAME = re.compile(r"[^A-Za-z0-9_-]")
_MAX_NAME_CHARS = 64


def finish_body(body: JsonObject, request: Request) -> JsonObject:
    """Add what the provider's entry adds and leave out what it refuses."""
    return {
        key: value for key, value in _merge(body, request.extra).items() if key not in request.dropped_fields
    }


def own_data(part: TextPart | ReasoningPart | ToolCall, dialect: Dialect) -> JsonObject:
    """Give what a part keeps for this dialect, empty where it is from elsewhere."""
    data = (part.provider_data or {}).get(dialect)
    return data if isinstance(data, dict) else {}


def tool_name(call: ToolCall) -> str:
    """Give a call's name as every provider takes it back; models decorate and misspell names."""
    return _UNFIT_IN_NAME.sub("_", call.name)[:_MAX_NAME_CHARS]


def arguments_text(call: ToolCall) -> str:
    """Give a call's arguments as JSON text; those of a refused call are an empty object."""
    try:
        return to_json(call.arguments, inf_nan_mode="constants").decode()
    except PydanticSerializationError:  # half of a surrogate pair, which only the slower encoder writes
        return json.dumps(call.arguments, ensure_ascii=False, separators=(",", ":"))


def visible_text(message: Message, dialect: Dialect) -> str:
    """Give a message's text, thinking that came between tags put back before it."""
    tagged = "".join(
        part.text
        for part in message.parts
        if isinstance(part, ReasoningPart) and own_data(part, dialect).get("is_tagged")
    )
    return f"{OPEN_TAG}{tagged}{CLOSE_TAG}{message.text}" if tagged else message.text


def _merge(body: JsonObject, extra: JsonObject) -> JsonObject:
    merged: dict[str, Any] = dict(body)
    for key, value in extra.items():
        both_objects = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = _merge(merged[key], value) if both_objects else value
    return merged
