"""The door: bytes of one response in, events for those who watch and one message out."""

from typing import Protocol

from agent.message import Dialect, JsonObject, Message
from agent.wire import anthropic, gemini, openai_chat, openai_responses
from agent.wire.assemble import Assembly
from agent.wire.event import StreamEvent
from agent.wire.limits import LimitExceeded
from agent.wire.sse import EventReader, Junk, Oddity


class _Decoder(Protocol):
    def decode(self, event: JsonObject) -> None: ...
    def close(self) -> None: ...


class ResponseParser:
    """Read one response of a provider, however odd, into one normalized message.

    Feed it the body as it comes; what it makes of it does not depend on the cuts. It never raises on
    what a provider sent: oddities are diagnostics of the message. One parser reads one response.
    """

    def __init__(self, dialect: Dialect) -> None:
        self._reader = EventReader()
        self._assembly = Assembly(dialect, self._reader)
        self._decoder = _decoder(dialect, self._assembly)
        self._stray: tuple[int, str] | None = None
        self._stray_field: tuple[int, str] | None = None
        self._doubted_calls = 0

    @property
    def is_done(self) -> bool:
        """Whether nothing that may still come counts: after the end marker, or past a limit."""
        return self._reader.is_done

    def feed(self, data: bytes) -> list[StreamEvent]:
        """Take more of the body; give what it brought."""
        decode = self._decoder.decode
        try:
            for found in self._reader.feed(data):
                if isinstance(found, Junk):
                    self._note(found)
                else:
                    decode(found)
        except LimitExceeded as limit:
            self._stop(limit)
        return self._assembly.take_events()

    def close(self) -> Message:
        """Take that the body has ended, or was cut off; give the message."""
        assembly, reader = self._assembly, self._reader
        try:
            for found in reader.close():
                if isinstance(found, Junk):
                    self._note(found)
                else:
                    self._decoder.decode(found)
            self._decoder.close()
        except LimitExceeded as limit:
            self._stop(limit)
        stray = self._stray or (self._stray_field if assembly.is_empty else None)
        if stray and not assembly.has_finish_word and (assembly.is_empty or not reader.saw_end_marker):
            assembly.fail(f"the body is no stream of events: {stray[1]}", stray[0])
        return assembly.close(
            has_end_marker=assembly.has_end_marker or reader.saw_end_marker, size_bytes=reader.size_bytes
        )

    def _stop(self, limit: LimitExceeded) -> None:
        self._assembly.exceed(str(limit))
        self._reader.stop()

    def _note(self, junk: Junk) -> None:
        assembly, found = self._assembly, (self._reader.offset, junk.text)
        if self._reader.name == "error" and junk.oddity is not Oddity.TOO_LONG:
            assembly.fail(junk.text)
            return
        match junk.oddity:
            case Oddity.MALFORMED:
                assembly.diagnose("malformed_event", f"no JSON object: {junk.text}")
                if junk.held_arguments:
                    self._tear_calls()
            case Oddity.TEXT:
                if self._stray is None:
                    self._stray = found
                    assembly.diagnose("malformed_event", f"text in place of an event: {junk.text}")
            case Oddity.FIELD:
                self._stray_field = self._stray_field or found
            case Oddity.CUT:
                if assembly.has_finish_word:
                    assembly.diagnose("malformed_event", f"cut off by the end of the body: {junk.text}")
            case Oddity.TOO_LONG:
                assembly.exceed(junk.text)

    def _tear_calls(self) -> None:
        """Doubt the calls that are incomplete; those doubted before need no second look."""
        calls = self._assembly.calls
        start = self._doubted_calls if self._doubted_calls <= len(calls) else 0
        for call in calls[start:]:
            call.tear()
        self._doubted_calls = len(calls)


def _decoder(dialect: Dialect, assembly: Assembly) -> _Decoder:
    match dialect:
        case Dialect.OPENAI_CHAT:
            return openai_chat.Decoder(assembly)
        case Dialect.OPENAI_RESPONSES:
            return openai_responses.Decoder(assembly)
        case Dialect.ANTHROPIC:
            return anthropic.Decoder(assembly)
        case Dialect.GEMINI:
            return gemini.Decoder(assembly)
