"""Read what a client sent back, in any dialect, and compare it with what a turn expects."""

from dataclasses import dataclass, field
from typing import Any, assert_never

from agent.message import Dialect, JsonObject
from agent.scripted.conversation import Expected


@dataclass(frozen=True, slots=True)
class Heard:
    """What a request holds.

    `turns` counts the assistant's turns in it; `user_texts` are those after the last of them, and
    `results` the tool results after it as (tool name, content).
    """

    turns: int
    user_texts: tuple[str, ...]
    results: tuple[tuple[str, str], ...]


@dataclass(slots=True)
class _Listener:
    """Adds up the items of a request, whatever the dialect calls them."""

    turns: int = 0
    is_assistant: bool = False
    user_texts: list[str] = field(default_factory=list)
    results: list[tuple[str, str]] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)

    def assistant(self) -> None:
        if not self.is_assistant:
            self.turns += 1
            self.user_texts, self.results = [], []
        self.is_assistant = True

    def user(self, text: str) -> None:
        self.is_assistant = False
        self.user_texts.append(text)

    def result(self, call_id: str, content: str, name: str | None = None) -> None:
        self.is_assistant = False
        self.results.append((name or self.names.get(call_id, "?"), content))


def hear(body: JsonObject, dialect: Dialect) -> Heard:
    """Read a request's body."""
    listener = _Listener()
    match dialect:
        case Dialect.OPENAI_CHAT:
            for message in body["messages"]:
                _hear_chat(listener, message)
        case Dialect.OPENAI_RESPONSES:
            for item in body["input"]:
                _hear_responses(listener, item)
        case Dialect.ANTHROPIC:
            for message in body["messages"]:
                _hear_anthropic(listener, message)
        case Dialect.GEMINI:
            for content in body["contents"]:
                _hear_gemini(listener, content)
        case _:
            assert_never(dialect)
    return Heard(listener.turns, tuple(listener.user_texts), tuple(listener.results))


def _hear_chat(listener: _Listener, message: JsonObject) -> None:
    match message["role"]:
        case "assistant":
            listener.assistant()
            for call in message.get("tool_calls") or []:
                listener.names[call["id"]] = call["function"]["name"]
        case "tool":
            listener.result(message["tool_call_id"], _text(message["content"]))
        case "user":
            listener.user(_text(message["content"]))


def _hear_responses(listener: _Listener, item: JsonObject) -> None:
    match item.get("type", "message"):
        case "function_call":
            listener.assistant()
            listener.names[item["call_id"]] = item["name"]
        case "function_call_output":
            listener.result(item["call_id"], _text(item["output"]))
        case "reasoning":
            listener.assistant()
        case "message" if item["role"] == "assistant":
            listener.assistant()
        case "message" if item["role"] == "user":
            listener.user(_text(item["content"]))


def _hear_anthropic(listener: _Listener, message: JsonObject) -> None:
    content = message["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    if message["role"] == "assistant":
        listener.assistant()
    for block in blocks:
        match block["type"]:
            case "tool_use":
                listener.names[block["id"]] = block["name"]
            case "tool_result":
                listener.result(block["tool_use_id"], _text(block.get("content", "")))
            case "text" if message["role"] == "user":
                listener.user(block["text"])


def _hear_gemini(listener: _Listener, content: JsonObject) -> None:
    if content["role"] == "model":
        listener.assistant()
        return
    for part in content["parts"]:
        if "functionResponse" in part:
            given = part["functionResponse"]
            listener.result("", _text(given["response"]), given["name"])
        elif "text" in part:
            listener.user(part["text"])


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(_text(part) for part in content)
    if isinstance(content, dict):
        return "\n".join(_text(value) for value in content.values() if isinstance(value, str | list | dict))
    return ""


def mismatch(heard: Heard, expected: Expected) -> str | None:
    """Say what the request lacks of what the turn expects, None where it fits."""
    said = "\n".join(heard.user_texts)
    for text in expected.user_contains:
        if text not in said:
            return f"expected the user to say {text!r}, heard {_short(said)!r}"
    if expected.results is None:
        return None
    names = [name for name, _ in heard.results]
    wanted = [result.tool for result in expected.results]
    if names != wanted:
        return f"expected results of {wanted}, got results of {names}"
    for result, (_, content) in zip(expected.results, heard.results, strict=True):
        for text in result.contains:
            if text not in content:
                return f"expected the result of {result.tool} to contain {text!r}, it is {_short(content)!r}"
        for text in result.lacks:
            if text in content:
                return f"expected the result of {result.tool} to lack {text!r}, it is {_short(content)!r}"
    return None


def _short(text: str) -> str:
    return text if len(text) <= 600 else text[:400] + " … " + text[-200:]
