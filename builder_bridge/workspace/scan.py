"""Reads a workspace on this host into a `Snapshot`, changing nothing in it."""

import hashlib
import os
import socket
import stat
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from builder_bridge.errors import WorkspaceFault
from builder_bridge.workspace.hashes import HashCache
from builder_bridge.workspace.ignore import DROPPED_PATHS, IGNORE_FILE, IgnoreRules, ScanRules
from builder_bridge.workspace.local_properties import without_host_folders
from builder_bridge.workspace.snapshot import Snapshot, SnapshotFile, SnapshotLink, SnapshotNote

_DEFAULT_RULES = ScanRules()


def scan(workspace: Path, rules: ScanRules = _DEFAULT_RULES, hashes: HashCache | None = None) -> Snapshot:
    """Read every path of a workspace that a build may need.

    Takes about 0.1 ms a file where `hashes` knows it, else the time to read it. Blocking: call it
    in a thread. Raises `WorkspaceFault` with the path for links to outside, unreadable files, names
    that are not UTF-8, and for more files or bytes than the rules allow.
    """
    root = workspace.resolve()
    if not root.is_dir():
        raise WorkspaceFault(f"{workspace} is no folder")
    walk = _Walk(root, rules, IgnoreRules(rules), hashes or HashCache())
    walk.read_folder(root, "")
    walk.note_like_names()
    return Snapshot(
        root=root,
        name=root.name or "workspace",
        place=hashlib.sha256(f"{socket.gethostname()}\0{root}".encode()).hexdigest()[:20],
        files=tuple(sorted(walk.files, key=lambda file: file.path)),
        links=tuple(sorted(walk.links, key=lambda link: link.path)),
        notes=tuple(walk.notes),
    )


