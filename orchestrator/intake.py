"""Takes workspaces in: from a folder of this host, from a zip that streams in, from blobs.

All of it is a stranger's: paths must lie inside the allowed roots, sizes are counted while the
bytes come, digests are checked, and nothing of a refused upload is left.
"""

import hashlib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import anyio
import structlog
from anyio import to_thread

from builder_bridge.errors import WorkspaceFault
from builder_bridge.workspace.archive import UnpackLimits, unpack
from builder_bridge.workspace.ignore import ScanRules
from builder_bridge.workspace.scan import scan
from builder_bridge.workspace.snapshot import Snapshot
from orchestrator.engine.resources import Stores
from orchestrator.errors import BadRequest, Forbidden, TooLarge, Unprocessable
from orchestrator.store.manifest import ManifestFile, is_sha256
from orchestrator.store.workspaces import place_of

log = structlog.get_logger(__name__)
_ARCHIVE_HINT = (
    "Mend what the message names, make the archive anew and send it again; nothing was kept of it."
)


class Intake:
    """The ways in for workspaces."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        limits = stores.settings.limits
        self._rules = ScanRules(max_files=limits.files, max_size_bytes=limits.unpacked_bytes)
        self._heavy = anyio.CapacityLimiter(4)

    async def from_folder(self, path: str, name: str | None) -> Snapshot:
        """Take the present state of a folder; raises `Forbidden` for one outside the allowed roots."""
        return await to_thread.run_sync(self._from_folder, path, name, limiter=self._heavy)

    async def from_zip(self, chunks: AsyncIterator[bytes], owner: str, name: str) -> Snapshot:
        """Take a zip while it arrives; raises `TooLarge` and `WorkspaceFault`, leaving nothing behind."""
        with self._stores.workspaces.incoming() as folder:
            archive = folder / "upload.zip"
            with archive.open("wb") as file:
                await self._receive(chunks, file)
            return await to_thread.run_sync(
                self._unpacked, archive, folder / "tree", owner, name, limiter=self._heavy
            )

    async def take_blob(self, chunks: AsyncIterator[bytes], owner: str, sha256: str) -> int:
        """Take one content; raises `Unprocessable` where it is not what its name says. Gives its size."""
        if not is_sha256(sha256):
            raise BadRequest(f"{sha256!r} is no sha256 in lower-case hexadecimal")
        with self._stores.workspaces.incoming() as folder:
            part = folder / "blob"
            with part.open("wb") as file:
                got, size = await self._receive(chunks, file)
            if got != sha256:
                raise Unprocessable(
                    f"the {size} bytes sent have sha256 {got}, not {sha256}",
                    code="digest_mismatch",
                    hint="Read the file again and send it under the digest it has now.",
                )
            self._stores.workspaces.take_blob(part, sha256, owner)
            return size

    async def from_blobs(self, owner: str, name: str, files: list[ManifestFile]) -> Snapshot:
        """Put a workspace together from contents sent before."""
        place = place_of(owner, name)
        return await to_thread.run_sync(
            self._stores.workspaces.assemble, owner, name, place, files, limiter=self._heavy
        )

    async def known(self, owner: str, fingerprint: str, name: str) -> Snapshot:
        """Give a workspace that the service keeps; raises `NotFound`."""
        return await to_thread.run_sync(self._stores.workspaces.get, fingerprint, name, place_of(owner, name))

    def inside_roots(self, path: str) -> Path:
        """Give the real folder of a path; raises `Forbidden` for one outside the allowed roots. Blocking."""
        wanted = Path(path)
        if not wanted.is_absolute():
            raise BadRequest(f"the workspace path {path!r} is not absolute")
        real = wanted.resolve()
        roots = [root.resolve() for root in self._stores.settings.workspace_roots]
        if not any(real.is_relative_to(root) for root in roots):
            raise Forbidden(
                f"{path} is not inside a folder from which this service takes workspaces",
                code="workspace_outside_roots",
                hint="Send the workspace as a zip or as blobs, or add its folder to `workspace_roots`.",
            )
        return real

    def _from_folder(self, path: str, name: str | None) -> Snapshot:
        folder = self.inside_roots(path)
        with self._stores.workspaces.hashes_of(folder) as hashes:
            snapshot = scan(folder, self._rules, hashes)
        return self._stores.workspaces.adopt(replace(snapshot, name=name or snapshot.name))

    def _unpacked(self, archive: Path, folder: Path, owner: str, name: str) -> Snapshot:
        limits = self._stores.settings.limits
        unpacked = UnpackLimits(max_entries=limits.files, max_size_bytes=limits.unpacked_bytes)
        try:
            unpack(archive, folder, unpacked)
            snapshot = scan(folder, self._rules)
        except WorkspaceFault as fault:
            raise WorkspaceFault(str(fault), hint=_ARCHIVE_HINT) from fault
        return self._stores.workspaces.adopt(replace(snapshot, name=name, place=place_of(owner, name)))

    async def _receive(self, chunks: AsyncIterator[bytes], file: BinaryIO) -> tuple[str, int]:
        """Write what comes; gives its digest and size. A sender that stalls is hung up on."""
        limits = self._stores.settings.limits
        digest, size = hashlib.sha256(), 0
        incoming = aiter(chunks)
        while True:
            try:
                with anyio.fail_after(limits.upload_idle_s):
                    chunk = await anext(incoming, None)
            except TimeoutError as fault:
                raise BadRequest(
                    f"nothing came for {limits.upload_idle_s:.0f} s after {size} bytes",
                    code="upload_stalled",
                    hint="Send again; half an upload is not kept.",
                ) from fault
            if chunk is None:
                return digest.hexdigest(), size
            size += len(chunk)
            if size > limits.upload_bytes:
                raise TooLarge(f"the upload is larger than limits.upload_bytes ({limits.upload_bytes})")
            digest.update(chunk)
            await to_thread.run_sync(file.write, chunk)
