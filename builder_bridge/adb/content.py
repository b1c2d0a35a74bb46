"""What is sent to a phone: files, bytes, or bytes as they come; small ones are made ready in bulk."""

import os
import time
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Sequence
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
    encode_chunk_head,
    encode_chunks,
    encode_done,
    encode_send,
)

Content = Path | Buffer | AsyncIterable[Buffer]
READ_BYTES = 4 * BLOCK_BYTES


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


@dataclass(frozen=True, slots=True)
class Encoder:
    """Turns files into the sync service's language.

    `plain_flag` is 0 for version 2 and None for version 1; `algorithm` compresses what gives in.
    """

    plain_flag: int | None
    algorithm: Algorithm | None = None

    def encode_small(self, files: Sequence[PushFile]) -> list[bytes | None]:
        """Read and encode each file of at most one chunk whole; None for one that must be streamed."""
        pack = self.algorithm.new_pack() if self.algorithm else None
        return [self._encode_small(file, pack) for file in files]

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
        opened = await anyio.to_thread.run_sync(lambda: path.open("rb", buffering=0))
        with opened:
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

    def _encode_small(self, file: PushFile, pack: Callable[[Buffer], bytes] | None) -> bytes | None:
        data: Buffer
        mtime_s = file.mtime_s
        match file.source:
            case Path() as path:
                data, own_mtime_s = _read_beginning(path)
                mtime_s = own_mtime_s if mtime_s is None else mtime_s
            case bytes() | bytearray() | memoryview() as data:
                pass
            case _:
                return None
        if len(data) > CHUNK_BYTES:
            return None
        flag = self.plain_flag
        if self.algorithm and pack and not is_packed(file.destination):
            packed = pack(data)
            if len(packed) < len(data) * WORTHWHILE_RATIO:
                data, flag = packed, self.algorithm.flag
        head = encode_send(file.destination, file.mode, flag)
        done = encode_done(int(time.time()) if mtime_s is None else mtime_s)
        return b"".join((head, encode_chunk_head(len(data)), data, done) if data else (head, done))

    def _algorithm_for(self, file: PushFile, beginning: Buffer) -> Algorithm | None:
        if self.algorithm is None or is_packed(file.destination):
            return None
        return self.algorithm if gives_in(memoryview(beginning)[:SAMPLE_BYTES]) else None


def _mtime_s(file: PushFile) -> int:
    if file.mtime_s is not None:
        return file.mtime_s
    return int(file.source.stat().st_mtime if isinstance(file.source, Path) else time.time())


def _read_beginning(path: Path) -> tuple[bytes, int]:
    """Read one byte more than a chunk at most, with as few calls as can be: small files come in thousands."""
    descriptor = os.open(str(path), os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, CHUNK_BYTES + 1), int(os.fstat(descriptor).st_mtime)
    finally:
        os.close(descriptor)


async def _cut(data: Buffer) -> AsyncIterator[Buffer]:
    for start in range(0, len(data), BLOCK_BYTES):
        yield memoryview(data)[start : start + BLOCK_BYTES]


async def _read_blocks(opened: FileIO) -> AsyncIterator[Buffer]:
    while block := await anyio.to_thread.run_sync(opened.read, READ_BYTES):
        yield block