@dataclass(slots=True)
class _Walk:
    root: Path
    rules: ScanRules
    ignore: IgnoreRules
    hashes: HashCache
    files: list[SnapshotFile] = field(default_factory=list)
    links: list[SnapshotLink] = field(default_factory=list)
    notes: list[SnapshotNote] = field(default_factory=list)
    size_bytes: int = 0

    def read_folder(self, folder: Path, prefix: str, inside: tuple[Path, ...] = ()) -> None:
        """Read a folder; `inside` holds the outer folders that copied links led through."""
        entries = self._entries(folder, prefix)
        names = frozenset(entry.name for entry in entries)
        if IGNORE_FILE in names:
            text = (folder / IGNORE_FILE).read_text(encoding="utf-8", errors="replace")
            self.ignore.add(prefix.rstrip("/"), text)
        for entry in entries:
            path = prefix + entry.name
            self._check_name(path)
            is_folder = entry.is_dir(follow_symlinks=False)
            reason = self.ignore.reason(path, is_folder=is_folder, siblings=names)
            if reason is None and path in DROPPED_PATHS:
                reason = DROPPED_PATHS[path]
            if reason is not None:
                self._note("left_out", path, reason)
            elif entry.is_symlink():
                self._read_link(Path(entry.path), path, inside)
            elif is_folder:
                self.read_folder(Path(entry.path), path + "/", inside)
            else:
                self._read_file(Path(entry.path), path)

    def note_like_names(self) -> None:
        """Note names that fall together on a disk that folds case or Unicode forms."""
        seen: dict[str, str] = {}
        for path in sorted([file.path for file in self.files] + [link.path for link in self.links]):
            composed = unicodedata.normalize("NFC", path)
            other = seen.setdefault(composed.casefold(), path)
            if other is path:
                continue
            if unicodedata.normalize("NFC", other) == composed:
                self._note("same_after_normalising", path, f"differs from {other!r} only in Unicode form")
            else:
                self._note("case_clash", path, f"differs from {other!r} only in case")

    def _entries(self, folder: Path, prefix: str) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(folder) as found:
                return sorted(found, key=lambda entry: entry.name)
        except PermissionError as error:
            if not self.rules.skip_unreadable:
                raise WorkspaceFault(f"cannot read the folder {prefix or '.'} of {self.root}") from error
            self._note("unreadable", prefix, "left out")
            return []

    def _read_file(self, source: Path, path: str) -> None:
        try:
            status = source.stat()
            if not stat.S_ISREG(status.st_mode):
                self._note("not_a_file", path, "a socket, pipe or device is left out")
                return
            file = self._hash(source, path, status)
        except PermissionError as error:
            if not self.rules.skip_unreadable:
                hint = "Make it readable, ignore it, or allow unreadable files to be left out."
                raise WorkspaceFault(f"cannot read {path} in {self.root}", hint=hint) from error
            self._note("unreadable", path, "left out")
            return
        self.files.append(file)
        self.size_bytes += file.size_bytes
        self._check_limits(path)

    def _hash(self, source: Path, path: str, status: os.stat_result) -> SnapshotFile:
        mode = 0o755 if status.st_mode & stat.S_IXUSR else 0o644
        if path.rpartition("/")[2] == "local.properties" and not self.rules.keep_local_properties:
            original = source.read_bytes()
            content = without_host_folders(original)
            if content != original:
                self._note("rewritten", path, "the host's SDK folders are taken out of the copy")
                digest = hashlib.sha256(content).hexdigest()
                return SnapshotFile(path, len(content), digest, mode, content)
        size_bytes, digest = self.hashes.digest(source, status)
        return SnapshotFile(path, size_bytes, digest, mode)

    def _read_link(self, source: Path, path: str, inside: tuple[Path, ...]) -> None:
        target = source.readlink()
        try:
            real = source.resolve(strict=True)
        except (OSError, RuntimeError):
            self._note("dangling_link", path, f"points to {str(target)!r}, which is not there; left out")
            return
        if real.is_relative_to(self.root) and not inside:
            absolute = target if target.is_absolute() else source.parent / target
            if Path(os.path.normpath(absolute)).is_relative_to(self.root):
                relative = os.path.relpath(absolute, source.parent) if target.is_absolute() else str(target)
                self.links.append(SnapshotLink(path, relative))
                self._check_limits(path)
                return
        if not self.rules.materialise_outside_links:
            hint = "Move the target into the workspace, ignore the link, or allow links to be copied."
            raise WorkspaceFault(f"{path} links to {real}, outside the workspace {self.root}", hint=hint)
        self._note("materialised", path, f"a copy of {real}")
        if not real.is_dir():
            self._read_file(real, path)
        elif real in inside or real in self.root.parents or real == self.root:
            raise WorkspaceFault(f"{path} links to {real}, which holds the link itself")
        else:
            self.read_folder(real, path + "/", (*inside, real))

    def _check_name(self, path: str) -> None:
        try:
            path.encode("utf-8")
        except UnicodeEncodeError as error:
            raise WorkspaceFault(f"the name {path!r} in {self.root} is not UTF-8") from error

    def _check_limits(self, path: str) -> None:
        count = len(self.files) + len(self.links)
        hint = f"List what a build does not need in {IGNORE_FILE}, or raise the limit."
        if count > self.rules.max_files:
            limit = f"max_files = {self.rules.max_files}"
            raise WorkspaceFault(f"{self.root} holds more files than {limit}, up to {path}", hint=hint)
        if self.size_bytes > self.rules.max_size_bytes:
            limit = f"max_size_bytes = {self.rules.max_size_bytes}"
            raise WorkspaceFault(f"{self.root} holds more bytes than {limit}, up to {path}", hint=hint)

    def _note(self, code: str, path: str, detail: str) -> None:
        self.notes.append(SnapshotNote(code, path, detail))


def read_chunks(snapshot: Snapshot, file: SnapshotFile) -> Iterator[bytes]:
    """Give the bytes of a file of a snapshot, and make sure that they are those it was taken of.

    Raises `WorkspaceFault` where the file has changed since.
    """
    if file.content is not None:
        yield file.content
        return
    digest = hashlib.sha256()
    try:
        with (snapshot.root / file.path).open("rb") as source:
            while chunk := source.read(1 << 20):
                digest.update(chunk)
                yield chunk
    except OSError as error:
        raise WorkspaceFault(
            f"{file.path} in {snapshot.root} went away while it was read: {error}"
        ) from error
    if digest.hexdigest() != file.sha256:
        raise WorkspaceFault(
            f"{file.path} in {snapshot.root} changed while it was read",
            hint="Let writers finish, then build again; no build was started.",
        )
