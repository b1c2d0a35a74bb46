"""Content of artifacts under its own sha256, in a folder or in an object store (S3 by URL).

A content is put once however many builds made it; deleting asks the database first who still
needs it.
"""

import hashlib
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import anyio
import obstore
from anyio import to_thread
from obstore.exceptions import BaseError
from obstore.store import LocalStore, ObjectStore, from_url

from orchestrator.errors import NotFound, SettingsFault

CHUNK_BYTES = 1 << 20


class ArtifactStore:
    """Put and get content by sha256."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self.settling = anyio.Lock()
        """Held from the look whether a content is kept, or needed, until that is noted, or it is removed."""

    async def put(self, source: Path, sha256: str) -> None:
        """Take the content of a file, unless it is there already."""
        if await self.size_bytes(sha256) is None:
            await obstore.put_async(self._store, _key(sha256), source)

    async def size_bytes(self, sha256: str) -> int | None:
        """Say how large a content is, None where it is not in the store."""
        try:
            return int((await obstore.head_async(self._store, _key(sha256)))["size"])
        except FileNotFoundError:
            return None

    async def read(self, sha256: str, start: int, end: int) -> AsyncIterator[bytes]:
        """Give bytes `start` up to `end` in pieces.

        Raises `NotFound` where retention has removed the content.
        """
        while start < end:
            piece_end = min(end, start + CHUNK_BYTES)
            try:
                piece = await obstore.get_range_async(self._store, _key(sha256), start=start, end=piece_end)
            except FileNotFoundError as fault:
                raise NotFound(f"the content {sha256} is no longer kept") from fault
            yield bytes(piece)
            start = piece_end

    async def put_workspace(self, archive: Path, fingerprint: str) -> None:
        """Take the archive of a workspace, so that every host of a lab can have it."""
        await obstore.put_async(self._store, f"workspaces/{fingerprint}.zip", archive)

    async def get_workspace(self, fingerprint: str, destination: Path) -> None:
        """Write the archive of a workspace into a file; raises `NotFound`."""
        try:
            answer = await obstore.get_async(self._store, f"workspaces/{fingerprint}.zip")
        except FileNotFoundError as fault:
            raise NotFound(f"no host shares workspace {fingerprint}", code="unknown_workspace") from fault
        with destination.open("wb") as file:
            async for piece in answer.stream(CHUNK_BYTES):
                await to_thread.run_sync(file.write, bytes(piece))

    async def remove_workspace(self, fingerprint: str) -> None:
        """Delete the archive of a workspace, where there is one."""
        try:
            await obstore.delete_async(self._store, f"workspaces/{fingerprint}.zip")
        except FileNotFoundError:
            return

    async def remove(self, sha256: str) -> None:
        """Delete a content; one that is not there is no fault."""
        try:
            await obstore.delete_async(self._store, _key(sha256))
        except FileNotFoundError:
            return


def open_artifact_store(url: str | None, folder: Path) -> ArtifactStore:
    """Open the store at a URL (`s3://bucket/prefix`, `file:///…`), or in a folder where there is none.

    Raises `SettingsFault` for a URL that is none, and for a folder that cannot be made.
    """
    if url is not None and not url.startswith("file:///"):
        try:
            return ArtifactStore(from_url(url))
        except (BaseError, ValueError) as fault:
            raise SettingsFault(
                f"artifacts_url {url} cannot be opened: {str(fault).splitlines()[0]}"
            ) from fault
    try:
        path = folder if url is None else Path(unquote(urlsplit(url).path))
        path.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise SettingsFault(f"the folder of artifacts {path} cannot be made: {fault.strerror}") from fault
    return ArtifactStore(LocalStore(path))


def sha256_of(path: Path) -> str:
    """Hash a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _key(sha256: str) -> str:
    return f"sha256/{sha256[:2]}/{sha256}"
