"""Zip archives of snapshots: the same content always gives the same bytes.

A file's time in the archive is made from its digest. So archives are reproducible, an unchanged
file keeps its time from build to build (Gradle's up-to-date checks look at size and time), and a
file that changed without changing its size still gets another time.
"""

import hashlib
import lzma
import os
import stat
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from builder_bridge.errors import WorkspaceFault
from builder_bridge.workspace.scan import read_chunks
from builder_bridge.workspace.snapshot import Snapshot, SnapshotFile, SnapshotLink

_EPOCH_S = 631_152_000  # 1990-01-01, well after a zip's first year
_SPAN_2S = 1 << 29  # two-second steps, as zip counts: up to 2024
_UNIX = 3
_DIRECTORY_SIZE = 5  # which field of the end record, as `zipfile` reads it, has the directory's size
_DIRECTORY_BYTES_PER_ENTRY = 400  # 46 of its own, a name of a usual length, and some extra fields
_LEVEL = 3
_PACKED_SUFFIXES = (
    ".aar", ".apk", ".gz", ".jar", ".jpeg", ".jpg", ".m4a", ".mp3", ".mp4", ".ogg", ".png", ".webm", ".webp",
    ".woff2", ".xz", ".zip", ".zst",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Archive:
    """An archive on this host, ready to be sent."""

    path: Path
    size_bytes: int
    sha256: str
    entries: int


def write_archive(snapshot: Snapshot, destination: Path) -> Archive:
    """Write everything a snapshot names, under its paths, with Unix modes and links as links.

    Blocking. Raises `WorkspaceFault` where a file changed since the snapshot was taken.
    """
    items: list[SnapshotFile | SnapshotLink] = [*snapshot.files, *snapshot.links]
    items.sort(key=lambda item: item.path)
    return _write(snapshot, ((item.path, item) for item in items), destination)


def write_pack(snapshot: Snapshot, digests: Iterable[str], destination: Path) -> Archive:
    """Write contents only, each named by its SHA-256: what a phone lacks of a snapshot.

    Blocking. Digests that the snapshot does not hold are passed over.
    """
    by_digest = {file.sha256: file for file in snapshot.files}
    items = [(digest, by_digest[digest]) for digest in sorted(set(digests)) if digest in by_digest]
    return _write(snapshot, items, destination)


def time_from_digest(sha256: str) -> tuple[int, int, int, int, int, int]:
    """Give the time, as zip writes it, that stands for a content: 1990 to 2024, even seconds."""
    moment = datetime.fromtimestamp(_EPOCH_S + 2 * (int(sha256[:12], 16) % _SPAN_2S), UTC)
    return moment.year, moment.month, moment.day, moment.hour, moment.minute, moment.second


def _write(
    snapshot: Snapshot, items: Iterable[tuple[str, SnapshotFile | SnapshotLink]], destination: Path
) -> Archive:
    entries = 0
    with zipfile.ZipFile(destination, "w", zipfile.ZIP_DEFLATED, allowZip64=True) as out:
        for name, item in items:
            entries += 1
            if isinstance(item, SnapshotLink):
                _write_link(out, name, item)
            else:
                _write_file(out, name, item, read_chunks(snapshot, item))
    with destination.open("rb") as written:
        digest = hashlib.file_digest(written, "sha256").hexdigest()
    return Archive(destination, destination.stat().st_size, digest, entries)


def _write_file(out: zipfile.ZipFile, name: str, file: SnapshotFile, chunks: Iterator[bytes]) -> None:
    info = zipfile.ZipInfo(name, time_from_digest(file.sha256))
    is_packed = file.path.lower().endswith(_PACKED_SUFFIXES)
    info.compress_type = zipfile.ZIP_STORED if is_packed else zipfile.ZIP_DEFLATED
    info._compresslevel = _LEVEL  # type: ignore[attr-defined]
    info.create_system = _UNIX
    info.external_attr = (stat.S_IFREG | file.mode) << 16
    info.file_size = file.size_bytes
    with out.open(info, "w", force_zip64=file.size_bytes >= 1 << 31) as entry:
        for chunk in chunks:
            entry.write(chunk)


def _write_link(out: zipfile.ZipFile, name: str, link: SnapshotLink) -> None:
    target = link.target.encode()
    info = zipfile.ZipInfo(name, time_from_digest(hashlib.sha256(target).hexdigest()))
    info.create_system = _UNIX
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    out.writestr(info, target, zipfile.ZIP_STORED)


@dataclass(frozen=True, slots=True)
class UnpackLimits:
    """How much an archive of a stranger may hold; `max_ratio` is unpacked to packed size."""

    max_entries: int = 100_000
    max_size_bytes: int = 10 << 30
    max_ratio: int = 200


_DEFAULT_LIMITS = UnpackLimits()
_UNREADABLE = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, NotImplementedError, EOFError, ValueError, RuntimeError,
    OSError,
)  # fmt: skip


