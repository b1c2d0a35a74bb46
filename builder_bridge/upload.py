"""Brings a workspace's content to a phone: everything once, and after that only what it lacks."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace
from pathlib import Path

import anyio
from anyio.to_thread import run_sync

from builder_bridge.build import RunId
from builder_bridge.errors import TransferFault
from builder_bridge.handoff import HaveDocument, OpenDocument, ReceivedDocument, parse
from builder_bridge.plan import MAX_EDITS, Edits, Upload, Whole
from builder_bridge.routes.route import Route
from builder_bridge.workspace.archive import Archive, write_archive, write_pack
from builder_bridge.workspace.kept import KeptContents
from builder_bridge.workspace.scan import read_chunks
from builder_bridge.workspace.snapshot import Snapshot, diff

_CHUNK_BYTES = 1 << 20
MAX_BODIES = 16
MAX_BODIES_BYTES = 64 << 10
"""More contents than this go as a compressed pack, for which the phone says first what it lacks."""
_TRIES = 4


@dataclass(frozen=True, slots=True)
class Uploaded:
    """What was handed over and how; `facts` are for the report."""

    upload: Upload
    facts: dict[str, str]


def guess_upload(prefix: str, snapshot: Snapshot, kept: KeptContents) -> Edits | None:
    """Say what must change if what this host put there last still lies in a prefix, untouched.

    None where that is not known, or where more has changed than may go along with the plan. Blocking.
    """
    start = kept.lying_in(prefix, snapshot.place)
    if start is None:
        return None
    edits = _edits(start, {} if start == snapshot.fingerprint else kept.load(start), snapshot)
    return None if edits is None else with_bodies(edits, snapshot)


def choose_upload(opened: OpenDocument, snapshot: Snapshot, kept: KeptContents) -> Edits | None:
    """Say what must change on the phone, or None where everything must go.

    Everything goes where the phone has nothing of this workspace, this host does not remember what
    the phone has, or more has changed than edits are good for. Blocking.
    """
    if not opened.content or not opened.is_known:
        return None
    is_untouched = not (opened.touched or opened.folders)
    if opened.content == snapshot.fingerprint and is_untouched:
        return _edits(opened.content, {}, snapshot)
    before = kept.load(opened.content)
    if before is None:
        return None
    edits = _edits(opened.content, entries_left(before, opened), snapshot)
    return None if edits is None else with_bodies(edits, snapshot) or edits


def entries_left(before: dict[str, str], opened: OpenDocument) -> dict[str, str]:
    """Give the entries of a content as builds have left it: what is gone is left out, what changed marked."""
    left = dict(before)
    for path in (*opened.touched, *opened.folders):
        if path in left:
            left[path] = "touched"
    folders, names = set(opened.folders), {name.replace("\1", "\n") for name in opened.names}
    if folders:
        for path in before:
            parts = path.split("/")
            steps = ("/".join(parts[:count]) for count in range(1, len(parts) + 1))
            if any((step.rpartition("/")[0] or ".") in folders and step not in names for step in steps):
                del left[path]
    return left


def with_bodies(edits: Edits, snapshot: Snapshot) -> Edits | None:
    """Let the contents go along with the plan; None where they are too many, too large or needed twice."""
    files = edits.diff.files
    if len({file.sha256 for file in files}) < len(files) or len(files) > MAX_BODIES:
        return None
    if sum(file.size_bytes for file in files) > MAX_BODIES_BYTES:
        return None
    bodies = tuple((file.sha256, b"".join(read_chunks(snapshot, file))) for file in files)
    return replace(edits, bodies=bodies)


def facts_of(edits: Edits, size_bytes: int) -> dict[str, str]:
    """Say for the report what was handed over."""
    facts = {"upload": "unchanged" if edits.diff.is_empty else "changes"}
    return facts | {"upload_files": str(len(edits.diff.files)), "upload_bytes": str(size_bytes)}


async def send_upload(
    route: Route, run_id: RunId, snapshot: Snapshot, edits: Edits | None, *, already: int, folder: Path
) -> Uploaded:
    """Send what the phone lacks; `already` bytes of it may be there from a cut attempt.

    Raises `StorageFull`, `TransferFault` when the bytes do not get there whole, `PhoneLost`.
    """
    if edits is None:
        archive = await run_sync(write_archive, snapshot, folder / "archive.zip")
        await _send(route, run_id, archive, already)
        facts = {"upload": "archive", "upload_files": str(archive.entries)}
        return Uploaded(Whole(archive.entries), facts | {"upload_bytes": str(archive.size_bytes)})
    wanted = sorted({file.sha256 for file in edits.diff.files} - {digest for digest, _ in edits.bodies})
    size_bytes = sum(len(body) for _, body in edits.bodies)
    if wanted:
        asked = "".join(f"{digest}\n" for digest in wanted).encode()
        missing = parse(await route.call("have", run_id, stdin=asked), HaveDocument).missing
        if missing:
            pack = await run_sync(write_pack, snapshot, missing, folder / "pack.zip")
            await _send(route, run_id, pack, already)
            size_bytes = pack.size_bytes
            edits = replace(edits, has_pack=True)
    return Uploaded(edits, facts_of(edits, size_bytes))


def _edits(start: str, before: dict[str, str] | None, snapshot: Snapshot) -> Edits | None:
    if start == snapshot.fingerprint and not before:
        return Edits(diff({}, Snapshot(snapshot.root, snapshot.name, snapshot.place, ())), {}, start)
    if before is None:
        return None
    changes = diff(before, snapshot)
    if len(changes.files) + len(changes.links) + len(changes.removed) > MAX_EDITS:
        return None
    return Edits(changes, before, start)


async def _send(route: Route, run_id: RunId, archive: Archive, already: int) -> None:
    have = already if already < archive.size_bytes else 0
    for _ in range(_TRIES):
        words = ("recv", run_id, str(archive.size_bytes), archive.sha256, str(have))
        async with aclosing(_read(archive.path, have)) as chunks:
            received = parse(await route.call(*words, stdin=chunks), ReceivedDocument)
        if received.complete:
            return
        have = received.received
    raise TransferFault(f"{have} of {archive.size_bytes} bytes reached the phone in {_TRIES} tries.")


async def _read(path: Path, offset: int) -> AsyncGenerator[bytes, None]:
    async with await anyio.open_file(path, "rb") as source:
        await source.seek(offset)
        while chunk := await source.read(_CHUNK_BYTES):
            yield chunk
