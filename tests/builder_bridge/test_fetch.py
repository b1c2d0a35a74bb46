"""Artifacts come whole in several streams, whatever order, cuts and crashes there are."""

import hashlib
import os
import random
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder_bridge.adb import connect
from builder_bridge.box import Box
from builder_bridge.build import Artifact, RunId
from builder_bridge.errors import HostStorageFull, PhoneLost, StreamEnded, TransferFault
from builder_bridge.fetch import fetch_artifact
from builder_bridge.part_file import PartFile
from builder_bridge.ranges import LEAST_SHARE_BYTES
from builder_bridge.routes.probe import pick_route
from builder_bridge.routes.route import Route
from tests.fake_prefix import files_of

CONTENT = random.Random(4).randbytes(20 << 20)
RUN = RunId("r-1")
SHARED_MEMORY = Path("/dev/shm")


def artifact_of(content: bytes) -> Artifact:
    return Artifact(1, "app/big.apk", "apk", len(content), hashlib.sha256(content).hexdigest())


class MemoryRoute:
    """A phone's `get`, with what can go wrong on the way; counts the streams that were opened."""

    def __init__(self, content: bytes, piece_bytes: int = 100_000) -> None:
        self.content = content
        self.piece_bytes = piece_bytes
        self.offsets = list[int]()
        self.breaks_after = dict[int, int]()
        self.sent_bytes = 0

    @asynccontextmanager
    async def get(self, run_id: str, index: str, offset: int) -> AsyncIterator[AsyncIterator[bytes]]:
        assert (run_id, index) == (RUN, "1")
        number = len(self.offsets)
        self.offsets.append(offset)
        yield self._pieces(offset, self.breaks_after.get(number, len(self.content)))

    async def _pieces(self, offset: int, limit_bytes: int) -> AsyncIterator[bytes]:
        for start in range(offset, len(self.content), self.piece_bytes):
            if start - offset >= limit_bytes:
                raise StreamEnded("The phone ended the command's stream.")
            await anyio.lowlevel.checkpoint()
            piece = self.content[start : start + self.piece_bytes]
            self.sent_bytes += len(piece)
            yield piece


def fetch(route: MemoryRoute, destination: Path, streams: int, artifact: Artifact | None = None) -> None:
    work: Callable[..., object] = fetch_artifact
    anyio.run(work, route, RUN, artifact or artifact_of(route.content), destination, streams)