def unpack(archive: Path, destination: Path, limits: UnpackLimits = _DEFAULT_LIMITS) -> int:
    """Unpack an archive of a stranger into a folder that does not exist yet; give the entry count.

    Blocking. Raises `WorkspaceFault` for absolute names, `..`, links to outside, names that come
    twice, entries that are no file, folder or link, damaged entries and more than the limits allow;
    `destination` may then hold a part, which the caller removes.
    """
    try:
        _check_directory(archive, limits)
        with zipfile.ZipFile(archive) as source:
            infos = source.infolist()
            _check_listing(infos, archive.stat().st_size, limits)
            destination.mkdir(parents=True)
            folders = {destination}
            for info in infos:
                _unpack_entry(source, info, destination, folders)
            _check_links(destination)
            return len(infos)
    except _UNREADABLE as error:
        raise WorkspaceFault(f"cannot unpack {archive.name}: {error}") from error


def _check_directory(archive: Path, limits: UnpackLimits) -> None:
    """Refuse a directory of more entries than are allowed before `zipfile` makes objects of all of them."""
    with archive.open("rb") as file:
        end: Sequence[Any] | None = zipfile._EndRecData(file)  # type: ignore[attr-defined]
    size_bytes = 0 if end is None else int(end[_DIRECTORY_SIZE])
    if size_bytes > limits.max_entries * _DIRECTORY_BYTES_PER_ENTRY:
        raise WorkspaceFault(
            f"the archive's directory has {size_bytes} bytes, far more than {limits.max_entries} entries take"
        )


def _check_listing(infos: list[zipfile.ZipInfo], packed_bytes: int, limits: UnpackLimits) -> None:
    if len(infos) > limits.max_entries:
        raise WorkspaceFault(f"the archive has {len(infos)} entries, {limits.max_entries} are allowed")
    total = sum(info.file_size for info in infos)
    if total > limits.max_size_bytes:
        raise WorkspaceFault(f"the archive holds {total} bytes, {limits.max_size_bytes} are allowed")
    if total > (1 << 20) and total > packed_bytes * limits.max_ratio:
        raise WorkspaceFault(f"the archive of {packed_bytes} bytes would unpack to {total}: it is a bomb")
    seen: set[str] = set()
    for info in infos:
        name = info.filename.rstrip("/")
        parts = name.split("/")
        is_odd = not name or "\0" in info.orig_filename or any(part in ("", ".", "..") for part in parts)
        if is_odd or name.startswith("/"):
            raise WorkspaceFault(f"the archive names {info.orig_filename!r}, which may lie outside")
        if name in seen:
            raise WorkspaceFault(f"the archive names {name!r} twice")
        seen.add(name)
        kind = stat.S_IFMT(info.external_attr >> 16)
        if kind not in (0, stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK):
            raise WorkspaceFault(f"{name!r} in the archive is no file, folder or link")


def _unpack_entry(
    source: zipfile.ZipFile, info: zipfile.ZipInfo, destination: Path, folders: set[Path]
) -> None:
    target = destination.joinpath(*info.filename.rstrip("/").split("/"))
    if target.parent not in folders:
        _make_parents(target.parent, destination)
        folders.add(target.parent)
    mode = info.external_attr >> 16
    if info.is_dir():
        if target.is_symlink() or (target.exists() and not target.is_dir()):
            raise WorkspaceFault(f"{info.filename!r} in the archive is both a folder and something else")
        target.mkdir(exist_ok=True)
        return
    if stat.S_ISLNK(mode):
        if info.file_size > os.pathconf("/", "PC_PATH_MAX"):
            raise WorkspaceFault(f"the link {info.filename!r} in the archive is too long")
        target.symlink_to(os.fsdecode(source.read(info)))
        return
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW
    left = info.file_size
    with source.open(info) as entry, os.fdopen(os.open(target, flags, 0o600), "wb") as out:
        while chunk := entry.read(1 << 20):
            left -= len(chunk)
            if left < 0:
                raise WorkspaceFault(f"{info.filename!r} in the archive is longer than it says")
            out.write(chunk)
    target.chmod(0o755 if mode & stat.S_IXUSR else 0o644)


def _make_parents(folder: Path, destination: Path) -> None:
    for step in [*reversed(folder.relative_to(destination).parents), folder.relative_to(destination)]:
        place = destination / step
        if place.is_symlink() or (place.exists() and not place.is_dir()):
            raise WorkspaceFault(f"the archive puts an entry below {step}, which is no folder")
        place.mkdir(exist_ok=True)


def _check_links(destination: Path) -> None:
    root = destination.resolve()
    for folder, folders, files in os.walk(destination):
        for name in (*folders, *files):
            path = Path(folder) / name
            if path.is_symlink() and (
                path.readlink().is_absolute() or not path.resolve().is_relative_to(root)
            ):
                raise WorkspaceFault(f"the link {path.relative_to(destination)} in the archive leads outside")
