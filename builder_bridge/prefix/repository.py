"""Maven repositories to take artifacts from: a folder of this host, or a server over HTTP(S)."""

import hashlib
import shutil
from pathlib import Path
from typing import Protocol

import anyio
import httpx
from anyio.to_thread import run_sync

from builder_bridge.errors import HostStorageFull, SeedFault

_ABSENT = frozenset({404, 410})
_PASSING = frozenset({429, 500, 502, 503, 504})
_TRIES = 3
_PAUSE_S = 0.5
_CHECKSUMS = ("sha512", "sha256", "sha1", "md5")
_MAX_CHECKSUM_BYTES = 4096
_AS_IT_IS = {"Accept-Encoding": "identity"}


class Repository(Protocol):
    """Gives files by their path in Maven's layout."""

    @property
    def name(self) -> str:
        """What to call it in messages; holds no password."""

    async def read(self, path: str, destination: Path, max_bytes: int) -> bool:
        """Write a file to `destination`; False where there is none. Raises `SeedFault`."""


class FolderRepository:
    """A folder in Maven's layout, such as `~/.m2/repository`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def name(self) -> str:
        """The folder."""
        return str(self._folder)

    async def read(self, path: str, destination: Path, max_bytes: int) -> bool:
        """Copy a file; raises `SeedFault` where it is too large or cannot be read."""
        return await run_sync(self._copy, path, destination, max_bytes)

    def _copy(self, path: str, destination: Path, max_bytes: int) -> bool:
        source = self._folder / path
        try:
            if not source.is_file():
                return False
            if source.stat().st_size > max_bytes:
                raise SeedFault(f"{source} has over {max_bytes} bytes.")
            shutil.copyfile(source, destination)
        except OSError as error:
            raise SeedFault(f"{source} cannot be copied: {error.strerror}.") from error
        return True


class HttpRepository:
    """A repository on a server; a name and password in its URL are used and never shown."""

    def __init__(self, http: httpx.AsyncClient, url: str) -> None:
        try:
            self._url = httpx.URL(url.rstrip("/") + "/")
        except httpx.InvalidURL as error:
            raise SeedFault(f"A repository's URL cannot be read: {error}.") from error
        self._http = http

    @property
    def name(self) -> str:
        """The URL without name and password."""
        return str(self._url.copy_with(username=None, password=None)).rstrip("/")

    async def read(self, path: str, destination: Path, max_bytes: int) -> bool:
        """Download a file, trying again after faults that pass; raises `SeedFault`."""
        for tried in range(1, _TRIES + 1):
            try:
                return await self._download(path, destination, max_bytes)
            except (httpx.TransportError, _Passing) as error:
                if tried == _TRIES:
                    told = str(error) or type(error).__name__
                    raise SeedFault(f"{self.name}/{path}: {told}, {_TRIES} times.") from error
            await anyio.sleep(_PAUSE_S * tried)
        raise AssertionError("the last try returns or raises")

    async def _download(self, path: str, destination: Path, max_bytes: int) -> bool:
        try:
            async with self._http.stream("GET", self._url.join(path), headers=_AS_IT_IS) as response:
                if response.status_code in _ABSENT:
                    return False
                if response.status_code in _PASSING:
                    raise _Passing(f"the server answers {response.status_code}")
                if not response.is_success:
                    raise SeedFault(f"{self.name}/{path}: the server answers {response.status_code}.")
                if self._url.scheme == "https" and response.url.scheme != "https":
                    raise SeedFault(f"{self.name}/{path}: the server leads from https to plain http.")
                await self._write(response, path, destination, max_bytes)
        except httpx.TooManyRedirects as error:
            raise SeedFault(f"{self.name}/{path}: the server redirects without end.") from error
        return True

    async def _write(self, response: httpx.Response, path: str, destination: Path, max_bytes: int) -> None:
        size_bytes = 0
        async with await anyio.open_file(destination, "wb") as out:
            async for chunk in response.aiter_bytes():
                size_bytes += len(chunk)
                if size_bytes > max_bytes:
                    raise SeedFault(f"{self.name}/{path} has over {max_bytes} bytes.")
                try:
                    await out.write(chunk)
                except OSError as error:
                    raise HostStorageFull(f"{destination} cannot be written: {error.strerror}.") from error


class _Passing(Exception):
    """The server is not able to answer just now."""


async def verify(repository: Repository, path: str, file: Path) -> None:
    """Compare a file with the strongest checksum its repository has; raises `SeedFault` if it differs."""
    beside = file.with_name(file.name + ".checksum")
    for kind in _CHECKSUMS:
        if not await repository.read(f"{path}.{kind}", beside, _MAX_CHECKSUM_BYTES):
            continue
        words = (await run_sync(beside.read_bytes)).decode("utf-8", "replace").split()
        wanted = words[0].lower() if words else ""
        is_digest = len(wanted) == hashlib.new(kind, usedforsecurity=False).digest_size * 2
        actual = await run_sync(_digest, file, kind)
        if is_digest and wanted != actual:
            raise SeedFault(
                f"{repository.name}/{path} has the {kind} {actual}, its repository says {wanted}.",
                hint="Nothing was brought. Try again; if it stays, that repository is damaged.",
            )
        if is_digest:
            return


def _digest(file: Path, kind: str) -> str:
    with file.open("rb") as source:
        return hashlib.file_digest(source, lambda: hashlib.new(kind, usedforsecurity=False)).hexdigest()
