"""Files to and from a phone, by its sync service.

One stream carries any number of files without a pause between them; the phone's answers are read
at the same time, so its reason for refusing a file is known at once, even in the middle of it.
"""

import os
from collections import deque
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing, suppress
from functools import partial
from itertools import islice
from pathlib import Path, PurePosixPath

import anyio
import anyio.lowlevel

from builder_bridge.adb.compression import Algorithm, choose_algorithm, is_packed
from builder_bridge.adb.content import Content, Encoder, PushFile
from builder_bridge.adb.line import line_speed
from builder_bridge.adb.link import AdbConnection
from builder_bridge.adb.packets import Buffer
from builder_bridge.adb.sync_packets import (
    Done,
    Entry,
    FileStat,
    Okay,
    encode_receive,
    encode_request,
)
from builder_bridge.adb.sync_session import SyncSession, open_session
from builder_bridge.adb.waiting import Hurry, Signal, beside
from builder_bridge.errors import PathRefused, ProtocolFault, StreamEnded

BATCH_FILES = 256
"""So many files are looked at to decide on compression."""
ANSWERS_WINDOW_BYTES = 1
FEW_FILES = 64
ANSWERS_PAUSE_S = 0.01
"""The phone answers each file with eight bytes. Where many are on their way it may send its next
packet only after we have taken the last one, and we take our time, so that answers come in lots:
thousands of packets would keep both ends busier than the files themselves. A phone that cannot answer
goes on for some 270 files (its socket holds no more answers), far more than it makes in that time."""
WORTH_MEASURING_BYTES = 1 << 20
"""Less than this is sent plain rather than the line be measured for it."""


async def push(
    adb: AdbConnection,
    source: Content,
    destination: PurePosixPath,
    mode: int = 0o644,
    mtime_s: int | None = None,
) -> None:
    """Send one file; folders on the way are made. Raises as `push_many` does."""
    await push_many(adb, [PushFile(source, destination, mode, mtime_s)])


async def push_many(adb: AdbConnection, files: Iterable[PushFile]) -> None:
    """Send files one after the other without waiting for answers in between.

    A time of change that is not given is that of the source file, or now. Raises `StorageFull` or
    `PathRefused` with the phone's own words, naming the file: those before it lie there whole,
    it and those after it do not. Raises `PhoneLost` when the connection dies.
    """
    async with open_session(adb, window_bytes=ANSWERS_WINDOW_BYTES) as session:
        unanswered = _Unanswered()
        async with beside(partial(_take_answers, session, unanswered)):
            with suppress(StreamEnded):  # the phone's reason is among the answers that are being read
                await _send_files(adb, session, files, unanswered)
            await unanswered.all_gone()


async def pull(
    adb: AdbConnection, source: PurePosixPath, destination: Path, *, via_part: bool = True
) -> FileStat:
    """Fetch one file with its permission bits and time of change.

    With `via_part` the content goes to `NAME.part` and is renamed only when it is whole, so
    `destination` is either the old file or the new one. Raises `PathRefused` with the phone's
    reason, `TransferFault` when fewer or more bytes came than the file has, `OSError` of this host.
    """
    target = destination.with_name(f"{destination.name}.part") if via_part else destination
    async with open_session(adb) as session:
        algorithm = None if is_packed(source) else choose_algorithm(adb.features, adb.line_bytes_per_s)
        flag = algorithm.flag if algorithm else session.plain_flag
        await session.send(session.encode_stat(source), encode_receive(source, flag))
        stat = await session.take_stat(source)
        if stat is None:
            raise PathRefused(f"There is no {source} on the phone.", serial=adb.serial)
        file = await anyio.to_thread.run_sync(partial(target.open, "wb", buffering=0))
        try:
            with file:
                await session.save_content(source, file.fileno(), stat, algorithm)
                os.fchmod(file.fileno(), stat.mode & 0o777)
                os.utime(file.fileno(), (stat.mtime_s, stat.mtime_s))
            if via_part:
                target.replace(destination)
        except BaseException:
            if via_part:
                target.unlink(missing_ok=True)
            raise
    return stat


async def stat(adb: AdbConnection, path: PurePosixPath) -> FileStat | None:
    """Ask what a path is, following links; None where there is nothing. Raises `PathRefused`."""
    async with open_session(adb) as session:
        await session.send(session.encode_stat(path))
        return await session.take_stat(path)


async def listdir(adb: AdbConnection, path: PurePosixPath) -> list[Entry]:
    """List a directory by name, without `.` and `..`; empty also where it cannot be read."""
    is_v2 = "ls_v2" in adb.features
    async with open_session(adb, entry=b"DNT2" if is_v2 else b"DENT") as session:
        await session.send(encode_request(b"LIS2" if is_v2 else b"LIST", path))
        found = list[Entry]()
        while not isinstance(answer := await session.take_answer(), Done):
            if not isinstance(answer, Entry):
                raise session.refusal(path, answer)
            if answer.name not in (".", ".."):
                found.append(answer)
        return sorted(found, key=lambda entry: entry.name)


class _Unanswered:
    """The files that were sent and not yet answered, in order."""

    def __init__(self) -> None:
        self.paths = deque[PurePosixPath]()
        self.changed = Signal()

    async def all_gone(self) -> None:
        while self.paths:
            await self.changed.wait()


async def _take_answers(session: SyncSession, unanswered: _Unanswered) -> None:
    while True:
        for answer in await session.take_answers():
            if not unanswered.paths:
                raise ProtocolFault("The phone's sync service answered before it was asked.")
            if not isinstance(answer, Okay):
                raise session.refusal(unanswered.paths[0], answer)
            unanswered.paths.popleft()
        unanswered.changed.notify()
        if len(unanswered.paths) > FEW_FILES:
            await anyio.sleep(ANSWERS_PAUSE_S)


async def _send_files(
    adb: AdbConnection, session: SyncSession, files: Iterable[PushFile], unanswered: _Unanswered
) -> None:
    source, hurry, encoder = iter(files), Hurry(), Encoder(session.plain_flag)
    while batch := list(islice(source, BATCH_FILES)):
        algorithm = await _choose_algorithm(adb, batch, hurry)
        if algorithm is not encoder.algorithm:
            encoder = Encoder(session.plain_flag, algorithm)
        start = 0
        while start < len(batch):
            await anyio.lowlevel.checkpoint()
            count, ready = await hurry.run(encoder.encode_lot, batch[start:])
            unanswered.paths.extend(file.destination for file in batch[start : start + max(1, count)])
            if count:
                await session.send(ready)
            else:
                await _stream(session, encoder.encode(batch[start]))
            start += max(1, count)


async def _stream(session: SyncSession, encoded: AsyncGenerator[list[Buffer]]) -> None:
    async with aclosing(encoded) as portions:
        async for portion in portions:
            await session.send(*portion)


async def _choose_algorithm(adb: AdbConnection, batch: list[PushFile], hurry: Hurry) -> Algorithm | None:
    """Compress only where there is much to send and the phone can undo it; else do not even measure."""
    if choose_algorithm(adb.features, 0.0) is None:
        return None
    if adb.line_bytes_per_s is None:
        sizes = (file.known_bytes for file in batch if not is_packed(file.destination))
        if await hurry.run(sum, sizes) < WORTH_MEASURING_BYTES:
            return None
    return choose_algorithm(adb.features, await line_speed(adb))
