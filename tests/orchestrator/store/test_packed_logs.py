"""A packed log reads like the plain one, and there is a whole one whenever the process ends."""

import hashlib
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from builder_bridge.log.frames import FRAME_BYTES, FramesFault
from orchestrator.bell import Bells
from orchestrator.store.logs import LogBook

RUN = "b-1-1"
LINES = [f"{'e: ' if number % 1009 == 0 else ''}line {number} größer ✓ {'x' * (number % 200)}"
         for number in range(22_000)]  # fmt: skip
LOG = "".join(f"{line}\n" for line in LINES).encode()


def write(logs: LogBook, data: bytes) -> LogBook:
    with logs.appending(RUN) as writer:
        writer.append(writer.offset, data)
    return logs


def files_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> LogBook:
    assert len(LOG) > 2 * FRAME_BYTES
    folder = tmp_path_factory.mktemp("logs")
    logs = write(LogBook(folder, Bells()), LOG)
    logs.pack(RUN)
    assert files_in(folder) == [f"{RUN}.log.zst"]
    return logs


@settings(max_examples=40)
@given(st.integers(0, len(LOG) + 10), st.integers(0, 2 * FRAME_BYTES))
def test_any_range_of_a_packed_log_is_that_of_the_plain_one(packed: LogBook, offset: int, size: int) -> None:
    assert packed.read(RUN, offset, size) == LOG[offset : offset + size]


@settings(max_examples=30)
@given(st.integers(-len(LINES) - 5, len(LINES) + 5), st.integers(1, 300))
def test_any_lines_of_a_packed_log_are_those_of_the_plain_one(
    packed: LogBook, first: int, count: int
) -> None:
    found = packed.lines(RUN, first, count)
    start = max(0, len(LINES) + first) if first < 0 else min(first, len(LINES))
    assert (found.first, found.total) == (start, len(LINES))
    assert list(found.lines) == LINES[start : start + count]


def test_a_packed_log_is_searched_measured_and_hashed_as_what_it_was(packed: LogBook) -> None:
    wanted = tuple(range(0, len(LINES), 1009))
    assert packed.search(RUN, "^e: ", 100) == (wanted, len(wanted), len(LINES))
    assert packed.size_bytes(RUN) == len(LOG)
    assert packed.sha256(RUN) == hashlib.sha256(LOG).hexdigest()
    assert packed.kept_bytes(RUN) == packed.packed_path(RUN).stat().st_size < len(LOG) / 4


def test_any_zstd_reads_a_packed_log(packed: LogBook) -> None:
    with packed.packed_path(RUN).open("rb") as file:
        reader = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
        assert reader.read() == LOG


@given(st.binary(max_size=300), st.binary(max_size=300))
def test_a_packed_log_can_be_written_on_from_its_end(before: bytes, after: bytes) -> None:
    with TemporaryDirectory() as folder:
        logs = write(LogBook(Path(folder), Bells()), before)
        logs.pack(RUN)
        assert logs.read(RUN, 0, 1000) == before
        write(logs, after)
        assert logs.read(RUN, 0, 1000) == before + after
        assert files_in(Path(folder)) == [f"{RUN}.log"]
        logs.pack(RUN)
        assert logs.read(RUN, 0, 1000) == before + after


def test_a_line_index_made_before_packing_holds_after_it(tmp_path: Path) -> None:
    logs = write(LogBook(tmp_path, Bells()), LOG)
    before = logs.lines(RUN, -7, 7)
    logs.pack(RUN)
    assert logs.lines(RUN, -7, 7) == before
    assert logs.lines(RUN, 11_111, 2).lines == tuple(LINES[11_111:11_113])


WHOLE, HALF = True, False


@pytest.mark.parametrize(
    "left",
    [
        {".log": WHOLE},
        {".log": WHOLE, ".log.zst.new": HALF},
        {".log": WHOLE, ".log.zst": WHOLE},
        {".log": WHOLE, ".log.zst": WHOLE, ".log.zst.new": HALF},
        {".log.zst": WHOLE},
        {".log.zst": WHOLE, ".log.new": HALF},
    ],
    ids=lambda left: "+".join(left),
)
def test_what_a_crash_leaves_is_the_whole_log_and_packing_goes_on(
    tmp_path: Path, packed: LogBook, left: dict[str, bool]
) -> None:
    content = {".log": LOG, ".log.new": LOG}
    for end, is_whole in left.items():
        data = content.get(end, packed.packed_path(RUN).read_bytes())
        (tmp_path / f"{RUN}{end}").write_bytes(data if is_whole else data[: len(data) // 2])
    logs = LogBook(tmp_path, Bells())
    for _ in range(2):
        assert logs.size_bytes(RUN) == len(LOG)
        assert logs.sha256(RUN) == hashlib.sha256(LOG).hexdigest()
        logs.pack(RUN)
        assert logs.packed_path(RUN).exists()
        assert not logs.path(RUN).exists()
    logs.remove(RUN)
    assert files_in(tmp_path) == []


def test_damage_is_told_and_never_taken_for_the_log(tmp_path: Path) -> None:
    logs = write(LogBook(tmp_path, Bells()), LOG)
    logs.pack(RUN)
    data = bytearray(logs.packed_path(RUN).read_bytes())
    data[len(data) // 2] ^= 0xFF
    logs.packed_path(RUN).write_bytes(data)
    with pytest.raises(FramesFault):
        logs.sha256(RUN)


def test_there_is_nothing_to_pack_where_no_log_is(tmp_path: Path) -> None:
    logs = LogBook(tmp_path, Bells())
    logs.pack(RUN)
    assert files_in(tmp_path) == []
    assert logs.size_bytes(RUN) == logs.kept_bytes(RUN) == 0
