"""The growing copy of an artifact on this host: what has come of it, wherever in the file that is.

One stream lets the file `NAME.DIGEST.part` grow; its length is what has come. Several write into a file
of the full size; `NAME.DIGEST.part.ranges` beside it, there before the file has that size, notes what
has come. A note is written after its bytes are on the disk, so neither a crash nor a power cut makes
missing bytes count as there; the digest of the whole has the last word.
"""

import errno
import hashlib
import os
import threading
from collections import deque
from itertools import islice
from pathlib import Path

from builder_bridge.build import Artifact
from builder_bridge.errors import HostStorageFull, TransferFault
from builder_bridge.ranges import Range, merge, missing, read_notes, to_line

_READ_BYTES = 4 << 20
_NOTE_BYTES = 16 << 20
_MAX_BUFFERS = 512
"""The kernel takes at most 1,024 in one call."""
_NO_PREALLOCATION = {errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS}


class PartFile:
    """Takes bytes in any order, each once. All methods are blocking; `write` may be called side by side."""

    def __init__(self, destination: Path, artifact: Artifact) -> None:
        self._destination = destination
        self._artifact = artifact
        self._path = destination.with_name(f"{destination.name}.{artifact.sha256[:12]}.part")
        self._notes_path = self._path.with_name(f"{self._path.name}.ranges")
        self._lock = threading.Lock()
        self._notes_fd: int | None = None

    def open(self, is_shared: bool) -> tuple[Range, ...]:
        """Take up what is there already and give what is missing; `is_shared` by several streams."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        if not self._path.exists():
            self._notes_path.unlink(missing_ok=True)
        self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            size_bytes = os.fstat(self._fd).st_size
            self._held: tuple[Range, ...] = ((0, size_bytes),) if size_bytes else ()
            self._unnoted = list[Range]()
            self._unnoted_bytes = 0
            if self._notes_path.exists():
                notes = read_notes(self._notes_path.read_bytes(), self._artifact.size_bytes)
                self._held = tuple(
                    (start, min(end, size_bytes)) for start, end in notes if start < size_bytes
                )
                self._begin_notes()
            elif is_shared and size_bytes <= self._artifact.size_bytes:
                self._begin_notes()
            self._digest, self._hashed_bytes = hashlib.sha256(), 0
            self._hash_what_is_there()
        except BaseException:
            self.close()
            raise
        return missing(self._held, self._artifact.size_bytes)

    def write(self, offset: int, pieces: list[bytes]) -> None:
        """Put bytes where they belong. Raises `HostStorageFull`; what was written before that counts."""
        end = offset
        try:
            end = self._put(offset, pieces)
        except _Cut as cut:
            end = cut.end
            raise HostStorageFull(f"Cannot write {self._path}: {cut.reason}.") from cut.__cause__
        finally:
            if end > offset:
                self._count(offset, end, pieces)

    def _put(self, offset: int, pieces: list[bytes]) -> int:
        waiting, position = deque(memoryview(piece) for piece in pieces if piece), offset
        while waiting:
            try:
                done = os.pwritev(self._fd, list(islice(waiting, _MAX_BUFFERS)), position)
            except OSError as error:
                raise _Cut(position, error.strerror or str(error)) from error
            position += done
            while waiting and done >= len(waiting[0]):
                done -= len(waiting.popleft())
            if done:
                waiting[0] = waiting[0][done:]
        return position

    def _count(self, start: int, end: int, pieces: list[bytes]) -> None:
        with self._lock:
            if self._hashed_bytes == start and end - start == sum(map(len, pieces)):
                for piece in pieces:
                    self._digest.update(piece)
                self._hashed_bytes = end
            self._held = merge((*self._held, (start, end)))
            self._unnoted.append((start, end))
            self._unnoted_bytes += end - start
            if self._unnoted_bytes >= _NOTE_BYTES:
                self._note()

    def close(self) -> None:
        """Let go of the file; what was written stays, and is known the next time."""
        try:
            if self._notes_fd is not None:
                with self._lock:
                    self._note()
        finally:
            for fd in (self._fd, self._notes_fd):
                if fd is not None:
                    os.close(fd)
            self._notes_fd = None

    def finish(self) -> bool:
        """Put the file in place if it is whole and right, else throw it away."""
        self._fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            is_whole = self._held == ((0, self._artifact.size_bytes),) or not self._artifact.size_bytes
            if is_whole:
                self._hash_what_is_there()
            is_right = (
                is_whole
                and os.fstat(self._fd).st_size == self._artifact.size_bytes
                and self._digest.hexdigest() == self._artifact.sha256
            )
            if is_right:
                os.fsync(self._fd)
        finally:
            os.close(self._fd)
        if is_right:
            self._path.replace(self._destination)
        else:
            self._path.unlink(missing_ok=True)
        self._notes_path.unlink(missing_ok=True)
        if is_right:
            _sync_folder(self._destination.parent)
        return is_right

    def _hash_what_is_there(self) -> None:
        """Bring the digest up to the first byte that is missing."""
        end = self._held[0][1] if self._held and self._held[0][0] == 0 else 0
        while self._hashed_bytes < end:
            chunk = os.pread(self._fd, min(_READ_BYTES, end - self._hashed_bytes), self._hashed_bytes)
            if not chunk:
                return
            self._digest.update(chunk)
            self._hashed_bytes += len(chunk)

    def _begin_notes(self) -> None:
        """Note what is there, durably and by rename; only then may the file get its full size."""
        os.fdatasync(self._fd)
        fresh = self._notes_path.with_name(f"{self._notes_path.name}.new")
        fresh.write_bytes(b"".join(map(to_line, self._held)))
        self._notes_fd = os.open(fresh, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        os.fsync(self._notes_fd)
        fresh.replace(self._notes_path)
        _sync_folder(self._notes_path.parent)
        try:
            os.posix_fallocate(self._fd, 0, max(1, self._artifact.size_bytes))
        except OSError as error:
            if error.errno not in _NO_PREALLOCATION:
                raise HostStorageFull(
                    f"No room for the {self._artifact.size_bytes} bytes of {self._path}: {error.strerror}."
                ) from error

    def _note(self) -> None:
        if self._notes_fd is None:
            return
        if self._unnoted:
            os.fdatasync(self._fd)
            os.write(self._notes_fd, b"".join(map(to_line, merge(self._unnoted))))
        self._unnoted.clear()
        self._unnoted_bytes = 0


class _Cut(Exception):
    """Writing ended early, at the byte `end`."""

    def __init__(self, end: int, reason: str) -> None:
        super().__init__(reason)
        self.end = end
        self.reason = reason


def too_long(artifact: Artifact) -> TransferFault:
    """Give the fault for more bytes than an artifact has."""
    return TransferFault(f"{artifact.path} arrives longer than the phone says.")


def _sync_folder(path: Path) -> None:
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
