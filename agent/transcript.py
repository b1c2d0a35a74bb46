"""Write and read the transcript of a run: append-only JSON lines, one entry each.

Every entry is handed to the operating system before the run goes on, so that a killed process loses
nothing; at turn ends and before effects it is also forced to disk, so that a power cut does not either.
"""

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from pydantic_core import PydanticSerializationError, to_json

from agent.entries import Began, Entry, Starting, Stopped, TurnEnded, entry_from_json, entry_to_json
from agent.errors import TranscriptFault
from agent.message import JsonObject
from agent.redact import Redactor

FILE_NAME = "transcript.jsonl"
_BLOCK_BYTES = 64 * 1024
_TRIES = 5
_PAUSE_S = 0.02


class Transcript:
    """The transcript of one run, open for appending; only one process can hold it open."""

    def __init__(self, folder: Path, redactor: Redactor) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.folder = folder
        self._redactor = redactor
        self._file = os.open(folder / FILE_NAME, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            _lock(self._file, folder)
            self._entries = _read(folder / FILE_NAME)
            _drop_torn_end(self._file)
        except BaseException:
            os.close(self._file)
            raise

    def take_entries(self) -> list[Entry]:
        """Give the entries that were there when the file was opened, once; they are not kept here."""
        entries, self._entries = self._entries, []
        return entries

    def append(self, entry: Entry) -> None:
        """Write one entry; once this returns, a kill of the process does not lose it.

        Raises `TranscriptFault` where the disk does not take it.
        """
        plain = entry_to_json(entry)
        line = _line(plain)
        if self._redactor.may_hold_secret(line):
            kept = self._redactor.json(plain)
            line = line if kept == plain else _line({**kept, "redacted": True})
        try:
            if os.write(self._file, line) != len(line):
                raise TranscriptFault(f"{self.folder / FILE_NAME}: no room for an entry of {len(line)} bytes")
            if isinstance(entry, Began | Starting | TurnEnded | Stopped):
                os.fdatasync(self._file)
        except OSError as fault:
            raise TranscriptFault(
                f"{self.folder / FILE_NAME}: {len(line)} bytes cannot be written: {fault.strerror}"
            ) from fault

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._file)
        self._file = -1


def read_transcript(folder: Path) -> list[Entry]:
    """Give the entries of a run that may still be under way; a torn last line is left out."""
    return _read(folder / FILE_NAME)


def read_ends(folder: Path) -> tuple[Entry | None, Entry | None]:
    """Give the first and the last entry of a run, None where it has none, however long it is."""
    try:
        with (folder / FILE_NAME).open("rb") as file:
            first = file.readline()
            if not first.endswith(b"\n"):
                return None, None
            last = _last_line(file) or first
    except FileNotFoundError:
        return None, None
    except OSError as fault:
        raise TranscriptFault(f"transcript {folder / FILE_NAME} cannot be read: {fault.strerror}") from fault
    return _entry(folder / FILE_NAME, first), _entry(folder / FILE_NAME, last)


def _last_line(file: IO[bytes]) -> bytes:
    """Give the last line that has its end."""
    at, tail = file.seek(0, os.SEEK_END), b""
    while at > 0:
        size = min(at, _BLOCK_BYTES)
        at = file.seek(at - size)
        tail = file.read(size) + tail
        whole = tail[: tail.rfind(b"\n") + 1]
        start = whole.rfind(b"\n", 0, -1) + 1
        if whole and (start or at == 0):
            return whole[start:]
    return b""


def _entry(path: Path, line: bytes, number: int | None = None) -> Entry:
    try:
        return entry_from_json(json.loads(line))
    except ValueError as fault:
        place = path if number is None else f"{path}:{number}"
        raise TranscriptFault(f"{place} is not JSON") from fault


def _line(entry: JsonObject) -> bytes:
    try:
        return to_json(entry) + b"\n"
    except PydanticSerializationError:  # half of a surrogate pair, which only the slower encoder writes
        return json.dumps(entry, separators=(",", ":")).encode() + b"\n"


def _read(path: Path) -> list[Entry]:
    entries: list[Entry] = []
    try:
        data = path.read_bytes()
    except OSError as fault:
        raise TranscriptFault(f"transcript {path} cannot be read: {fault.strerror}") from fault
    for number, line in enumerate(data.splitlines(keepends=True), start=1):
        if not line.endswith(b"\n"):
            break
        entries.append(_entry(path, line, number))
    return entries


def is_at_work(folder: Path) -> bool:
    """Say whether some process works on the run in a folder. Blocking."""
    with held(folder, fcntl.LOCK_SH) as is_held:
        return not is_held and (folder / FILE_NAME).exists()


@contextmanager
def held(folder: Path, lock: int = fcntl.LOCK_EX) -> Iterator[bool]:
    """Keep other processes from going on with a run for the block; gives whether that could be done.

    It could not where one works on the run, or where the run has no transcript. Blocking.
    """
    try:
        file = os.open(folder / FILE_NAME, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        yield False
        return
    try:
        yield _try_lock(file, lock)
    finally:
        os.close(file)


def _try_lock(file: int, lock: int) -> bool:
    try:
        fcntl.flock(file, lock | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _lock(file: int, folder: Path) -> None:
    for _ in range(_TRIES):
        if _try_lock(file, fcntl.LOCK_EX):
            return
        time.sleep(_PAUSE_S)  # who only looks whether a run is at work has it for a moment
    raise TranscriptFault(
        f"the run in {folder} is open in another process", hint="Stop the other process, then resume."
    )


def _drop_torn_end(file: int) -> None:
    """Cut off a last line without its end: its entry was never acted upon."""
    size = os.fstat(file).st_size
    tail = os.pread(file, min(size, 64 * 1024 * 1024), max(0, size - 64 * 1024 * 1024))
    if tail and not tail.endswith(b"\n"):
        os.ftruncate(file, size - (len(tail) - tail.rfind(b"\n") - 1))
