"""Files read straight into DATA chunks."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from builder_bridge.adb.file_blocks import FileBlocks
from builder_bridge.adb.packets import MAX_PAYLOAD_BYTES
from builder_bridge.adb.sync_packets import BLOCK_BYTES, CHUNK_BYTES, Data, SyncReader

pytestmark = pytest.mark.anyio
SIZES = [
    0,
    1,
    CHUNK_BYTES - 1,
    CHUNK_BYTES,
    CHUNK_BYTES + 1,
    BLOCK_BYTES,
    BLOCK_BYTES + 1,
    3 * BLOCK_BYTES - 7,
]


async def read_all(file: Path) -> list[bytes]:
    """Give the content of each block, read by sync's own reader."""
    blocks, reader = list[bytes](), SyncReader()
    with file.open("rb", buffering=0) as opened:
        source = FileBlocks(opened.fileno())
        while block := await source.take():
            assert len(block) <= MAX_PAYLOAD_BYTES
            answers = list(reader.feed(bytes(block)))
            assert all(isinstance(answer, Data) for answer in answers)
            blocks.append(b"".join(answer.data for answer in answers if isinstance(answer, Data)))
    return blocks


@pytest.mark.parametrize("size_bytes", SIZES)
async def test_a_file_of_any_size_is_read_whole_in_full_blocks(size_bytes: int, tmp_path: Path) -> None:
    content = os.urandom(size_bytes)
    (tmp_path / "file").write_bytes(content)
    blocks = await read_all(tmp_path / "file")
    assert b"".join(blocks) == content
    assert [len(block) for block in blocks[:-1]] == [BLOCK_BYTES] * (len(blocks) - 1)


async def test_what_the_page_cache_does_not_hold_is_read_too(tmp_path: Path) -> None:
    content = os.urandom(3 * BLOCK_BYTES + 5)
    with (tmp_path / "file").open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    assert b"".join(await read_all(tmp_path / "file")) == content


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="this host has no file system in memory")
async def test_a_file_system_that_cannot_tell_whether_a_read_waits_is_read_too() -> None:
    content = os.urandom(2 * BLOCK_BYTES + 5)
    with TemporaryDirectory(dir="/dev/shm") as folder:
        (Path(folder) / "file").write_bytes(content)
        assert b"".join(await read_all(Path(folder) / "file")) == content


async def test_a_block_that_somebody_holds_is_never_overwritten(tmp_path: Path) -> None:
    content = os.urandom(6 * BLOCK_BYTES)
    (tmp_path / "file").write_bytes(content)
    with (tmp_path / "file").open("rb", buffering=0) as opened:
        source = FileBlocks(opened.fileno())
        held, copies = [], []
        for number in range(6):
            block = await source.take()
            if number % 2:
                held.append(block[10:])
                copies.append(bytes(block[10:]))
        assert [bytes(view) for view in held] == copies


async def test_a_buffer_is_used_again_once_nobody_holds_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(os.urandom(9 * BLOCK_BYTES))
    with (tmp_path / "file").open("rb", buffering=0) as opened:
        source = FileBlocks(opened.fileno())
        buffers = set()
        while block := await source.take():
            buffers.add(id(block.obj))
            assert isinstance(block.obj, bytearray)
    assert len(buffers) <= 2


async def test_a_file_that_was_cut_while_it_is_read_ends_where_it_ends_now(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"a" * (2 * BLOCK_BYTES))
    with file.open("rb", buffering=0) as opened:
        source = FileBlocks(opened.fileno())
        await source.take()
        os.truncate(file, BLOCK_BYTES + 3)
        assert bytes((await source.take())[8:]) == b"aaa"
        assert not await source.take()
