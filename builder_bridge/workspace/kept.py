"""What this host remembers of contents that it has handed over, by fingerprint.

With it, the next hand-off names only what changed. Forgetting costs one whole upload, nothing else.
"""

import gzip
import json
import os
from pathlib import Path

from builder_bridge.workspace.snapshot import Snapshot, entries_of

MAX_KEPT = 50


def default_memory() -> Path:
    """Give the folder for it in the user's cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "pocketbuild" / "handed-over"


class KeptContents:
    """Entries of snapshots in a folder of this host. Blocking; damaged entries count as forgotten."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def save(self, snapshot: Snapshot) -> None:
        """Remember a snapshot's entries, and forget the oldest beyond `MAX_KEPT`."""
        place = self._place(snapshot.fingerprint)
        if place.exists():
            place.touch()
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        part = place.with_suffix(f".{os.getpid()}.part")
        part.write_bytes(gzip.compress(json.dumps(entries_of(snapshot)).encode(), 1, mtime=0))
        part.replace(place)
        kept = sorted(self._folder.glob("*.json.gz"), key=lambda path: path.stat().st_mtime, reverse=True)
        for old in kept[MAX_KEPT:]:
            old.unlink(missing_ok=True)

    def load(self, fingerprint: str) -> dict[str, str] | None:
        """Give the entries of a content, None where they are not remembered."""
        try:
            document = json.loads(gzip.decompress(self._place(fingerprint).read_bytes()))
        except (OSError, ValueError, EOFError):
            return None
        return document if isinstance(document, dict) else None

    def _place(self, fingerprint: str) -> Path:
        if not fingerprint.isalnum():
            raise ValueError(f"{fingerprint!r} is no fingerprint")
        return self._folder / f"{fingerprint}.json.gz"
