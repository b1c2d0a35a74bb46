"""Write a request in the dialect of its provider."""

from operator import is_
from typing import Protocol

from agent.message import ConversationItem, Dialect, JsonObject, Request
from agent.wire.anthropic_request import AnthropicWriter
from agent.wire.gemini_request import GeminiWriter
from agent.wire.openai_chat_request import ChatWriter
from agent.wire.openai_responses_request import ResponsesWriter


class Writer(Protocol):
    """Writes a conversation item by item; what was written of its beginning never changes."""

    def add(self, item: ConversationItem) -> None:
        """Write the next item."""
        ...

    def body(self, request: Request) -> JsonObject:
        """Give the body of the request with all that was written so far."""
        ...


class Encoder:
    """Writes the requests of one run, in one dialect.

    A conversation mostly grows at its end, so what was written of it is kept: a request costs what its
    new items cost. Items are told apart by identity, for they never change; after a fold, or once other
    things are wanted back, everything is written anew.
    """

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._writer: Writer | None = None
        self._wanted: tuple[object, ...] = ()
        self._written: tuple[ConversationItem, ...] = ()

    def encode(self, request: Request) -> JsonObject:
        """Give the JSON body of the POST that asks for a streamed response."""
        wanted = (request.call_id_chars, request.echo_reasoning, request.echo_empty)
        writer = self._writer
        if writer is None or wanted != self._wanted or not _begins_with(request.items, self._written):
            writer, self._written = _writer(self._dialect, request), ()
        for item in request.items[len(self._written) :]:
            writer.add(item)
        self._writer, self._wanted, self._written = writer, wanted, request.items
        return writer.body(request)


def encode(dialect: Dialect, request: Request) -> JsonObject:
    """Give the JSON body of the POST that asks for a streamed response."""
    return Encoder(dialect).encode(request)


def _writer(dialect: Dialect, request: Request) -> Writer:
    match dialect:
        case Dialect.OPENAI_CHAT:
            return ChatWriter(request)
        case Dialect.OPENAI_RESPONSES:
            return ResponsesWriter(request)
        case Dialect.ANTHROPIC:
            return AnthropicWriter(request)
        case Dialect.GEMINI:
            return GeminiWriter()


def _begins_with(items: tuple[ConversationItem, ...], known: tuple[ConversationItem, ...]) -> bool:
    return len(items) >= len(known) and all(map(is_, items, known))
