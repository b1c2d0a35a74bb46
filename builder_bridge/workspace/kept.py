"""What this host remembers of contents that it has handed over, by fingerprint, and of where they lie.

With it, the next hand-off names only what changed. Forgetting costs one whole upload, nothing else;
so does a phone whose content was replaced by another host.
"""

import gzip
import hashlib
import json
import os
from pathlib import Path

from builder_bridge.workspace.snapshot import Snapshot, entries_of

MAX_KEPT = 50
MAX_PLACES = 200


def default_memory() -> Path:
    """Give the folder for it in the user's cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "pocketbuild" / "handed-over"


class KeptContents:
    """Entries of snapshots in a folder of this host. Blocking; damaged entries count as forgotten."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._last: tuple[str, dict[str, str]] | None = None

    def save(self, snapshot: Snapshot, prefix: str) -> None:
        """Remember a snapshot's entries, and that they lie in a prefix of a phone; forget the oldest."""
        self._folder.mkdir(parents=True, exist_ok=True)
        place = self._place(snapshot.fingerprint)
        if place.exists():
            place.touch()
        else:
            entries = entries_of(snapshot)
            self._write(place, gzip.compress(json.dumps(entries).encode(), 1, mtime=0))
            self._last = (snapshot.fingerprint, entries)
            self._forget("*.json.gz", MAX_KEPT)
        if self.lying_in(prefix, snapshot.place) != snapshot.fingerprint:
            self._write(self._pointer(prefix, snapshot.place), snapshot.fingerprint.encode())
            self._forget("*.place", MAX_PLACES)

    def load(self, fingerprint: str) -> dict[str, str] | None:
        """Give the entries of a content, None where they are not remembered."""
        if self._last is not None and self._last[0] == fingerprint:
            return dict(self._last[1])
        try:
            document = json.loads(gzip.decompress(self._place(fingerprint).read_bytes()))
        except (OSError, ValueError, EOFError):
            return None
        return document if isinstance(document, dict) else None

    def lying_in(self, prefix: str, place: str) -> str | None:
        """Give the fingerprint of what was last put at a place of a prefix, None where that is not known."""
        try:
            fingerprint = self._pointer(prefix, place).read_text()
        except (OSError, ValueError):
            return None
        return fingerprint if fingerprint.isalnum() else None

    def _write(self, path: Path, data: bytes) -> None:
        part = path.with_suffix(f".{os.getpid()}.part")
        part.write_bytes(data)
        part.replace(path)

    def _forget(self, pattern: str, limit: int) -> None:
        kept = sorted(self._folder.glob(pattern), key=lambda path: path.stat().st_mtime, reverse=True)
        for old in kept[limit:]:
            old.unlink(missing_ok=True)

    def _pointer(self, prefix: str, place: str) -> Path:
        return self._folder / f"{hashlib.sha256(f'{prefix} {place}'.encode()).hexdigest()[:32]}.place"

    def _place(self, fingerprint: str) -> Path:
        if not fingerprint.isalnum():
            raise ValueError(f"{fingerprint!r} is no fingerprint")
        return self._folder / f"{fingerprint}.json.gz"
