"""One session of a phone's sync service: a stream on which requests and answers go."""

import os
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from errno import ENOENT, errorcode
from pathlib import PurePosixPath

import anyio

from builder_bridge.adb.compression import Algorithm
from builder_bridge.adb.link import AdbConnection, AdbStream
from builder_bridge.adb.packets import Buffer, skip_bytes
from builder_bridge.adb.protocol import WINDOW_BYTES
from builder_bridge.adb.sync_packets import (
    Answer,
    Data,
    Done,
    Fail,
    FileStat,
    Stat,
    SyncReader,
    encode_request,
)
from builder_bridge.adb.waiting import Hurry
from builder_bridge.errors import (
    BridgeError,
    PathRefused,
    ProtocolFault,
    StorageFull,
    StreamEnded,
    TransferFault,
)

WRITE_BYTES = 1 << 20
MAX_BUFFERS = 512
"""How much is written to a file at once; the kernel takes at most 1,024 buffers."""
STORAGE_FULL_TEXTS = ("No space left", "quota exceeded", "ENOSPC", "EDQUOT")


class SyncSession:
    """Requests go by `send`, answers come by `take_answer`, in the order of the requests."""

    def __init__(self, adb: AdbConnection, stream: AdbStream, entry: bytes) -> None:
        self._stream = stream
        self._has_stat_v2 = "stat_v2" in adb.features
        self._reader = SyncReader(entry)
        self._answers = deque[Answer]()
        self.serial = adb.serial
        self.plain_flag = 0 if "sendrecv_v2" in adb.features else None
        self.send = stream.send

    async def take_answer(self) -> Answer:
        """Give the next answer. Raises `StreamEnded` when the phone ends the session instead."""
        if not self._answers:
            self._answers.extend(await self.take_answers())
        return self._answers.popleft()

    async def take_answers(self) -> list[Answer]:
        """Give all answers that came at once, at least one. Raises as `take_answer` does."""
        answers = list(self._answers)
        self._answers.clear()
        while not answers:
            data = await self._stream.receive()
            if not data:
                raise StreamEnded("The phone's sync service ended without an answer.", serial=self.serial)
            answers += self._reader.feed(data)
        return answers

    def encode_stat(self, path: PurePosixPath) -> bytes:
        """Ask what a path is, in the newest way that the phone knows."""
        return encode_request(b"STA2" if self._has_stat_v2 else b"STAT", path)

    async def take_stat(self, path: PurePosixPath) -> FileStat | None:
        """Take the answer to `encode_stat`; None where there is nothing."""
        answer = await self.take_answer()
        if not isinstance(answer, Stat):
            raise self.refusal(path, answer)
        if answer.errno not in (0, ENOENT):
            reason = errorcode.get(answer.errno, str(answer.errno))
            raise PathRefused(f"The phone cannot tell what {path} is: {reason}.", serial=self.serial)
        return answer.stat if not answer.errno else None

    async def save_content(
        self, path: PurePosixPath, descriptor: int, told: FileStat, algorithm: Algorithm | None = None
    ) -> None:
        """Write a file's content as it comes, decompressed.

        Raises `TransferFault` when it is not as long as the phone has told: at once when more comes,
        so that no phone can fill this host's disk or memory.
        """
        limit_bytes = told.size_bytes if self._has_stat_v2 else None
        sink = _FileSink(path, descriptor, algorithm, limit_bytes)
        pieces, waiting_bytes, is_done = list[Buffer](), 0, False
        while not is_done:
            answer = await self.take_answer()
            match answer:
                case Data(data):
                    pieces.append(data)
                    waiting_bytes += len(data)
                case Done():
                    is_done = True
                case _:
                    raise self.refusal(path, answer)
            if is_done or waiting_bytes >= WRITE_BYTES or len(pieces) == MAX_BUFFERS:
                await sink.write(pieces)
                pieces, waiting_bytes = [], 0
        if sink.saved_bytes < told.size_bytes:
            raise TransferFault(
                f"Only {sink.saved_bytes} of {told.size_bytes} bytes of {path} came.", serial=self.serial
            )

    def refusal(self, path: PurePosixPath, answer: Answer) -> BridgeError:
        """Make the fault of an answer that is not the wanted one; the phone's own words are kept."""
        match answer:
            case Fail(text) if any(full in text for full in STORAGE_FULL_TEXTS):
                return StorageFull(f"The phone has no room for {path}: {text}.", serial=self.serial)
            case Fail(text):
                return PathRefused(f"The phone refused {path}: {text}.", serial=self.serial)
            case _:
                kind = type(answer).__name__
                return ProtocolFault(
                    f"The phone's sync service answered {kind} to {path}.", serial=self.serial
                )


@asynccontextmanager
async def open_session(
    adb: AdbConnection, entry: bytes = b"DONE", window_bytes: int = WINDOW_BYTES
) -> AsyncIterator[SyncSession]:
    """Open a session and end it with the block; `entry` as in `SyncReader`."""
    stream = await adb.open("sync:", window_bytes=window_bytes)
    try:
        yield SyncSession(adb, stream, entry)
    finally:
        with anyio.CancelScope(shield=True):
            await stream.close()


class _FileSink:
    """Writes to a file; the page cache takes a mebibyte in a third of a millisecond."""

    def __init__(
        self, path: PurePosixPath, descriptor: int, algorithm: Algorithm | None, limit_bytes: int | None
    ) -> None:
        self._path = path
        self._descriptor = descriptor
        self._limit_bytes = limit_bytes
        self._portions = list[Buffer]()
        self._portions_bytes = 0
        self._decompress = algorithm.new_decompress(self._gather) if algorithm else None
        self._hurry = Hurry(is_slow=algorithm is not None)
        self.saved_bytes = 0

    async def write(self, pieces: list[Buffer]) -> None:
        await self._hurry.run(self._write_all, pieces)

    def _write_all(self, pieces: list[Buffer]) -> None:
        if self._decompress is None:
            self._save(pieces)
            return
        for piece in pieces:
            self._decompress(piece)
        self._save_gathered()

    def _gather(self, portion: Buffer) -> None:
        self._portions.append(portion)
        self._portions_bytes += len(portion)
        if self._portions_bytes >= WRITE_BYTES or len(self._portions) == MAX_BUFFERS:
            self._save_gathered()

    def _save_gathered(self) -> None:
        portions, self._portions, self._portions_bytes = self._portions, [], 0
        self._save(portions)

    def _save(self, pieces: list[Buffer]) -> None:
        views = deque(memoryview(piece) for piece in pieces)
        if self._limit_bytes is not None and self.saved_bytes + sum(map(len, views)) > self._limit_bytes:
            raise TransferFault(
                f"More bytes came of {self._path} than the {self._limit_bytes} that the phone had told: "
                "it grows, or the phone lies."
            )
        while views:
            written = os.writev(self._descriptor, views)
            self.saved_bytes += written
            skip_bytes(views, written)
