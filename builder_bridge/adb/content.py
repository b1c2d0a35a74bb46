"""What is sent to a phone: files, bytes, or bytes as they come; small ones are made ready in bulk."""

import time
from collections.abc import AsyncIterable, AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import anyio

from builder_bridge.adb.packets import Buffer
from builder_bridge.adb.sync_packets import BLOCK_BYTES, CHUNK_BYTES, encode_chunks, encode_done, encode_send

Content = Path | Buffer | AsyncIterable[Buffer]
READ_BYTES = 4 * BLOCK_BYTES
BATCH_FILES = 256


@dataclass(frozen=True, slots=True)
class PushFile:
    """One file to send: its content, its place on the phone, permission bits, time of change (Unix).

    A time that is not given is that of the source file, or now.
    """

    source: Content
    destination: PurePosixPath
    mode: int = 0o644
    mtime_s: int | None = None


def encode_small_files(files: Sequence[PushFile], plain_flag: int | None) -> list[bytes | None]:
    """Read and encode each file of at most one chunk whole; None for one that must be streamed."""
    return [_encode_small_file(file, plain_flag) for file in files]


async def read_blocks(content: Content) -> AsyncIterator[Buffer]:
    """Give the content in blocks; files are read in a thread."""
    match content:
        case Path():
            file = await anyio.to_thread.run_sync(lambda: content.open("rb", buffering=0))
            with file:
                while block := await anyio.to_thread.run_sync(file.read, READ_BYTES):
                    yield block
        case bytes() | bytearray() | memoryview():
            yield content
        case _:
            async for block in content:
                yield block


def mtime_s(file: PushFile) -> int:
    """Tell the time of change to send with a file."""
    if file.mtime_s is not None:
        return file.mtime_s
    return int(file.source.stat().st_mtime if isinstance(file.source, Path) else time.time())


def _encode_small_file(file: PushFile, plain_flag: int | None) -> bytes | None:
    match file.source:
        case Path() as path:
            with path.open("rb", buffering=0) as opened:
                data = opened.read(CHUNK_BYTES + 1)
        case bytes() | bytearray() | memoryview() as data:
            pass
        case _:
            return None
    if len(data) > CHUNK_BYTES:
        return None
    head = encode_send(file.destination, file.mode, plain_flag)
    return b"".join((head, *encode_chunks(data), encode_done(mtime_s(file))))
