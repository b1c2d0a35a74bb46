"""Cut a response body into JSON events, whatever framing the server used.

Server-sent events as the WHATWG specification has them, and what servers make of them: no blank line
between events, no space after `data:`, the prefix twice or only before the first line of indented
JSON, keep-alives as data, several objects in one line, newline-delimited JSON, one JSON array, one
plain object, an HTML page.
"""

import re
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from pydantic_core import from_json

from agent.message import JsonObject
from agent.wire.json_text import is_text, read_event
from agent.wire.limits import MAX_BODY_BYTES, MAX_LINE_BYTES
from agent.wire.open_value import JSON_LINE, OpenValue
from agent.wire.template import Template

_LONE_CR = re.compile(rb"\r(?!\n)")
_NOTHING = re.compile(r"[ \t\r\0]*(?:\xef\xbb\xbf)?[ \t\r\0]*")
_FIELD = re.compile(r"(data|event|id|retry)\s*:", re.IGNORECASE | re.ASCII)
_BARE_FIELD = re.compile(r"data|event|id|retry", re.IGNORECASE)
_UNKNOWN_FIELD = re.compile(r"[A-Za-z][\w.-]*:(?!//)", re.ASCII)
_END_MARKER = re.compile(r'"?\[DONE\]', re.IGNORECASE)
_SCALAR = re.compile(r'("(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|true|false|null)(?=[\s,\]}]|$)', re.ASCII)
_SENTENCE = re.compile(r"<|[A-Za-z][^{}\[\]]*\s\S", re.ASCII)
_CUT_SHORT = re.compile(r'["\[]|(?:d|da|dat|data|e|ev|eve|even|event|i|id|r|re|ret|retr|retry)$', re.ASCII)
_ARGUMENTS = re.compile(r'"(?:tool_calls|arguments|partial_json|partialArgs)|_(?:arguments|input)\.delta')
_SHOWN_CHARS = 160


class Oddity(Enum):
    """What a body holds besides events."""

    MALFORMED = auto()
    """Data that is no JSON."""
    TEXT = auto()
    """A sentence or a page where an event was due."""
    FIELD = auto()
    """A line like a field that event streams do not know, or a JSON string; alone in a body a sentence."""
    CUT = auto()
    """The body ended inside an event."""
    TOO_LONG = auto()
    """A limit was passed; nothing more is read."""


@dataclass(frozen=True, slots=True)
class Junk:
    """A piece of a body that is no event, how it begins, and whether arguments of a call were in it."""

    oddity: Oddity
    text: str
    held_arguments: bool = False


Found = JsonObject | Junk


