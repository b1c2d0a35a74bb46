"""Requests of a short conversation with one tool, for the tests of what goes back."""

from typing import Any

from agent.message import (
    ConversationItem,
    Dialect,
    JsonObject,
    Message,
    Request,
    ToolResult,
    ToolSpec,
    UserMessage,
)
from agent.wire import encode
from tests.agent.wire.bodies import read
from tests.agent.wire.streams import Spoken, SpokenCall, write

TOOL = ToolSpec("read_file", "Reads a file.", {"type": "object", "properties": {"path": {"type": "string"}}})


CALL = SpokenCall("id0", "read_file", {"path": "a.kt"}, ('{"path":', '"a.kt"}'))


SPOKEN = Spoken(("Hm, ", "so."), ("I ", "read."), (CALL,))


def ask(*items: ConversationItem, **how: Any) -> Request:
    return Request(model="m-1", system="Be brief.", items=items, **{"tools": (TOOL,), **how})


def results_of(message: Message) -> list[ToolResult]:
    return [ToolResult(call.id, call.name, f"result of {call.id}") for call in message.tool_calls]


def conversation(dialect: Dialect, **how: Any) -> JsonObject:
    message = read(dialect, [write(dialect, SPOKEN)])
    return encode(dialect, ask(UserMessage("go"), message, *results_of(message), **how))
