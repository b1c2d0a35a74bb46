"""Readers of a body, ours and others': each gives the text and the calls as (id, name, arguments)."""

import json
from collections.abc import Callable
from typing import Any

from stream_parts.bodies import Response, anthropic_body, openai_body

URL = "http://127.0.0.1:9/v1"
Read = Callable[[list[bytes]], tuple[str, list[tuple[str, str, Any]]]]


def ours(dialect: str) -> Read:
    from agent.message import Dialect
    from agent.wire import ResponseParser

    def read(parts: list[bytes]) -> tuple[str, list[tuple[str, str, Any]]]:
        parser = ResponseParser(Dialect(dialect))
        for part in parts:
            parser.feed(part)
        message = parser.close()
        return message.text, [(call.id, call.name, call.arguments) for call in message.tool_calls]

    return read


def http_client(parts: list[bytes], module: str) -> Any:
    """Give an HTTP client of that module whose every answer is `parts`."""
    http = __import__(module)

    class Body(http.SyncByteStream):  # type: ignore[name-defined, misc]
        def __iter__(self) -> Any:
            yield from parts

    def answer(_request: Any) -> Any:
        return http.Response(200, headers={"content-type": "text/event-stream"}, stream=Body())

    return http.Client(transport=http.MockTransport(answer))


def client_module(library: str) -> str:
    """Name the HTTP module that a library's client takes."""
    base = __import__(library)._base_client
    return "httpx2" if hasattr(base, "httpx2") else "httpx"


class Joined:
    """Puts chat chunks together as their users do, where a library gives chunks only."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self.calls: dict[int, list[Any]] = {}

    def call(self, index: int, call_id: str | None, name: str | None, piece: str | None) -> None:
        call = self.calls.setdefault(index, ["", "", []])
        call[0], call[1] = call_id or call[0], name or call[1]
        call[2].append(piece or "")

    def result(self) -> tuple[str, list[tuple[str, str, Any]]]:
        calls = [
            (call_id, name, json.loads("".join(pieces))) for call_id, name, pieces in self.calls.values()
        ]
        return "".join(self.text), calls


def httpx_sse_reader() -> Read:
    import httpx_sse

    def read(parts: list[bytes]) -> tuple[str, list[tuple[str, str, Any]]]:
        joined = Joined()
        with httpx_sse.connect_sse(http_client(parts, "httpx"), "POST", URL) as source:
            for event in source.iter_sse():
                for choice in json.loads(event.data)["choices"] if event.data != "[DONE]" else ():
                    joined.text.append(choice["delta"].get("content") or "")
                    for call in choice["delta"].get("tool_calls") or ():
                        function = call["function"]
                        joined.call(
                            call["index"], call.get("id"), function.get("name"), function["arguments"]
                        )
        return joined.result()

    return read


def openai_reader(style: str) -> Read:
    import openai

    module = client_module("openai")
    ask: Any = {"model": "bench", "messages": [{"role": "user", "content": "go"}]}

    def chunks(parts: list[bytes]) -> tuple[str, list[tuple[str, str, Any]]]:
        joined = Joined()
        client = openai.OpenAI(api_key="k", base_url=URL, http_client=http_client(parts, module))
        for chunk in client.chat.completions.create(**ask, stream=True):
            for choice in chunk.choices:
                joined.text.append(choice.delta.content or "")
                for call in choice.delta.tool_calls or ():
                    joined.call(call.index, call.id, call.function.name, call.function.arguments)
        return joined.result()

    def stream(parts: list[bytes]) -> tuple[str, list[tuple[str, str, Any]]]:
        client = openai.OpenAI(api_key="k", base_url=URL, http_client=http_client(parts, module))
        with client.chat.completions.stream(**ask) as answer:
            message = answer.get_final_completion().choices[0].message
        calls = [(c.id, c.function.name, json.loads(c.function.arguments)) for c in message.tool_calls or ()]
        return message.content, calls

    return chunks if style == "chunks" else stream


def anthropic_reader(style: str) -> Read:
    import anthropic

    module = client_module("anthropic")
    ask: Any = {"model": "bench", "messages": [{"role": "user", "content": "go"}], "max_tokens": 9}

    def events(parts: list[bytes]) -> tuple[str, list[tuple[str, str, Any]]]:
        joined = Joined()
        client = anthropic.Anthropic(api_key="k", base_url=URL, http_client=http_client(parts, module))
        for event in client.messages.create(**ask, stream=True):
            if event.type == "content_block_start" and event.content_block.type == "tool_use":
                joined.call(event.index, event.content_block.id, event.content_block.name, "")
            elif event.type == "content_block_delta" and event.delta.type == "text_delta":
                joined.text.append(event.delta.text)
            elif event.type == "content_block_delta":
                joined.call(event.index, None, None, event.delta.partial_json)
        return joined.result()

    def stream(parts: list[bytes]) -> tuple[str, list[tuple[str, str, Any]]]:
        client = anthropic.Anthropic(api_key="k", base_url=URL, http_client=http_client(parts, module))
        with client.messages.stream(**ask) as answer:
            blocks = answer.get_final_message().content
        text = "".join(block.text for block in blocks if block.type == "text")
        return text, [(block.id, block.name, block.input) for block in blocks if block.type == "tool_use"]

    return events if style == "events" else stream


def floor(parts: list[bytes]) -> None:
    """Split lines and read each payload: the least that any reader has to do."""
    import orjson

    rest = b""
    for part in parts:
        lines = (rest + part).split(b"\n")
        rest = lines.pop()
        for line in lines:
            if line.startswith(b"data:") and line != b"data: [DONE]":
                orjson.loads(line[5:])


READERS: dict[str, tuple[Callable[[], Read], Callable[..., Response]]] = {
    "pocketbuild openai-chat": (lambda: ours("openai-chat"), openai_body),
    "pocketbuild anthropic": (lambda: ours("anthropic"), anthropic_body),
    "httpx-sse + json": (httpx_sse_reader, openai_body),
    "openai create(stream=True)": (lambda: openai_reader("chunks"), openai_body),
    "openai chat.stream()": (lambda: openai_reader("stream"), openai_body),
    "anthropic create(stream=True)": (lambda: anthropic_reader("events"), anthropic_body),
    "anthropic messages.stream()": (lambda: anthropic_reader("stream"), anthropic_body),
}