class EventReader:
    """Cut a body into events; the result is the same however the body was cut.

    `offset` is where the event given last begins in the body. `is_done` turns true at the end marker
    (`saw_end_marker`) or at a limit; what follows is ignored.
    """

    def __init__(self) -> None:
        self.offset = 0
        self.is_done = False
        self.saw_end_marker = False
        self._name = b""
        self._position = 0
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._after_cr = False
        self._at_end = False
        self._template = Template()
        self._value = OpenValue()
        self._arrays = 0

    @property
    def name(self) -> str:
        """What the last event's `event:` line said, empty where it has none."""
        return self._name.partition(b":")[2].strip().decode("utf-8", "replace")

    @property
    def size_bytes(self) -> int:
        """How much of the body has come."""
        return self._position + self._held_bytes

    def feed(self, data: bytes) -> Iterator[Found]:
        """Take more of the body; give what is complete by now.

        An event may be changed by the next one: take from it what is needed before going on.
        """
        template, value, room = self._template, self._value, MAX_BODY_BYTES - self.size_bytes
        lines = self._lines(data[:room] if len(data) > room else data)
        end = self._position
        for line in lines:
            start, end = end, end + len(line) + 1
            if not line:
                self._name = b""
                if value.is_framed:
                    yield from self._end_event()
            elif line.startswith(b"data:") and not value.lines:
                event: Any = template.read(line)
                if event is None:
                    event = self._parse(line)
                if type(event) is dict:
                    self.offset = start
                    yield event
                else:
                    yield from self._odd_line(line, start)
            elif line.startswith(b"event:") and not value.lines:
                self._name = line
            elif line.startswith(b":"):
                continue
            else:
                yield from self._odd_line(line, start)
            if self.is_done:
                return
        self._position = end
        if not self.is_done and (len(data) > room or self._held_bytes > MAX_LINE_BYTES):
            yield self._too_long(end)

    def _parse(self, line: bytes) -> Any:
        """Read the JSON of a `data:` line, None where it holds none."""
        try:
            event = from_json(line[5:])
        except ValueError:
            return None
        if type(event) is dict:
            self._template.learn(line, event)
        return event

    def stop(self) -> None:
        """Read no further."""
        self.is_done = True
        self._held, self._held_bytes = [], 0
        self._value.clear()

    def close(self) -> Iterator[Found]:
        """Give what the end of the body completes or leaves open."""
        if self.is_done:
            return
        line, start = b"".join(self._held), self._position
        self._held, self._held_bytes, self._position = [], 0, start + len(line)
        self._at_end = True
        if line:
            yield from self._odd_line(line, start)
        yield from self._break_value(Oddity.CUT)

    def _lines(self, data: bytes) -> list[bytes]:
        """Give the lines that `data` completes, without their LF; CR alone is made LF, so sizes stay."""
        if self.is_done or not data:
            return []
        if self._after_cr and data.startswith(b"\n"):
            data = data[1:]
            self._position += 1
        self._after_cr = data.endswith(b"\r")
        if b"\r" in data:
            data = _LONE_CR.sub(b"\n", data)
        lines = data.split(b"\n")
        if len(lines) > 1 and self._held:
            lines[0] = b"".join((*self._held, lines[0]))
            self._held, self._held_bytes = [], 0
        if rest := lines.pop():
            self._held.append(rest)
            self._held_bytes += len(rest)
        return lines

    def _end_event(self) -> Iterator[Found]:
        """A framed event is over at a blank line; a plain JSON body may have blank lines inside."""
        self._arrays = 0
        yield from self._break_value(Oddity.MALFORMED)

    def _odd_line(self, line: bytes, start: int) -> Iterator[Found]:
        """Read a line that is not simply one event, piece by piece from left to right.

        Latin-1 keeps bytes and characters one to one, and whatever frames JSON is ASCII.
        """
        if len(line) > MAX_LINE_BYTES:
            yield self._too_long(start)
            return
        text, at, is_framed = line.decode("latin-1").rstrip(" \t\r\0"), 0, False
        if _skip_blank(text, 0) == len(text):
            self._name = b""
            if self._value.is_framed:
                yield from self._end_event()
        while (at := _skip_blank(text, at)) < len(text) and not self.is_done:
            field = _FIELD.match(text, at)
            if text[at] == ":":
                return
            if field is None:
                at = yield from self._payload(text, at, start, is_framed)
            elif field[1].lower() == "data":
                is_framed, at = True, field.end()
            else:
                if field[1].lower() == "event":
                    self._name = text[at:].encode("latin-1")
                return

    def _payload(self, text: str, at: int, start: int, is_framed: bool) -> Generator[Found, None, int]:
        """Read one piece of data from `at` on; give where the next one begins."""
        value = self._value
        if _END_MARKER.match(text, at):
            yield from self._break_value(Oddity.MALFORMED)
            self.is_done = self.saw_end_marker = True
            return len(text)
        if value.lines and not value.can_go_on_with(text, at, is_framed):
            yield from self._break_value(Oddity.MALFORMED)
        if not value.lines:
            is_cut_marker = self._at_end and "[DONE]".startswith(text[at : at + 6])
            if text[at] in ("[]," if self._arrays else "[") and not is_cut_marker:
                self._arrays += {"[": 1, "]": -1, ",": 0}[text[at]]
                return at + 1
            if text[at] != "{":
                return (yield from self._no_object(text, at, start, is_framed))
            value.is_framed = is_framed
        end = value.add(text, at, start)
        if value.is_too_long:
            yield self._too_long(start)
            return len(text)
        if end < 0:
            return len(text)
        self.offset = value.lines[0][0]
        data = "\n".join(line for _, line in value.lines).encode("latin-1")
        try:
            event = read_event(data)
        except ValueError:
            yield from self._break_value(Oddity.MALFORMED)
        else:
            value.clear()
            if not is_text(data):
                yield Junk(Oddity.MALFORMED, "bytes that are no UTF-8, each replaced by U+FFFD")
            yield event
        return end

    def _no_object(self, text: str, at: int, start: int, is_framed: bool) -> Generator[Found, None, int]:
        if not (is_framed or self._at_end) and _BARE_FIELD.fullmatch(text, at):
            return len(text)
        scalar = _SCALAR.match(text, at)
        is_told = text[at] == '"' and not self._arrays and (self.name == "error" or not is_framed)
        if scalar is not None and not is_told:
            return scalar.end()
        self.offset, oddity = start, Oddity.TEXT
        if scalar is not None:
            oddity = Oddity.TEXT if is_framed else Oddity.FIELD
        elif self._at_end and _CUT_SHORT.match(text, at):
            oddity = Oddity.CUT
        elif JSON_LINE.match(text, at) or (is_framed and not _SENTENCE.match(text, at)):
            oddity = Oddity.MALFORMED
        elif not is_framed and _UNKNOWN_FIELD.match(text, at):
            oddity = Oddity.FIELD
        yield Junk(oddity, _shown(text[at : at + _SHOWN_CHARS]), bool(_ARGUMENTS.search(text, at)))
        return len(text)

    def _break_value(self, oddity: Oddity) -> Iterator[Found]:
        """Give up the value that is open; whole objects on lines of their own are still events."""
        lines = self._value.lines
        self._value.clear()
        for number, (offset, line) in enumerate(lines):
            self.offset = offset
            if number == 0:
                held_arguments = any(_ARGUMENTS.search(line) for _, line in lines)
                yield Junk(oddity, _shown(line[:_SHOWN_CHARS]), held_arguments)
            elif line.startswith("{"):
                try:
                    yield read_event(line.encode("latin-1"))
                except ValueError:
                    continue

    def _too_long(self, offset: int) -> Junk:
        self.stop()
        self.offset = offset
        return Junk(
            Oddity.TOO_LONG, f"an event takes {MAX_LINE_BYTES} bytes at most, a body {MAX_BODY_BYTES}"
        )


def _skip_blank(text: str, at: int) -> int:
    found = _NOTHING.match(text, at)
    return found.end() if found else at


def _shown(latin: str) -> str:
    return latin.encode("latin-1").decode("utf-8", "replace")
