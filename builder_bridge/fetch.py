"""Brings an artifact to this host: to a `.part` file, resumed by offset, verified, then renamed."""

import hashlib
import os
from pathlib import Path

from anyio.to_thread import run_sync

from builder_bridge.build import Artifact, RunId
from builder_bridge.errors import HostStorageFull, TransferFault
from builder_bridge.routes.route import Route

_BUFFER_BYTES = 4 << 20
_TRIES = 2


async def fetch_artifact(route: Route, run_id: RunId, artifact: Artifact, destination: Path) -> None:
    """Fetch until the digest is right; a part of an earlier attempt is gone on with.

    Raises `TransferFault` when even a fetch from the first byte gives other content.
    """
    part = _PartFile(destination, artifact)
    for _ in range(_TRIES):
        offset = await run_sync(part.open)
        try:
            if offset < artifact.size_bytes:
                await _copy(route, run_id, artifact, part, offset)
        finally:
            await run_sync(part.close)
        if await run_sync(part.finish):
            return
    raise TransferFault(
        f"The artifact {artifact.path} of run {run_id} arrives with another SHA-256 than the phone names.",
        hint="The phone's storage or the connection damages bytes; build again.",
    )


async def _copy(route: Route, run_id: RunId, artifact: Artifact, part: "_PartFile", offset: int) -> None:
    waiting: list[bytes] = []
    size_bytes = 0
    async with route.get(run_id, str(artifact.index), offset) as pieces:
        async for piece in pieces:
            waiting.append(piece)
            size_bytes += len(piece)
            if size_bytes >= _BUFFER_BYTES:
                await run_sync(part.write, waiting)
                waiting, size_bytes = [], 0
    await run_sync(part.write, waiting)


class _PartFile:
    """The growing copy. All methods are blocking."""

    def __init__(self, destination: Path, artifact: Artifact) -> None:
        self._destination = destination
        self._artifact = artifact
        self._path = destination.with_name(f"{destination.name}.{artifact.sha256[:12]}.part")
        self._digest = hashlib.sha256()
        self._size_bytes = 0

    def open(self) -> int:
        """Take up what is there already; gives how many bytes that is."""
        self._destination.parent.mkdir(parents=True, exist_ok=True)
        self._digest, self._size_bytes = hashlib.sha256(), 0
        self._file = self._path.open("a+b", buffering=0)
        self._file.seek(0)
        while chunk := self._file.read(_BUFFER_BYTES):
            self._digest.update(chunk)
            self._size_bytes += len(chunk)
        return self._size_bytes

    def write(self, pieces: list[bytes]) -> None:
        """Add bytes; more than the artifact has are a fault of the other side."""
        for piece in pieces:
            self._size_bytes += len(piece)
            if self._size_bytes > self._artifact.size_bytes:
                raise TransferFault(f"{self._artifact.path} arrives longer than the phone says.")
            self._digest.update(piece)
            try:
                view = memoryview(piece)
                while view:
                    view = view[self._file.write(view) or 0 :]
            except OSError as error:
                raise HostStorageFull(f"Cannot write {self._path}: {error.strerror}.") from error

    def close(self) -> None:
        """Let go of the file; what was written stays."""
        self._file.close()

    def finish(self) -> bool:
        """Put the file in place if it is whole and right, else throw it away."""
        is_right = (
            self._size_bytes == self._artifact.size_bytes
            and self._digest.hexdigest() == self._artifact.sha256
        )
        if not is_right:
            self._path.unlink(missing_ok=True)
            return False
        with self._path.open("rb") as written:
            os.fsync(written.fileno())
        self._path.replace(self._destination)
        folder = os.open(self._destination.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        return True
