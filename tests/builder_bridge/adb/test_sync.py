"""Files to and from a phone, against phones of several ages, and the language of sync itself."""

import os
import struct
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path, PurePosixPath

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder_bridge.adb import connect, sync
from builder_bridge.adb.content import PushFile
from builder_bridge.adb.sync_packets import (
    Answer,
    Data,
    Done,
    Entry,
    Fail,
    FileStat,
    Okay,
    Stat,
    SyncReader,
    encode_chunks,
    encode_send,
)
from builder_bridge.errors import (
    PathRefused,
    PhoneLost,
    ProtocolFault,
    StorageFull,
    TransferFault,
)
from tests.chaos import Faults, open_chaos
from tests.fakes_adb import ANDROID_9, FakePhone, open_phone

anyio_test = pytest.mark.anyio
PLACE = PurePosixPath("/data/local/tmp/file.bin")
SIZES = [0, 1, 65535, 65536, 65537, 983_041]


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture(params=["modern", "android 9", "byte sums"])
def phone(request: pytest.FixtureRequest) -> FakePhone:
    match request.param:
        case "modern":
            return FakePhone()
        case "android 9":
            return FakePhone(features=ANDROID_9, max_payload_bytes=256 << 10)
        case _:
            return FakePhone(features="shell_v2", version=0x01000000, max_payload_bytes=4096)


@anyio_test
@pytest.mark.parametrize("size_bytes", SIZES)
async def test_a_file_comes_back_as_it_went(phone: FakePhone, size_bytes: int, tmp_path: Path) -> None:
    source, back = tmp_path / "there", tmp_path / "back"
    source.write_bytes(os.urandom(size_bytes))
    os.utime(source, (1_600_000_000, 1_600_000_000))
    async with open_phone(phone), connect(phone.address, keys=()) as adb:
        await sync.push(adb, source, PLACE, mode=0o755)
        assert phone.files[str(PLACE)] == source.read_bytes()
        stat = await sync.pull(adb, PLACE, back)
    assert back.read_bytes() == source.read_bytes()
    assert stat == FileStat(0o100755, size_bytes, 1_600_000_000)
    assert back.stat().st_mode == 0o100755
    assert back.stat().st_mtime == 1_600_000_000
    assert names_in(tmp_path) == ["back", "there"]


@anyio_test
async def test_bytes_and_bytes_as_they_come_can_be_sent(phone: FakePhone) -> None:
    async def blocks() -> AsyncIterator[bytes]:
        for size in (1, 0, 70_000, 3):
            yield b"x" * size

    async with open_phone(phone), connect(phone.address, keys=()) as adb:
        await sync.push(adb, b"given", PurePosixPath("/a"), mtime_s=5)
        await sync.push(adb, blocks(), PurePosixPath("/b"))
    assert phone.files == {"/a": b"given", "/b": b"x" * 70_004}
    assert phone.modes["/a"] == (0o100644, 5)


@anyio_test
async def test_many_files_of_all_sizes_go_in_one_stream(phone: FakePhone, tmp_path: Path) -> None:
    files, sent = [], {}
    for number in range(300):
        path, content = tmp_path / str(number), os.urandom(200_000 if number % 100 == 7 else number)
        path.write_bytes(content)
        files.append(PushFile(path, PurePosixPath(f"/many/{number % 7}/{number}")))
        sent[f"/many/{number % 7}/{number}"] = content
    async with open_phone(phone), connect(phone.address, keys=()) as adb:
        await sync.push_many(adb, files)
    assert phone.services.count("sync:") == 1
    assert phone.files == sent


@anyio_test
async def test_a_refused_file_is_named_with_the_phones_words_even_in_the_middle(phone: FakePhone) -> None:
    phone.refuses_writes_after, phone.fail_text = 100_000, "couldn't create file: Permission denied"
    files = [
        PushFile(b"small", PurePosixPath("/ok")),
        PushFile(os.urandom(4 << 20), PurePosixPath("/system/no.bin")),
        PushFile(b"never", PurePosixPath("/after")),
    ]
    async with open_phone(phone), connect(phone.address, keys=()) as adb:
        with pytest.raises(PathRefused, match=r"/system/no\.bin: couldn't create file: Permission denied"):
            await sync.push_many(adb, files)
        assert set(phone.files) == {"/ok"}
        phone.refuses_writes_after = None
        await sync.push(adb, b"the connection lives", PLACE)


