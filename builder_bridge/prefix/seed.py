"""Brings Maven artifacts and what they need into a prefix's offline repository, over any route.

Everything is fetched and checked here before anything is sent; the phone is asked what it has, and
gets the rest in archives of bounded size. A cut connection costs one archive: seed again to go on.
"""

import hashlib
import zipfile
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import httpx
import structlog
from anyio.abc import TaskGroup
from anyio.to_thread import run_sync

from builder_bridge.errors import SeedFault
from builder_bridge.handoff import OkDocument, SeededDocument, parse
from builder_bridge.prefix.gradle_module import MARKER
from builder_bridge.prefix.pom import MAX_POM_BYTES, Coordinate, PomFault
from builder_bridge.prefix.repository import FolderRepository, HttpRepository, Repository, verify
from builder_bridge.prefix.resolve import Resolver, Wanted
from builder_bridge.routes.route import Route

log = structlog.get_logger()

MAX_FILE_BYTES = 1 << 30
MAX_BATCH_BYTES = 64 << 20
MAX_BATCH_FILES = 2000
AT_ONCE = 8
TIMEOUT_S = 30.0
_CHUNK_BYTES = 1 << 20
_STORED = (".jar", ".aar", ".zip")


@dataclass(frozen=True, slots=True)
class SeedReport:
    """Paths in the offline repository that were brought and that lay there, and what was not found."""

    brought: tuple[str, ...]
    present: tuple[str, ...]
    missing: tuple[str, ...]
    size_bytes: int


@dataclass(frozen=True, slots=True)
class SeedFile:
    """A file that was fetched: its path in the repository, and where it lies on this host."""

    path: str
    file: Path
    size_bytes: int
    sha256: str


@asynccontextmanager
async def open_repositories(places: Sequence[str]) -> AsyncIterator[tuple[Repository, ...]]:
    """Give the repositories for URLs and folders; raises `SeedFault` for a folder that is none."""
    limits = httpx.Limits(max_connections=AT_ONCE)
    async with httpx.AsyncClient(
        follow_redirects=True, max_redirects=5, timeout=TIMEOUT_S, limits=limits
    ) as http:
        found: list[Repository] = []
        for place in places:
            if place.startswith(("https://", "http://")):
                found.append(HttpRepository(http, place))
                continue
            folder = await anyio.Path(place.removeprefix("file://")).expanduser()
            if not await folder.is_dir():
                raise SeedFault(
                    f"The repository {place} is neither an http(s) URL nor a folder of this host."
                )
            found.append(FolderRepository(Path(folder)))
        yield tuple(found)


async def seed(route: Route, wanted: Sequence[Coordinate], repositories: Sequence[Repository]) -> SeedReport:
    """Bring coordinates with what they need transitively; files that the phone has are not sent again.

    Raises `SeedFault` where a coordinate itself is in no repository, or a file is damaged: then
    nothing was sent. What others need and no repository has is told as `missing`.
    """
    with TemporaryDirectory(prefix="pocketbuild-seed-") as folder:
        fetcher = _Fetcher(repositories, Path(folder))
        missing = await fetcher.fetch_all(wanted)
        files = sorted(fetcher.files.values(), key=lambda file: file.path)
        asked = "".join(f"{file.sha256} {file.path}\n" for file in files).encode()
        answer = parse(await route.call("seeded", stdin=asked), SeededDocument)
        present = frozenset(answer.present)
        lacking = [file for file in files if file.path not in present]
        for batch in _batches(lacking):
            await _send(route, batch, Path(folder) / "pack.zip")
    report = SeedReport(
        brought=tuple(file.path for file in lacking),
        present=tuple(file.path for file in files if file.path in present),
        missing=missing,
        size_bytes=sum(file.size_bytes for file in lacking),
    )
    log.info("artifacts.were_seeded", route=route.name, files=len(lacking), size_bytes=report.size_bytes)
    return report


