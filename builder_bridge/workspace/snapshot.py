"""A snapshot says what a workspace holds at one moment: paths, modes and digests, no bytes.

Two snapshots with the same fingerprint have the same content, wherever and whenever they were
taken: times, owners and the order of folders do not count.
"""

import hashlib
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class SnapshotFile:
    """One regular file; `path` is relative with forward slashes, `mode` is 0o644 or 0o755.

    `content` is set where what is handed over differs from the file on the host (an SDK path
    taken out of `local.properties`); digest and size are those of what is handed over.
    """

    path: str
    size_bytes: int
    sha256: str
    mode: int = 0o644
    content: bytes | None = None


@dataclass(frozen=True, slots=True)
class SnapshotLink:
    """A symbolic link that stays inside the workspace; `target` is relative to the link's folder."""

    path: str
    target: str


@dataclass(frozen=True, slots=True)
class SnapshotNote:
    """Something about a path that a person may want to know: what was left out or altered, and why."""

    code: str
    path: str
    detail: str


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The content of a workspace, sorted by path.

    `name` is the folder's name; `place` tells this workspace from others on the same phone and
    stays the same when the content changes, so that the phone can keep what it already has.
    """

    root: Path
    name: str
    place: str
    files: tuple[SnapshotFile, ...]
    links: tuple[SnapshotLink, ...] = ()
    notes: tuple[SnapshotNote, ...] = ()
    fingerprint: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "fingerprint", _fingerprint(self.files, self.links))

    @property
    def size_bytes(self) -> int:
        """The sum of the file sizes."""
        return sum(file.size_bytes for file in self.files)


@dataclass(frozen=True, slots=True)
class SnapshotDiff:
    """What turns one content into another: files and links to write, paths to remove."""

    files: tuple[SnapshotFile, ...]
    links: tuple[SnapshotLink, ...]
    removed: tuple[str, ...]

    @property
    def is_empty(self) -> bool:
        """Whether both contents are the same."""
        return not (self.files or self.links or self.removed)


def entries_of(snapshot: Snapshot) -> dict[str, str]:
    """Give each path a short text that changes whenever what lies there changes.

    This is what a host keeps of a snapshot to compute a later `diff`.
    """
    entries = {file.path: _file_entry(file) for file in snapshot.files}
    entries.update({link.path: f"link {link.target}" for link in snapshot.links})
    return entries


def diff(before: dict[str, str], after: Snapshot) -> SnapshotDiff:
    """Say what must be written and removed to get from the entries of one content to another.

    A path that turns from a file into a folder (or back) is removed before anything is written.
    """
    now = entries_of(after)
    return SnapshotDiff(
        files=tuple(file for file in after.files if before.get(file.path) != now[file.path]),
        links=tuple(link for link in after.links if before.get(link.path) != now[link.path]),
        removed=tuple(sorted(path for path in before if path not in now)),
    )


def _file_entry(file: SnapshotFile) -> str:
    return f"{file.mode:o} {file.sha256}"


def _fingerprint(files: tuple[SnapshotFile, ...], links: tuple[SnapshotLink, ...]) -> str:
    lines = [f"{file.path}\0{_file_entry(file)}" for file in files]
    lines += [f"{link.path}\0link {link.target}" for link in links]
    digest = hashlib.sha256()
    for line in sorted(lines):
        digest.update(line.encode("utf-8", "surrogateescape") + b"\0\n")
    return digest.hexdigest()