@anyio_test
async def test_a_full_phone_has_a_fault_of_its_own(phone: FakePhone) -> None:
    phone.refuses_writes_after = 0
    async with open_phone(phone), connect(phone.address, keys=()) as adb:
        with pytest.raises(StorageFull, match="No space left on device"):
            await sync.push(adb, os.urandom(3 << 20), PLACE)


@anyio_test
async def test_a_source_that_is_not_there_is_a_fault_of_this_host(phone: FakePhone, tmp_path: Path) -> None:
    async with open_phone(phone), connect(phone.address, keys=()) as adb:
        with pytest.raises(FileNotFoundError):
            await sync.push(adb, tmp_path / "nothing", PLACE)
        await sync.push(adb, b"the connection lives", PLACE)


@anyio_test
async def test_pulling_what_is_not_there_leaves_the_old_file(phone: FakePhone, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.write_bytes(b"precious")
    async with open_phone(phone), connect(phone.address, keys=()) as adb:
        with pytest.raises(PathRefused, match=f"no {PLACE}"):
            await sync.pull(adb, PLACE, kept)
    assert kept.read_bytes() == b"precious"
    assert names_in(tmp_path) == ["kept"]


@anyio_test
@pytest.mark.parametrize("with_fin", [False, True], ids=["reset", "fin"])
async def test_a_pull_that_is_cut_leaves_the_old_file(with_fin: bool, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.write_bytes(b"precious")
    faults = Faults(cut_down_after=2_000_000, with_fin=with_fin)
    async with (
        open_phone(FakePhone(files={str(PLACE): bytes(5_000_000)})) as phone,
        open_chaos("127.0.0.1", phone.port, faults) as chaos,
        connect(chaos.address, keys=()) as adb,
    ):
        with pytest.raises(PhoneLost):
            await sync.pull(adb, PLACE, kept)
    assert kept.read_bytes() == b"precious"
    assert names_in(tmp_path) == ["kept"]


@anyio_test
async def test_a_push_that_is_cut_is_a_lost_phone() -> None:
    async with (
        open_phone() as phone,
        open_chaos("127.0.0.1", phone.port, Faults(cut_up_after=2_000_000)) as chaos,
        connect(chaos.address, keys=()) as adb,
    ):
        with pytest.raises(PhoneLost), anyio.fail_after(60):
            await sync.push(adb, bytes(20 << 20), PLACE)
    assert phone.files == {}


@anyio_test
async def test_a_pull_may_write_straight_into_its_destination(tmp_path: Path) -> None:
    phone = FakePhone(files={str(PLACE): b"content"})
    async with open_phone(phone), connect(phone.address, keys=()) as adb:
        await sync.pull(adb, PLACE, tmp_path / "straight.part", via_part=False)
    assert (tmp_path / "straight.part").read_bytes() == b"content"


@anyio_test
async def test_stat_tells_file_from_nothing(phone: FakePhone) -> None:
    phone.files["/there"] = b"12345"
    phone.modes["/there"] = (0o100600, 77)
    async with open_phone(phone), connect(phone.address, keys=()) as adb:
        there = await sync.stat(adb, PurePosixPath("/there"))
        assert there == FileStat(0o100600, 5, 77)
        assert there.is_file
        assert not there.is_dir
        assert await sync.stat(adb, PurePosixPath("/nothing")) is None


@anyio_test
async def test_a_directory_is_listed_by_name() -> None:
    phone = FakePhone(features="shell_v2", files={"/d/b": b"", "/d/a": b"1", "/other/c": b""})
    async with open_phone(phone), connect(phone.address, keys=()) as adb:
        assert [entry.name for entry in await sync.listdir(adb, PurePosixPath("/d"))] == ["a", "b"]
        assert await sync.listdir(adb, PurePosixPath("/nothing")) == []


# The language itself.


def stat_v2(kind: bytes, error: int, mode: int, size_bytes: int, mtime_s: int) -> bytes:
    return kind + struct.pack("<IQQIIIIQqqq", error, 9, 8, mode, 1, 2000, 2000, size_bytes, 1, mtime_s, 3)


def test_sizes_above_four_gibibytes_are_read() -> None:
    [answer] = SyncReader().feed(stat_v2(b"STA2", 0, 0o100644, 10 << 30, 1_700_000_000))
    assert answer == Stat(0, FileStat(0o100644, 10 << 30, 1_700_000_000))


def test_a_listing_of_version_2_ends_with_a_long_done() -> None:
    name = "naïve\udcff".encode("utf-8", "surrogateescape")
    wire = stat_v2(b"DNT2", 0, 0o40755, 4096, 5) + struct.pack("<I", len(name)) + name
    wire += stat_v2(b"DONE", 0, 0, 0, 0) + struct.pack("<I", 0)
    assert list(SyncReader(b"DNT2").feed(wire)) == [Entry("naïve\udcff", FileStat(0o40755, 4096, 5)), Done()]


def test_a_destination_keeps_its_odd_bytes() -> None:
    assert encode_send(PurePosixPath("/d/\udcff,1"), 0o640, None).endswith(b"/d/\xff,1,33184")


@pytest.mark.parametrize(
    "wire", [b"NOPE1234", struct.pack("<4sI", b"DATA", 65537), struct.pack("<4sI", b"FAIL", 1 << 31)]
)
def test_what_sync_does_not_know_is_a_protocol_fault(wire: bytes) -> None:
    with pytest.raises(ProtocolFault):
        list(SyncReader().feed(wire))


@settings(deadline=None, max_examples=60)
@given(
    content=st.lists(st.binary(max_size=50), max_size=5),
    reason=st.text(max_size=20),
    cuts=st.lists(st.integers(0, 400), max_size=20),
)
def test_any_cut_of_the_stream_gives_the_same_answers(
    content: list[bytes], reason: str, cuts: list[int]
) -> None:
    encoded = reason.encode()
    wire = stat_v2(b"LST2", 0, 0o100644, 3, 4) + b"".join(
        struct.pack("<4sI", b"DATA", len(part)) + part for part in content
    )
    wire += struct.pack("<4sI", b"DONE", 0) + struct.pack("<4sI", b"OKAY", 0)
    wire += struct.pack("<4sI", b"FAIL", len(encoded)) + encoded
    reader, answers = SyncReader(), list[Answer]()
    edges = sorted({0, len(wire), *(cut for cut in cuts if cut < len(wire))})
    for start, end in pairwise(edges):
        answers += reader.feed(wire[start:end])
    data = b"".join(answer.data for answer in answers if isinstance(answer, Data))
    others = [answer for answer in answers if not isinstance(answer, Data)]
    assert data == b"".join(content)
    assert others == [Stat(0, FileStat(0o100644, 3, 4)), Done(), Okay(), Fail(reason)]


@settings(deadline=None, max_examples=60)
@given(st.binary(max_size=300))
def test_garbage_in_the_sync_stream_is_a_protocol_fault_and_nothing_else(garbage: bytes) -> None:
    try:
        list(SyncReader().feed(garbage))
    except ProtocolFault as fault:
        assert str(fault)  # noqa: PT017


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 400_000))
def test_content_is_cut_into_chunks_that_sync_allows(size_bytes: int) -> None:
    wire = b"".join(encode_chunks(bytes(size_bytes)))
    pieces = [answer for answer in SyncReader().feed(wire) if isinstance(answer, Data)]
    assert sum(len(piece.data) for piece in pieces) == size_bytes


# Compression.


@anyio_test
async def test_a_pull_of_more_than_was_told_ends_at_once_and_leaves_nothing(tmp_path: Path) -> None:
    phone = FakePhone(files={str(PLACE): bytes(50 << 20)}, claims_bytes=9)
    async with open_phone(phone), connect(phone.address, keys=()) as adb:
        with pytest.raises(TransferFault, match=r"More bytes .* than the 9 "):
            await sync.pull(adb, PLACE, tmp_path / "back")
        assert await sync.stat(adb, PLACE), "the connection lives"
    assert names_in(tmp_path) == []


@anyio_test
async def test_a_pull_that_comes_short_is_not_taken_for_whole(tmp_path: Path) -> None:
    phone = FakePhone(files={str(PLACE): b"ten bytes."}, claims_bytes=11)
    async with open_phone(phone), connect(phone.address, keys=()) as adb:
        with pytest.raises(TransferFault, match="Only 10 of 11 bytes"):
            await sync.pull(adb, PLACE, tmp_path / "back")
    assert names_in(tmp_path) == []