class _Fetcher:
    """Fetches files into a folder, each once."""

    def __init__(self, repositories: Sequence[Repository], folder: Path) -> None:
        self._repositories = repositories
        self._folder = folder
        self._limiter = anyio.CapacityLimiter(AT_ONCE)
        self._count = 0
        self.files: dict[str, SeedFile] = {}

    async def fetch_all(self, wanted: Sequence[Coordinate]) -> tuple[str, ...]:
        resolver = Resolver(wanted)
        while asks := resolver.asks():
            async with _together() as tasks:
                for coordinate in asks:
                    tasks.start_soon(self._feed, resolver, coordinate)
        unknown = [coordinate for coordinate in wanted if coordinate.path(".pom") not in self.files]
        if unknown:
            names = ", ".join(repository.name for repository in self._repositories)
            raise SeedFault(f"None of {names} has {', '.join(map(str, unknown))}.")
        resolution = resolver.close()
        missing = list(resolution.missing)
        async with _together() as tasks:
            for each in resolution.files:
                tasks.start_soon(self._fetch_first, each, missing)
        return tuple(sorted(missing))

    async def _feed(self, resolver: Resolver, coordinate: Coordinate) -> None:
        pom = await self._fetch(coordinate.path(".pom"), MAX_POM_BYTES)
        text = None if pom is None else await run_sync(pom.file.read_bytes)
        module = None
        if text is not None and MARKER in text:
            module = await self._fetch(coordinate.path(".module"), MAX_POM_BYTES)
        said = None if module is None else await run_sync(module.file.read_bytes)
        try:
            resolver.feed(coordinate, text, said)
        except PomFault as fault:
            raise SeedFault(f"Too much would have to be brought: {fault}.") from fault

    async def _fetch_first(self, wanted: Wanted, missing: list[str]) -> None:
        for path in wanted.paths:
            if await self._fetch(path, MAX_FILE_BYTES) is not None:
                return
        if wanted.is_needed:
            missing.append(f"{' or '.join(wanted.paths)}: no repository has it")

    async def _fetch(self, path: str, max_bytes: int) -> SeedFile | None:
        async with self._limiter:
            self._count += 1
            file = self._folder / str(self._count)
            for repository in self._repositories:
                if await repository.read(path, file, max_bytes):
                    await verify(repository, path, file)
                    self.files[path] = await run_sync(_describe, path, file)
                    return self.files[path]
        return None


@asynccontextmanager
async def _together() -> AsyncIterator[TaskGroup]:
    """A task group whose first fault leaves it as itself."""
    try:
        async with anyio.create_task_group() as tasks:
            yield tasks
    except ExceptionGroup as group:
        raise group.exceptions[0] from None


def _describe(path: str, file: Path) -> SeedFile:
    with file.open("rb") as source:
        digest = hashlib.file_digest(source, "sha256").hexdigest()
    return SeedFile(path, file, file.stat().st_size, digest)


def _batches(files: Iterable[SeedFile]) -> Iterator[list[SeedFile]]:
    batch: list[SeedFile] = []
    size_bytes = 0
    for file in files:
        if batch and (size_bytes + file.size_bytes > MAX_BATCH_BYTES or len(batch) >= MAX_BATCH_FILES):
            yield batch
            batch, size_bytes = [], 0
        batch.append(file)
        size_bytes += file.size_bytes
    if batch:
        yield batch


async def _send(route: Route, batch: Sequence[SeedFile], pack: Path) -> None:
    digest = await run_sync(_pack, batch, pack)
    size_bytes = (await anyio.Path(pack).stat()).st_size
    size_kb = sum(file.size_bytes for file in batch) // 1000 + 1
    async with aclosing(_read(pack)) as chunks:
        words = (str(size_bytes), digest, str(len(batch)), str(size_kb))
        parse(await route.call("seed", *words, stdin=chunks), OkDocument)


def _pack(batch: Sequence[SeedFile], pack: Path) -> str:
    with zipfile.ZipFile(pack, "w") as out:
        for file in batch:
            how = zipfile.ZIP_STORED if file.path.endswith(_STORED) else zipfile.ZIP_DEFLATED
            info = zipfile.ZipInfo(file.path)
            info.compress_type, info.external_attr = how, 0o100644 << 16
            info.file_size = file.size_bytes
            with file.file.open("rb") as source, out.open(info, "w") as entry:
                while chunk := source.read(_CHUNK_BYTES):
                    entry.write(chunk)
    with pack.open("rb") as made:
        return hashlib.file_digest(made, "sha256").hexdigest()


async def _read(path: Path) -> AsyncGenerator[bytes, None]:
    async with await anyio.open_file(path, "rb") as source:
        while chunk := await source.read(_CHUNK_BYTES):
            yield chunk
