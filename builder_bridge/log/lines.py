"""Console bytes → lines: escape codes, redraws, broken UTF-8.

A physical line ends in LF and has a number, so that a problem can be found again in the stored
log. A lone CR, or a cursor move of a rich console, ends a line too, within its physical line.
"""

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass

MAX_LINE_BYTES = 1 << 20
"""A longer line comes out in pieces of this size; Gradle prints class paths of some 100 KiB."""

_MARK_BYTES = 3

_MOVE = re.compile(rb"\x1b\[[0-9;]*[A-HJf]")
_ESCAPE = re.compile(
    rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]_P^][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[()][0-9A-B]|[=>78MDEHc])"
)


@dataclass(frozen=True, slots=True)
class Block:
    """Some whole lines, each ending in LF; or one piece of an overlong line, with an LF of ours."""

    data: bytes
    ends_line: bool = True


class Transcoder:
    """Give a log as UTF-8: PowerShell writes UTF-16, and some programs begin with a mark."""

    def __init__(self) -> None:
        self._head: bytes | None = b""
        self._decoder: codecs.IncrementalDecoder | None = None

    def feed(self, data: bytes) -> bytes:
        """Give what `data` is in UTF-8; the first three bytes may be held back."""
        if self._head is not None:
            self._head += data
            if len(self._head) < _MARK_BYTES:
                return b""
            data, self._head = self._head, None
            data = self._decide(data)
        return self._decoder.decode(data).encode() if self._decoder else data

    def close(self) -> bytes:
        """Give what was held back."""
        head, self._head = self._head or b"", None
        head = self._decide(head)
        return self._decoder.decode(head, final=True).encode() if self._decoder else head

    def _decide(self, data: bytes) -> bytes:
        if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            self._decoder = codecs.getincrementaldecoder("utf-16")(errors="replace")
        return data.removeprefix(codecs.BOM_UTF8)


class BlockSplitter:
    """Cut a byte stream into blocks of whole lines.

    The lines are the same however the bytes were cut. At most `MAX_LINE_BYTES` are held back.
    """

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._held_bytes = 0

    def feed(self, data: bytes) -> Iterator[Block]:
        """Give the blocks that `data` completes, in order."""
        end = data.rfind(b"\n") + 1
        if end:
            self._hold(data[:end])
            yield from _limit_lines(self._release())
        if end < len(data):
            self._hold(data[end:])
        if self._held_bytes > MAX_LINE_BYTES:
            held = self._release()
            whole = (len(held) - 1) // MAX_LINE_BYTES * MAX_LINE_BYTES
            for start in range(0, whole, MAX_LINE_BYTES):
                yield Block(held[start : start + MAX_LINE_BYTES] + b"\n", ends_line=False)
            self._hold(held[whole:])

    def close(self) -> bytes:
        """Give what was left without an ending; b"" if nothing was."""
        return self._release()

    def _hold(self, data: bytes) -> None:
        self._pieces.append(data)
        self._held_bytes += len(data)

    def _release(self) -> bytes:
        held = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces = []
        self._held_bytes = 0
        return held


def _limit_lines(data: bytes) -> Iterator[Block]:
    """Give the data as one block, or in several where it is large or has overlong lines."""
    start = 0
    while len(data) - start > MAX_LINE_BYTES:
        end = data.rfind(b"\n", start, start + MAX_LINE_BYTES + 1) + 1
        if end:
            yield Block(data[start:end])
        else:
            end = start + MAX_LINE_BYTES
            yield Block(data[start:end] + b"\n", ends_line=False)
        start = end
    yield Block(data[start:] if start else data)


def strip_escapes(block: bytes) -> bytes:
    """Take colours and titles off and turn cursor moves into CR; fast where there are none."""
    if b"\x1b" not in block:
        return block
    return _ESCAPE.sub(b"", _MOVE.sub(b"\r", block))


def sublines(raw: bytes) -> list[str]:
    """Give the lines within one physical line, without escape codes but with their prefixes."""
    if b"\r" not in raw:
        return [raw.decode(errors="replace")]
    return [part.decode(errors="replace") for part in raw.rstrip(b"\r").split(b"\r")]
