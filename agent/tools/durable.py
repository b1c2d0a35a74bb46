"""Put files in place so that neither a kill nor a power cut leaves one half written, empty or elsewhere."""

import errno
import os
from hashlib import sha256
from pathlib import Path

from agent.tools.confine import UNFINISHED_SUFFIX

_NO_SYNC = frozenset({errno.EINVAL, errno.ENOTSUP, errno.EACCES})


def put(path: Path, data: bytes | None) -> None:
    """Give a file its whole new content, or take it away where that is None.

    Once this returns, the change is on disk; a power cut before that leaves the file as it was or as it
    will be. An existing file keeps its mode. Blocking.
    """
    if data is None:
        path.unlink(missing_ok=True)
        if path.parent.is_dir():
            sync_folder(path.parent)
        return
    make_folder(path.parent)
    fresh = unfinished(path)
    # Only a file made here is written to: a link of that name in a workspace could lead anywhere.
    fresh.unlink(missing_ok=True)
    mode = path.stat().st_mode & 0o777 if path.exists() else None
    write(fresh, data, mode)
    fresh.replace(path)
    sync_folder(path.parent)


def unfinished(path: Path) -> Path:
    """Give where the new content of a file lies until it is whole."""
    return path.with_name(f".{sha256(os.fsencode(path.name)).hexdigest()[:16]}{UNFINISHED_SUFFIX}")


def write(path: Path, data: bytes, mode: int | None = None) -> None:
    """Write a file, which is no link, and force its content to disk."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o666 if mode is None else mode), "wb") as file:
        file.write(data)
        file.flush()
        if mode is not None:
            os.fchmod(file.fileno(), mode)
        os.fsync(file.fileno())


def make_folder(folder: Path, mode: int = 0o777) -> None:
    """Make a folder and those above it, each of them on disk."""
    if folder.is_dir():
        return
    make_folder(folder.parent, mode)
    folder.mkdir(mode, exist_ok=True)
    sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Force to disk which files a folder holds, where its file system can do so."""
    try:
        file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(file)
        finally:
            os.close(file)
    except OSError as fault:
        if fault.errno not in _NO_SYNC:
            raise
