"""A packed log on disk, read like the plain file that it was made of."""

import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from builder_bridge.log.frames import FRAME_BYTES, open_packed, pack


def pack_file(plain: Path, packed: Path) -> None:
    """Write a packed copy of a file, whole on the disk or not at all."""
    new = new_name_of(packed)
    with plain.open("rb") as source, new.open("wb") as target:
        for part in pack(_chunks(source)):
            target.write(part)
        target.flush()
        os.fsync(target.fileno())
    new.replace(packed)
    sync_folder(packed.parent)


def unpack_file(packed: Path, plain: Path) -> None:
    """Write the file that a packed one was made of, whole on the disk or not at all."""
    new = new_name_of(plain)
    with open_unpacked(packed) as source, new.open("wb") as target:
        for chunk in _chunks(source):
            target.write(chunk)
        target.flush()
        os.fsync(target.fileno())
    new.replace(plain)
    sync_folder(plain.parent)


def new_name_of(path: Path) -> Path:
    """Say under which name a file is written until it is whole."""
    return path.with_name(f"{path.name}.new")


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk, so that a rename is there before what follows it."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def open_unpacked(packed: Path) -> io.BufferedReader:
    """Open a packed file for reading what it was made of, from anywhere.

    Raises `FramesFault` for a damaged file, here or while it is read.
    """
    file = packed.open("rb")
    try:
        return io.BufferedReader(_Unpacked(file), FRAME_BYTES)
    except BaseException:
        file.close()
        raise


def unpacked_bytes(packed: Path) -> int:
    """Say how large the file was that a packed one was made of."""
    with open_unpacked(packed) as file:
        return file.seek(0, os.SEEK_END)


def _chunks(file: BinaryIO) -> Iterator[bytes]:
    while chunk := file.read(FRAME_BYTES):
        yield chunk


class _Unpacked(io.RawIOBase):
    """Unpacks one frame at a time; a read ends where a frame does, so each is unpacked once."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._log = open_packed(self._read_at, os.fstat(file.fileno()).st_size)
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._log.size_bytes}[whence]
        self._position = max(0, start + offset)
        return self._position

    def tell(self) -> int:
        return self._position

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        to_frame_end = FRAME_BYTES - self._position % FRAME_BYTES
        data = self._log.read(self._read_at, self._position, min(len(buffer), to_frame_end))
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)

    def close(self) -> None:
        self._file.close()
        super().close()

    def _read_at(self, offset: int, size_bytes: int) -> bytes:
        return os.pread(self._file.fileno(), size_bytes, offset)
