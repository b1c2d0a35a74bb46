"""What is sent to a phone: files, bytes, or bytes as they come; small ones are made ready in bulk."""

import os
import time
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from io import FileIO
from pathlib import Path, PurePosixPath

import anyio

from builder_bridge.adb.compression import (
    SAMPLE_BYTES,
    WORTHWHILE_RATIO,
    Algorithm,
    gives_in,
    is_packed,
)
from builder_bridge.adb.file_blocks import FileBlocks
from builder_bridge.adb.packets import Buffer
from builder_bridge.adb.sync_packets import (
    BLOCK_BYTES,
    CHUNK_BYTES,
    HEAD,
    encode_chunk_head,
    encode_chunks,
    encode_done,
    encode_send,
)

Content = Path | Buffer | AsyncIterable[Buffer]
READ_BYTES = 4 * BLOCK_BYTES
LOT_BYTES = 256 << 10
"""So much of small files is made ready at once: some milliseconds of work, with compression."""


@dataclass(frozen=True, slots=True)
class PushFile:
    """One file to send: its content, its place on the phone, permission bits, time of change (Unix).

    A time that is not given is that of the source file, or now.
    """

    source: Content
    destination: PurePosixPath
    mode: int = 0o644
    mtime_s: int | None = None

    @property
    def known_bytes(self) -> int:
        """Its size, as far as it is known before it is read."""
        match self.source:
            case Path():
                return self.source.stat().st_size
            case bytes() | bytearray() | memoryview():
                return len(self.source)
            case _:
                return 0


class Encoder:
    """Turns files into the sync service's language.

    `plain_flag` is 0 for version 2 and None for version 1; `algorithm` compresses what gives in.
    """

    def __init__(self, plain_flag: int | None, algorithm: Algorithm | None = None) -> None:
        self.plain_flag = plain_flag
        self.algorithm = algorithm
        self._pack = algorithm.new_pack() if algorithm else None

    def encode_lot(self, files: Sequence[PushFile]) -> tuple[int, bytes]:
        """Read and encode the first of the files whole, until there is a lot of them.

        Gives how many and their bytes. None at all means that the first one must be streamed: it is
        larger than a lot, or only known piece by piece. Raises `OSError`.
        """
        count, parts, lot_bytes = 0, list[Buffer](), 0
        for file in files:
            added_bytes = self._add_whole(file, parts)
            if not added_bytes:
                break
            count += 1
            lot_bytes += added_bytes
            if lot_bytes >= LOT_BYTES:
                break
        return count, b"".join(parts)

    def encode(self, file: PushFile) -> AsyncGenerator[list[Buffer]]:
        """Encode a file of any size, in portions. Iterating raises `OSError`; close it after."""
        match file.source:
            case Path() as path:
                return self._encode_path(file, path)
            case bytes() | bytearray() | memoryview() as data:
                return self._encode_blocks(file, _cut(data))
            case blocks:
                return self._encode_blocks(file, blocks)

    async def _encode_path(self, file: PushFile, path: Path) -> AsyncGenerator[list[Buffer]]:
        with path.open("rb", buffering=0) as opened:  # at once: `encode_lot` has had it open before
            if self.algorithm:
                beginning = await anyio.to_thread.run_sync(os.pread, opened.fileno(), SAMPLE_BYTES, 0)
                if self._algorithm_for(file, beginning):
                    async with aclosing(self._encode_blocks(file, _read_blocks(opened))) as portions:
                        async for portion in portions:
                            yield portion
                    return
            blocks = FileBlocks(opened.fileno())
            yield [encode_send(file.destination, file.mode, self.plain_flag), await blocks.take()]
            while block := await blocks.take():
                yield [block]
            yield [encode_done(_mtime_s(file))]

    async def _encode_blocks(
        self, file: PushFile, blocks: AsyncIterable[Buffer]
    ) -> AsyncGenerator[list[Buffer]]:
        compressor = None
        is_first = True
        async for block in blocks:
            portion = list[Buffer]()
            if is_first:
                is_first = False
                algorithm = self._algorithm_for(file, block)
                compressor = algorithm.new_compressor() if algorithm else None
                flag = algorithm.flag if algorithm else self.plain_flag
                portion.append(encode_send(file.destination, file.mode, flag))
            content = await anyio.to_thread.run_sync(compressor.add, block) if compressor else block
            yield [*portion, *encode_chunks(content)]
        if is_first:
            yield [encode_send(file.destination, file.mode, self.plain_flag)]
        yield [*encode_chunks(compressor.end() if compressor else b""), encode_done(_mtime_s(file))]

    def _add_whole(self, file: PushFile, parts: list[Buffer]) -> int:
        """Add a file's encoding to the parts and give its length, 0 where it must be streamed."""
        data, mtime_s = _take_whole(file)
        if data is None:
            return 0
        flag = self.plain_flag
        if self.algorithm and self._pack and not is_packed(file.destination):
            packed = self._pack(data)
            if len(packed) < len(data) * WORTHWHILE_RATIO:
                data, flag = packed, self.algorithm.flag
        parts.append(encode_send(file.destination, file.mode, flag))
        if len(data) <= CHUNK_BYTES:
            parts += (encode_chunk_head(len(data)), data) if data else ()
        else:
            parts += encode_chunks(data)
        parts.append(encode_done(int(time.time()) if mtime_s is None else mtime_s))
        return len(data) + HEAD.size

    def _algorithm_for(self, file: PushFile, beginning: Buffer) -> Algorithm | None:
        if self.algorithm is None or is_packed(file.destination):
            return None
        return self.algorithm if gives_in(memoryview(beginning)[:SAMPLE_BYTES]) else None


def _mtime_s(file: PushFile) -> int:
    if file.mtime_s is not None:
        return file.mtime_s
    return int(file.source.stat().st_mtime if isinstance(file.source, Path) else time.time())


def _take_whole(file: PushFile) -> tuple[Buffer | None, int | None]:
    """Give a file's content and time, no content where it is larger than a lot or comes piece by piece.

    Small files come in thousands, so this makes as few calls as can be. A pipe is not waited for.
    """
    source = file.source
    if isinstance(source, Path):
        descriptor = os.open(str(source), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            found = os.fstat(descriptor)
            data = os.read(descriptor, found.st_size + 1) if found.st_size <= LOT_BYTES else None
        finally:
            os.close(descriptor)
        has_grown = data is not None and len(data) > found.st_size
        return None if has_grown else data, int(found.st_mtime) if file.mtime_s is None else file.mtime_s
    if isinstance(source, bytes | bytearray | memoryview) and len(source) <= LOT_BYTES:
        return source, file.mtime_s
    return None, None


async def _cut(data: Buffer) -> AsyncIterator[Buffer]:
    for start in range(0, len(data), BLOCK_BYTES):
        yield memoryview(data)[start : start + BLOCK_BYTES]


async def _read_blocks(opened: FileIO) -> AsyncIterator[Buffer]:
    while block := await anyio.to_thread.run_sync(opened.read, READ_BYTES):
        yield block
