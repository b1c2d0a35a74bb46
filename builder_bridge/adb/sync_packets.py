"""The sync service's language: requests as bytes, answers as values. No I/O.

A request is an id of four letters, a length and a path. Files travel as DATA chunks of at most
64 KiB and end with DONE. Version 2 (Android 11) adds 64-bit sizes and compression. Source: AOSP
`packages/modules/adb/SYNC.TXT`, `file_sync_protocol.h`, and the behaviour of adbd 34.
"""

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from errno import ENOENT
from itertools import repeat
from pathlib import PurePosixPath
from stat import S_IFMT, S_IFREG, S_ISDIR, S_ISREG

from builder_bridge.adb.packets import Buffer
from builder_bridge.errors import ProtocolFault

CHUNK_BYTES = 64 << 10
BLOCK_BYTES = 15 * CHUNK_BYTES
"""As many chunks as fit, with their headers, into one ADB packet of a mebibyte."""
HEAD = struct.Struct("<4sI")
STAT_V1 = struct.Struct("<III")
STAT_V2 = struct.Struct("<IQQIIIIQqqq")


@dataclass(frozen=True, slots=True)
class FileStat:
    """What the phone says of a file; `size_bytes` is modulo 2^32 before Android 8 (`stat_v2`)."""

    mode: int
    size_bytes: int
    mtime_s: int

    @property
    def is_file(self) -> bool:
        """Whether it is a regular file."""
        return S_ISREG(self.mode)

    @property
    def is_dir(self) -> bool:
        """Whether it is a directory."""
        return S_ISDIR(self.mode)


@dataclass(frozen=True, slots=True)
class Stat:
    """Answer to a stat: `errno` is 0 or the phone's reason why there is none."""

    errno: int
    stat: FileStat


@dataclass(frozen=True, slots=True)
class Entry:
    """One name in a directory."""

    name: str
    stat: FileStat


@dataclass(frozen=True, slots=True)
class Data:
    """Part of a file's content, a view into what was fed."""

    data: memoryview


@dataclass(frozen=True, slots=True)
class Done:
    """The end of a file's content or of a directory."""


@dataclass(frozen=True, slots=True)
class Okay:
    """The file that was sent lies there whole."""


@dataclass(frozen=True, slots=True)
class Fail:
    """The phone's reason for not doing what was asked; it ends the session."""

    text: str


Answer = Stat | Entry | Data | Done | Okay | Fail


def encode_request(request_id: bytes, path: PurePosixPath) -> bytes:
    """Ask for something at a path."""
    text = str(path).encode("utf-8", "surrogateescape")
    return HEAD.pack(request_id, len(text)) + text


def encode_send(path: PurePosixPath, mode: int, compression: int | None) -> bytes:
    """Begin sending a file; `compression` is a version 2 flag, None speaks version 1."""
    mode |= 0 if S_IFMT(mode) else S_IFREG
    if compression is None:
        text = f"{path},{mode}".encode("utf-8", "surrogateescape")
        return HEAD.pack(b"SEND", len(text)) + text
    return encode_request(b"SND2", path) + struct.pack("<4sII", b"SND2", mode, compression)


def encode_receive(path: PurePosixPath, compression: int | None) -> bytes:
    """Ask for a file's content; `compression` is a version 2 flag, None speaks version 1."""
    if compression is None:
        return encode_request(b"RECV", path)
    return encode_request(b"RCV2", path) + HEAD.pack(b"RCV2", compression)


def encode_chunk_head(size_bytes: int) -> bytes:
    """Announce a DATA chunk of so many bytes, `CHUNK_BYTES` at most."""
    return HEAD.pack(b"DATA", size_bytes)


def encode_chunks(block: Buffer) -> list[Buffer]:
    """Cut content into DATA chunks, uncopied."""
    view, buffers = memoryview(block), list[Buffer]()
    for start in range(0, len(view), CHUNK_BYTES):
        chunk = view[start : start + CHUNK_BYTES]
        buffers += (encode_chunk_head(len(chunk)), chunk)
    return buffers


def encode_done(mtime_s: int) -> bytes:
    """End a file that was sent; the time is unsigned and has 32 bits."""
    return HEAD.pack(b"DONE", min(max(mtime_s, 0), 0xFFFFFFFF))


