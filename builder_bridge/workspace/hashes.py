"""Remembers digests of files by size, times and inode, so that an unchanged file is read once.

As in git's index, an entry counts only where the file's times lie clearly before the moment the
entry was made: a file that is written twice within a clock tick could else keep an old digest.
"""

import hashlib
import json
import os
import time
from pathlib import Path

_SETTLED_NS = 2_000_000_000
_FORMAT = 1


class HashCache:
    """Digests of one workspace's files; without a `store` it remembers nothing past its life.

    `load` and `save` are blocking. A store that cannot be read counts as empty.
    """

    def __init__(self, store: Path | None = None) -> None:
        self._store = store
        self._known: dict[str, list[object]] = {}
        self._used: dict[str, list[object]] = {}
        if store is not None:
            self._known = _load(store)

    def digest(self, path: Path, status: os.stat_result) -> tuple[int, str]:
        """Give the size in bytes and the SHA-256 of a file, from memory where that is safe."""
        mark = [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]
        known = self._known.get(str(path))
        if known is not None and known[:4] == mark and isinstance(known[4], str):
            self._used[str(path)] = known
            return status.st_size, known[4]
        now_ns = time.time_ns()
        with path.open("rb") as source:
            digest = hashlib.file_digest(source, "sha256").hexdigest()
            size_bytes = source.tell()
        if size_bytes == status.st_size and max(mark[1], mark[2]) < now_ns - _SETTLED_NS:
            self._used[str(path)] = [*mark, digest]
        return size_bytes, digest

    def save(self) -> None:
        """Keep what was used since the load for the next time."""
        if self._store is None or self._used == self._known:
            return
        self._store.parent.mkdir(parents=True, exist_ok=True)
        part = self._store.with_suffix(f".{os.getpid()}.part")
        part.write_text(json.dumps({"format": _FORMAT, "files": self._used}))
        part.replace(self._store)


def _load(store: Path) -> dict[str, list[object]]:
    try:
        document = json.loads(store.read_text())
        files = document["files"] if document.get("format") == _FORMAT else {}
        return {path: mark for path, mark in files.items() if isinstance(mark, list) and len(mark) == 5}
    except (OSError, ValueError, AttributeError, KeyError, TypeError):
        return {}
