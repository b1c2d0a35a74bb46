"""Workspaces as they were when a build was asked for, kept by fingerprint.

A build may wait for a phone for hours while its workspace changes, so the content is taken at
once: each file once as a blob under its sha256, and a tree of hard links for each fingerprint.
"""

import hashlib
import json
import os
import shutil
import stat
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path, PurePosixPath
from typing import Any

from builder_bridge.workspace.hashes import HashCache
from builder_bridge.workspace.scan import read_chunks
from builder_bridge.workspace.snapshot import Snapshot, SnapshotFile, SnapshotLink
from orchestrator.errors import Conflict, NotFound, Unprocessable
from orchestrator.store.manifest import ManifestFile, checked

HASHES_IDLE_S = 30 * 86_400.0
"""How much longer than anything else the remembered digests of a folder are kept."""


class WorkspaceStore:
    """Takes workspaces in and gives them back as snapshots. All of it blocks: call it in threads."""

    def __init__(self, folder: Path) -> None:
        self._blobs = folder / "blobs"
        self._trees = folder / "trees"
        self._incoming = folder / "incoming"
        self._hashes = folder / "hashes"
        self._sent = folder / "sent"
        self._saving = threading.Lock()
        self._leaving = threading.Lock()
        for each in (self._blobs, self._trees, self._incoming, self._hashes, self._sent):
            each.mkdir(parents=True, exist_ok=True)

    @contextmanager
    def incoming(self) -> Iterator[Path]:
        """Give an empty folder on the same disk that is gone after the block."""
        folder = Path(tempfile.mkdtemp(dir=self._incoming))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    @contextmanager
    def hashes_of(self, folder: Path) -> Iterator[HashCache]:
        """Give the digests remembered of a folder of this host, and keep what the block adds to them."""
        name = hashlib.sha256(os.fsencode(folder)).hexdigest()[:32]
        hashes = HashCache(self._hashes / f"{name}.json")
        yield hashes
        with self._saving:
            hashes.save()

    def has_blob(self, sha256: str) -> bool:
        """Say whether a content is here already."""
        return self._blob(sha256).exists()

    def has_sent(self, owner: str, sha256: str) -> bool:
        """Say whether an owner sent a content that is still here.

        Who only knows a digest has not: else they could build with, and so read, what others sent.
        """
        return self._sent_by(owner, sha256).exists() and self.has_blob(sha256)

    def take_blob(self, source: Path, sha256: str, owner: str | None = None) -> None:
        """Move a file, whose digest the caller has checked, in under its sha256."""
        target = self._blob(sha256)
        target.parent.mkdir(exist_ok=True)
        source.replace(target)
        if owner is not None:
            note = self._sent_by(owner, sha256)
            note.parent.mkdir(parents=True, exist_ok=True)
            note.touch()

    def adopt(self, snapshot: Snapshot) -> Snapshot:
        """Take the content of a snapshot in, and give it with its root here.

        Raises `WorkspaceFault` where it changes meanwhile.
        """
        tree = self._tree(snapshot.fingerprint)
        if not self.take(snapshot.fingerprint):
            self._take_contents(snapshot)
        return replace(snapshot, root=tree / "files")

    def _take_contents(self, snapshot: Snapshot) -> None:
        with self.incoming() as folder:
            for number, file in enumerate(snapshot.files):
                if self.has_blob(file.sha256):
                    continue
                part = folder / str(number)
                with part.open("wb") as out:
                    out.writelines(read_chunks(snapshot, file))
                self.take_blob(part, file.sha256)
        self._plant(snapshot)

    def assemble(self, owner: str, name: str, place: str, files: Iterable[ManifestFile]) -> Snapshot:
        """Make a workspace of blobs that its owner sent before.

        Raises `Unprocessable` for paths that leave the workspace or clash, and `Conflict` that names
        the first content that the owner has not sent.
        """
        entries = sorted((checked(file) for file in files), key=lambda file: file.path)
        seen: set[str] = set()
        found = []
        for file in entries:
            if not self.has_sent(owner, file.sha256):
                raise Conflict(
                    f"content {file.sha256} of {file.path} is not here",
                    code="blob_missing",
                    hint="Ask POST /v1/blobs/missing, send what it names, then ask again.",
                )
        for file in entries:
            parents = {str(parent) for parent in PurePosixPath(file.path).parents}
            if file.path in seen or parents & seen:
                raise Unprocessable(f"{file.path} clashes with another path", code="bad_manifest")
            seen.add(file.path)
            size = self._blob(file.sha256).stat().st_size
            found.append(SnapshotFile(file.path, size, file.sha256, 0o755 if file.is_executable else 0o644))
        snapshot = Snapshot(Path("/"), name, place, tuple(found))
        self._plant(snapshot)
        return self.get(snapshot.fingerprint, name, place)

    def get(self, fingerprint: str, name: str, place: str) -> Snapshot:
        """Give a kept workspace as a snapshot whose root is its tree here."""
        tree = self._tree(fingerprint)
        self.take(fingerprint)
        try:
            manifest: Mapping[str, Any] = json.loads((tree / "manifest.json").read_text())
        except FileNotFoundError as fault:
            raise NotFound(f"no workspace {fingerprint} is kept", code="unknown_workspace") from fault
        return Snapshot(
            root=tree / "files",
            name=name,
            place=place,
            files=tuple(SnapshotFile(**file) for file in manifest["files"]),
            links=tuple(SnapshotLink(**link) for link in manifest["links"]),
        )

    def take(self, fingerprint: str) -> bool:
        """Keep a workspace from going as an idle one for a build that has yet to be asked for.

        Says whether it is kept at all.
        """
        with self._leaving:
            try:
                os.utime(self._tree(fingerprint))
            except FileNotFoundError:
                return False
            return True

    def remove(self, fingerprint: str, used_s: float | None = None) -> bool:
        """Forget a workspace, with `used_s` only if nobody has used it since; say whether it went.

        Blobs that no other one shares go with `remove_unused_blobs`.
        """
        tree = self._tree(fingerprint)
        with self.incoming() as folder, self._leaving:
            try:
                if used_s is not None and tree.stat().st_mtime != used_s:
                    return False
                tree.rename(folder / "tree")
            except FileNotFoundError:
                pass
            return True

    def drop_damaged(self, fingerprint: str) -> bool:
        """Forget a workspace, and each of its contents that is not what its name says; say whether any was.

        A power cut may have come before a content was on the disk. Sent again, it is whole again.
        """
        try:
            files = self.get(fingerprint, "", "").files
        except NotFound:
            return False
        damaged = [file.sha256 for file in files if not _is_whole(self._blob(file.sha256))]
        for sha256 in damaged:
            self._blob(sha256).unlink(missing_ok=True)
        if damaged:
            self.remove(fingerprint)
        return bool(damaged)

    def fingerprints(self) -> list[tuple[str, float]]:
        """Give each kept workspace with the time it was last used."""
        return [(path.name, status.st_mtime) for path, status in _with_status(self._trees.iterdir())]

    def remove_unused_blobs(self, idle_s: float, *, dry_run: bool) -> int:
        """Delete blobs that no tree holds and nobody touched for so long; give the bytes they take."""
        freed, before = 0, time.time() - idle_s
        for path, status in _with_status(self._blobs.rglob("*")):
            if stat.S_ISREG(status.st_mode) and status.st_nlink == 1 and status.st_mtime < before:
                freed += status.st_size
                if not dry_run:
                    path.unlink(missing_ok=True)
                    for note in self._sent.glob(f"*/{path.parent.name}/{path.name}"):
                        note.unlink(missing_ok=True)
        return freed

    def sweep_incoming(self, idle_s: float) -> None:
        """Delete what a killed process left half received, and digests that were not added to for long."""
        before = time.time() - idle_s
        for path, status in _with_status(self._incoming.iterdir()):
            if status.st_mtime < before:
                shutil.rmtree(path, ignore_errors=True)
        for path, status in _with_status(self._hashes.iterdir()):
            if status.st_mtime < before - HASHES_IDLE_S:
                path.unlink(missing_ok=True)

    def _plant(self, snapshot: Snapshot) -> None:
        tree = self._tree(snapshot.fingerprint)
        if self.take(snapshot.fingerprint):
            return
        with self.incoming() as folder:
            root = folder / "tree"
            made: set[Path] = set()
            for file in snapshot.files:
                target = root / "files" / file.path
                if target.parent not in made:
                    target.parent.mkdir(parents=True, exist_ok=True)
                    made.add(target.parent)
                target.hardlink_to(self._blob(file.sha256))
            for link in snapshot.links:
                target = root / "files" / link.path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.symlink_to(link.target)
            (root / "files").mkdir(parents=True, exist_ok=True)
            files = [_without_content(file) for file in snapshot.files]
            manifest = {"files": files, "links": [asdict(link) for link in snapshot.links]}
            with (root / "manifest.json").open("w") as out:
                json.dump(manifest, out)
                out.flush()
                os.fsync(out.fileno())  # the tree gets its name next, and must not have it without this
            try:
                root.rename(tree)
            except OSError:
                if not tree.exists():  # somebody else planted the same content first
                    raise

    def _blob(self, sha256: str) -> Path:
        return self._blobs / sha256[:2] / sha256

    def _sent_by(self, owner: str, sha256: str) -> Path:
        return self._sent / hashlib.sha256(owner.encode()).hexdigest()[:20] / sha256[:2] / sha256

    def _tree(self, fingerprint: str) -> Path:
        return self._trees / fingerprint


def _with_status(paths: Iterable[Path]) -> Iterator[tuple[Path, os.stat_result]]:
    """Give each path with its status; uploads and other sweeps take some away meanwhile."""
    for path in paths:
        try:
            status = path.stat()
        except FileNotFoundError:
            continue
        yield path, status


def place_of(owner: str, name: str) -> str:
    """Name the place of an uploaded workspace, so that the phone keeps what it has of it."""
    return hashlib.sha256(f"upload\0{owner}\0{name}".encode()).hexdigest()[:20]


def _is_whole(blob: Path) -> bool:
    try:
        with blob.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == blob.name
    except FileNotFoundError:
        return False


def _without_content(file: SnapshotFile) -> dict[str, Any]:
    return {"path": file.path, "size_bytes": file.size_bytes, "sha256": file.sha256, "mode": file.mode}