_HEAD_BYTES = {
    b"DATA": HEAD.size,
    b"OKAY": HEAD.size,
    b"FAIL": HEAD.size,
    b"DONE": HEAD.size,
    b"STAT": 4 + STAT_V1.size,
    b"STA2": 4 + STAT_V2.size,
    b"LST2": 4 + STAT_V2.size,
    b"DENT": 4 + STAT_V1.size + 4,
    b"DNT2": 4 + STAT_V2.size + 4,
}
_OKAY = Okay()
_OKAYS = re.compile(rb"(?:OKAY\0\0\0\0)++")
"""Thousands of files may be answered in a row."""


class SyncReader:
    """Takes the stream's bytes, cut anywhere, and gives answers. Raises `ProtocolFault`.

    `entry` is the kind of entry when a directory was asked for: DONE is then as long as an entry.
    """

    def __init__(self, entry: bytes = b"DONE") -> None:
        self._done_bytes = _HEAD_BYTES[entry]
        self._head = bytearray()
        self._wanted_bytes = 4
        self._body = bytearray()
        self._left = 0
        self._kind = b""
        self._entry = FileStat(0, 0, 0)

    def feed(self, data: Buffer) -> Iterator[Answer]:
        """Give the answers in `data`; content comes as it arrives."""
        view, position = memoryview(data), 0
        while position < len(view):
            is_between = not self._left and not self._head
            if is_between and (okays := _OKAYS.match(view, position)):
                yield from repeat(_OKAY, (okays.end() - position) // HEAD.size)
                position = okays.end()
                continue
            if is_between and (left := _chunk_at(view, position)):
                self._kind, self._left = b"DATA", left
                position += HEAD.size
                continue
            if self._left:
                part = view[position : position + self._left]
                self._left -= len(part)
                if self._kind == b"DATA":
                    yield Data(part)
                else:
                    self._body += part
                    if not self._left:
                        yield self._end_text()
            else:
                part = view[position : position + self._wanted_bytes - len(self._head)]
                self._head += part
                if len(self._head) == self._wanted_bytes:
                    yield from self._end_head()
            position += len(part)

    def _end_head(self) -> Iterator[Answer]:
        kind, fields = bytes(self._head[:4]), bytes(self._head[4:])
        if not fields:
            self._wanted_bytes = self._done_bytes if kind == b"DONE" else _HEAD_BYTES.get(kind, 0)
            if not self._wanted_bytes:
                raise ProtocolFault(f"The phone's sync service answered {kind!r}, which does not exist.")
            return
        self._kind, self._wanted_bytes = kind, 4
        self._head.clear()
        match kind:
            case b"DONE":
                yield Done()
            case b"OKAY":
                yield _OKAY
            case b"STAT" | b"STA2" | b"LST2":
                yield _parse_stat(fields)
            case _:  # a body follows: content, a reason or a name
                self._entry = _parse_stat(fields[:-4]).stat if len(fields) > 4 else self._entry
                self._left = int.from_bytes(fields[-4:], "little")
                if self._left > CHUNK_BYTES:
                    raise ProtocolFault(f"A {kind.decode()} of the sync service claims {self._left} bytes.")
                if not self._left and kind != b"DATA":
                    yield self._end_text()

    def _end_text(self) -> Fail | Entry:
        body = bytes(self._body)
        self._body.clear()
        if self._kind == b"FAIL":
            return Fail(body.decode("utf-8", "replace"))
        return Entry(body.decode("utf-8", "surrogateescape"), self._entry)


def _chunk_at(view: memoryview, position: int) -> int:
    """Tell the size of the DATA chunk whose whole head is there; 0 where something else is."""
    if len(view) - position < HEAD.size:
        return 0
    kind, size_bytes = HEAD.unpack_from(view, position)
    is_chunk = kind == b"DATA" and size_bytes <= CHUNK_BYTES
    return int(size_bytes) if is_chunk else 0


def _parse_stat(fields: bytes) -> Stat:
    if len(fields) == STAT_V1.size:
        mode, size_bytes, mtime_s = STAT_V1.unpack(fields)
        return Stat(0 if mode else ENOENT, FileStat(mode, size_bytes, mtime_s))
    errno, _dev, _ino, mode, _links, _uid, _gid, size_bytes, _atime, mtime_s, _ctime = STAT_V2.unpack(fields)
    return Stat(errno, FileStat(mode, size_bytes, mtime_s))