@pytest.mark.parametrize("streams", [1, 2, 4, 8])
def test_several_streams_bring_the_same_file_and_leave_nothing_beside_it(
    tmp_path: Path, streams: int
) -> None:
    route = MemoryRoute(CONTENT)
    fetch(route, tmp_path / "out/app.apk", streams)
    assert (tmp_path / "out/app.apk").read_bytes() == CONTENT
    assert os.listdir(tmp_path / "out") == ["app.apk"]  # noqa: PTH208
    assert len(route.offsets) == min(streams, len(CONTENT) // LEAST_SHARE_BYTES)
    assert route.sent_bytes <= len(CONTENT) + route.piece_bytes * streams


def test_a_stream_that_fails_costs_the_others_nothing(tmp_path: Path) -> None:
    route = MemoryRoute(CONTENT)
    route.breaks_after = {1: 1 << 20, 3: 0}
    fetch(route, tmp_path / "app.apk", 4)
    assert (tmp_path / "app.apk").read_bytes() == CONTENT
    assert len(route.offsets) > 4
    assert route.sent_bytes <= len(CONTENT) + route.piece_bytes * len(route.offsets), (
        "only the rest came anew"
    )


def test_what_arrived_before_all_streams_failed_is_not_asked_for_again(tmp_path: Path) -> None:
    route = MemoryRoute(CONTENT)
    route.breaks_after = dict.fromkeys(range(4), 2 << 20) | dict.fromkeys(range(4, 100), 0)
    with pytest.raises(PhoneLost):
        fetch(route, tmp_path / "app.apk", 4)
    again = MemoryRoute(CONTENT)
    fetch(again, tmp_path / "app.apk", 1)
    assert (tmp_path / "app.apk").read_bytes() == CONTENT
    assert again.sent_bytes < len(CONTENT) - (7 << 20)
    assert os.listdir(tmp_path) == ["app.apk"]  # noqa: PTH208


def test_a_part_that_one_stream_left_is_gone_on_with_by_several(tmp_path: Path) -> None:
    artifact = artifact_of(CONTENT)
    (tmp_path / f"app.apk.{artifact.sha256[:12]}.part").write_bytes(CONTENT[: 9 << 20])
    route = MemoryRoute(CONTENT)
    fetch(route, tmp_path / "app.apk", 4)
    assert (tmp_path / "app.apk").read_bytes() == CONTENT
    assert min(route.offsets) == 9 << 20


@pytest.mark.parametrize("streams", [1, 4])
def test_damaged_content_is_fetched_anew_once_and_then_refused(tmp_path: Path, streams: int) -> None:
    route = MemoryRoute(CONTENT)
    with pytest.raises(TransferFault, match="another SHA-256"):
        fetch(route, tmp_path / "app.apk", streams, artifact_of(b"?" + CONTENT[1:]))
    assert len(route.offsets) == 2 * streams
    assert os.listdir(tmp_path) == []  # noqa: PTH208


def test_more_bytes_than_the_artifact_has_are_a_fault(tmp_path: Path) -> None:
    route = MemoryRoute(CONTENT)
    for streams in (1, 4):
        with pytest.raises(TransferFault, match="longer than the phone says"):
            fetch(route, tmp_path / "app.apk", streams, artifact_of(CONTENT[:-1]))


def test_cancelling_keeps_what_has_come(tmp_path: Path) -> None:
    route = MemoryRoute(CONTENT)

    async def cancel_midway() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(fetch_artifact, route, RUN, artifact_of(CONTENT), tmp_path / "app.apk", 4)
            while route.sent_bytes < 8 << 20:
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()

    anyio.run(cancel_midway)
    assert not (tmp_path / "app.apk").exists()
    again = MemoryRoute(CONTENT)
    fetch(again, tmp_path / "app.apk", 4)
    assert (tmp_path / "app.apk").read_bytes() == CONTENT
    assert again.sent_bytes < len(CONTENT)


def test_where_there_is_no_room_nothing_is_asked_of_the_phone(tmp_path: Path) -> None:
    route = MemoryRoute(CONTENT)
    huge = Artifact(1, "app/huge.apk", "apk", 1 << 60, "0" * 64)
    with pytest.raises(HostStorageFull, match="No room for"):
        fetch(route, tmp_path / "huge.apk", 4, huge)
    assert route.offsets == []


SMALL = CONTENT[:5000]
writes = st.tuples(st.integers(0, 3), st.integers(1, 700), st.sampled_from(["go on", "close", "crash"]))


@settings(max_examples=60, deadline=None)
@given(data=st.data(), steps=st.lists(writes, max_size=40), is_shared=st.booleans())
def test_any_order_any_cut_and_any_crash_give_the_same_file(
    data: st.DataObject, steps: list[tuple[int, int, str]], is_shared: bool
) -> None:
    """`crash` lets go without a note, perhaps with a damaged last line, as kill -9 does."""
    # In memory, where there is such a place, since each step waits for the disk.
    with tempfile.TemporaryDirectory(dir=SHARED_MEMORY if SHARED_MEMORY.is_dir() else None) as folder:
        go_through(Path(folder), data, steps, is_shared)


def go_through(folder: Path, data: st.DataObject, steps: list[tuple[int, int, str]], is_shared: bool) -> None:
    artifact = artifact_of(SMALL)
    part = PartFile(folder / "a", artifact)
    gaps = list(part.open(is_shared))
    for which, count, then in steps:
        if gaps:
            start, end = gaps.pop(which % len(gaps) if is_shared else 0)
            cut = min(start + count, end)
            part.write(start, [SMALL[start:cut][:100], SMALL[start:cut][100:]])
            gaps = sorted([*gaps, (cut, end)] if cut < end else gaps)
        if then == "go on":
            continue
        before = sum(end - start for start, end in gaps)
        if then == "crash":
            part._notes_fd, fd = None, part._notes_fd
            if fd is not None:
                os.write(fd, data.draw(st.sampled_from([b"", b"0 4", b"\0\0", b"9 1\n"])))
                os.close(fd)
        part.close()
        is_shared = data.draw(st.booleans())
        part = PartFile(folder / "a", artifact)
        gaps = list(part.open(is_shared))
        is_shared = is_shared or len(gaps) > 1
        if then == "close":
            assert sum(end - start for start, end in gaps) == before, "nothing is lost by a clean end"
    for start, end in gaps:
        part.write(start, [SMALL[start:end]])
    part.close()
    assert part.finish()
    assert (folder / "a").read_bytes() == SMALL
    assert os.listdir(folder) == ["a"]  # noqa: PTH208


@pytest.mark.box
@pytest.mark.anyio
@pytest.mark.parametrize("route_name", ["run_as", "shell_dir"])
async def test_a_real_phone_gives_ranges_side_by_side(
    fake_box: Box, new_run: Callable[[], RunId], tmp_path: Path, route_name: str
) -> None:
    run_id = new_run()
    folder = files_of(fake_box, route_name) / "pocketbuild/runs" / run_id
    home = files_of(fake_box, route_name)
    for made in (folder.parent.parent, folder.parent, folder, folder / "artifacts"):
        made.mkdir(mode=0o700, exist_ok=True)
        os.chown(made, *owner_of(home))  # others build on this phone, too
    (folder / "digest").write_text("x\n")
    (folder / "artifacts/1").write_bytes(CONTENT)
    for path in [folder, *folder.rglob("*")]:
        os.chown(path, *owner_of(home))
    async with connect(fake_box.serial) as adb:
        route: Route = await pick_route(adb, [route_name])
        await fetch_artifact(route, run_id, artifact_of(CONTENT), tmp_path / "app.apk", 4)
        assert await anyio.Path(tmp_path / "app.apk").read_bytes() == CONTENT
        assert (await route.call("list")).startswith(b"{"), "streams that were left early harm nothing"


def owner_of(path: Path) -> tuple[int, int]:
    stat = path.stat()
    return stat.st_uid, stat.st_gid
