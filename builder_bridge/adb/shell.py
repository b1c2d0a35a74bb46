"""Run commands on a phone by `shell,v2,raw:`: exit code, two output streams, stdin with an end.

Nothing here goes through a terminal: bytes arrive as they were written. A command killed by
signal N exits with 128 + N. The text given is one shell line of the phone's own shell; quote what
you put into it. Packets of this protocol are kind (one byte), length (four, little-endian), data.
"""

import struct
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import IntEnum
from functools import partial

import anyio

from builder_bridge.adb.link import AdbConnection, AdbStream
from builder_bridge.adb.packets import Buffer
from builder_bridge.adb.waiting import beside
from builder_bridge.errors import PhoneLost, ProtocolFault, ServiceRefused, StreamEnded

HEADER = struct.Struct("<BI")
MAX_STDIN_BYTES = 256 << 10
WINDOW_BYTES = 8 << 20
"""How much output may wait for a slow reader; full, the command on the phone waits."""


class Stream(IntEnum):
    """Which output of a command; the numbers are the protocol's."""

    STDOUT = 1
    STDERR = 2


STDIN, EXIT, CLOSE_STDIN = 0, 3, 4


@dataclass(frozen=True, slots=True)
class ShellResult:
    """What a command left behind; `exit_code` is 0–255."""

    exit_code: int
    stdout: bytes
    stderr: bytes


class ShellReader:
    """Takes the stream's bytes, cut anywhere, and gives pieces of output; then knows the exit code."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._kind = 0
        self._left = 0
        self.exit_code: int | None = None

    def feed(self, data: Buffer) -> Iterator[tuple[Stream, memoryview]]:
        """Give output in order. Raises `ProtocolFault` for kinds that do not exist."""
        view, position = memoryview(data), 0
        while position < len(view):
            if self._left:
                piece = view[position : position + self._left]
                self._left -= len(piece)
                if self._kind == EXIT:
                    self.exit_code = piece[0]
                else:
                    yield Stream(self._kind), piece
            else:
                piece = view[position : position + HEADER.size - len(self._head)]
                self._head += piece
                if len(self._head) == HEADER.size:
                    self._begin()
            position += len(piece)

    def _begin(self) -> None:
        self._kind, self._left = HEADER.unpack(self._head)
        self._head.clear()
        if self._kind not in (Stream.STDOUT, Stream.STDERR, EXIT):
            raise ProtocolFault(
                f"The phone's shell sent a packet of kind {self._kind}, which does not exist."
            )
        if self._kind == EXIT and self._left != 1:
            raise ProtocolFault(f"The phone's shell sent an exit code of {self._left} bytes.")


class ShellProcess:
    """A running command. Iterate over it for `(stream, data)`; then `exit_code` is known."""

    def __init__(self, stream: AdbStream) -> None:
        self._stream = stream
        self._reader = ShellReader()

    @property
    def exit_code(self) -> int | None:
        """The command's exit code, None while it runs."""
        return self._reader.exit_code

    async def send_stdin(self, data: Buffer) -> None:
        """Give bytes to the command, waiting while it does not read. What it will never read is dropped."""
        view = memoryview(data)
        try:
            for start in range(0, len(view), MAX_STDIN_BYTES):
                part = view[start : start + MAX_STDIN_BYTES]
                await self._stream.send(HEADER.pack(STDIN, len(part)), part)
        except StreamEnded:
            return  # it has exited without reading all; its exit code tells more than this would

    async def close_stdin(self) -> None:
        """Let the command see the end of its stdin."""
        try:
            await self._stream.send(HEADER.pack(CLOSE_STDIN, 0))
        except StreamEnded:
            return

    async def __aiter__(self) -> AsyncIterator[tuple[Stream, memoryview]]:
        """Give the output as it comes. Raises `PhoneLost` if it ends without an exit code."""
        while self._reader.exit_code is None:
            data = await self._stream.receive()
            if not data:
                raise PhoneLost("The phone ended the command's stream without an exit code.")
            for piece in self._reader.feed(data):
                yield piece


@asynccontextmanager
async def spawn(
    adb: AdbConnection, command: str, *, window_bytes: int = WINDOW_BYTES
) -> AsyncIterator[ShellProcess]:
    """Start a command and end it, by hang-up, when the context is left before it has exited."""
    if "shell_v2" not in adb.features:
        raise ServiceRefused(
            "The phone's adbd has no shell_v2, so it gives no exit codes (Android 6 or older)."
        )
    stream = await adb.open(f"shell,v2,raw:{command}", window_bytes=window_bytes)
    try:
        yield ShellProcess(stream)
    finally:
        with anyio.CancelScope(shield=True):
            await stream.close()


async def run(adb: AdbConnection, command: str, stdin: Buffer | AsyncIterable[Buffer] = b"") -> ShellResult:
    """Run a command to its end and give its output whole; for long output iterate over `spawn`."""
    parts: dict[Stream, list[Buffer]] = {Stream.STDOUT: [], Stream.STDERR: []}
    code = await pass_through(adb, command, stdin, lambda stream, data: parts[stream].append(data))
    return ShellResult(code, b"".join(parts[Stream.STDOUT]), b"".join(parts[Stream.STDERR]))


async def pass_through(
    adb: AdbConnection,
    command: str,
    stdin: Buffer | AsyncIterable[Buffer],
    on_output: Callable[[Stream, memoryview], None],
) -> int:
    """Run a command, give its output to `on_output` as it comes, and give its exit code."""
    async with spawn(adb, command) as process, beside(partial(_feed_stdin, process, stdin)):
        async for stream, data in process:
            on_output(stream, data)
    assert process.exit_code is not None
    return process.exit_code


async def _feed_stdin(process: ShellProcess, stdin: Buffer | AsyncIterable[Buffer]) -> None:
    if isinstance(stdin, AsyncIterable):
        async for data in stdin:
            await process.send_stdin(data)
    else:
        await process.send_stdin(stdin)
    await process.close_stdin()
