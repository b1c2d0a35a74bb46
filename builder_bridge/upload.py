"""Brings a workspace's content to a phone: everything once, and after that only what it lacks."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
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
from builder_bridge.workspace.snapshot import Snapshot, diff

_CHUNK_BYTES = 1 << 20
_MAX_TOUCHED = 500
_TRIES = 4


@dataclass(frozen=True, slots=True)
class Uploaded:
    """What was handed over and how; `facts` are for the report."""

    upload: Upload
    facts: dict[str, str]


def choose_upload(opened: OpenDocument, snapshot: Snapshot, kept: KeptContents) -> Edits | None:
    """Say what must change on the phone, or None where everything must go.

    Everything goes where the phone has nothing of this workspace, this host does not remember what
    the phone has, or more has changed than edits are good for. Blocking.
    """
    if not opened.content or len(opened.touched) >= _MAX_TOUCHED:
        return None
    if opened.content == snapshot.fingerprint and not opened.touched:
        return Edits(diff({}, Snapshot(snapshot.root, snapshot.name, snapshot.place, ())), {})
    before = kept.load(opened.content)
    if before is None:
        return None
    for path in opened.touched:
        if path in before:
            before[path] = "touched"
    changes = diff(before, snapshot)
    if len(changes.files) + len(changes.links) + len(changes.removed) > MAX_EDITS:
        return None
    return Edits(changes, before)


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
    facts = {"upload": "unchanged" if edits.diff.is_empty else "changes"}
    wanted = sorted({file.sha256 for file in edits.diff.files})
    size_bytes = 0
    if wanted:
        asked = "".join(f"{digest}\n" for digest in wanted).encode()
        missing = parse(await route.call("have", run_id, stdin=asked), HaveDocument).missing
        if missing:
            pack = await run_sync(write_pack, snapshot, missing, folder / "pack.zip")
            await _send(route, run_id, pack, already)
            size_bytes = pack.size_bytes
    facts |= {"upload_files": str(len(edits.diff.files)), "upload_bytes": str(size_bytes)}
    return Uploaded(edits, facts)


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
