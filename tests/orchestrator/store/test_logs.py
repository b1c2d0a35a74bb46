import re
from io import BufferedReader, BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.bell import Bells
from orchestrator.errors import BadRequest
from orchestrator.store.line_index import BLOCK_BYTES, LineIndexes
from orchestrator.store.logs import LogBook

RUN = "b-1-1"


def book(folder: str | Path, *pieces: bytes) -> LogBook:
    logs = LogBook(Path(folder), Bells())
    with logs.appending(RUN) as writer:
        for piece in pieces:
            writer.append(writer.offset, piece)
    return logs


line_texts = st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs"]), max_size=60)


@given(st.lists(line_texts, max_size=40), st.integers(-50, 50), st.integers(1, 60), st.booleans())
def test_lines_are_those_of_the_text_wherever_they_begin(
    lines: list[str], first: int, count: int, ends: bool
) -> None:
    text = "\n".join(lines) + ("\n" if ends and lines else "")
    expected = text.split("\n")
    if expected[-1] == "":
        expected.pop()
    with TemporaryDirectory() as folder:
        found = book(folder, text.encode()).lines(RUN, first, count)
    start = max(0, len(expected) + first) if first < 0 else min(first, len(expected))
    assert (found.first, found.total) == (start, len(expected))
    assert list(found.lines) == expected[start : start + count]


def test_lines_are_found_across_blocks_and_while_the_log_grows(tmp_path: Path) -> None:
    lines = [f"line {n} " + "x" * (n % 300) for n in range(3000)]
    text = "".join(f"{line}\n" for line in lines).encode()
    assert len(text) > 5 * BLOCK_BYTES
    logs = LogBook(tmp_path, Bells())
    with logs.appending(RUN) as writer:
        for start in range(0, len(text), 50_001):
            writer.append(writer.offset, text[start : start + 50_001])
            done = text[: writer.offset].count(b"\n")
            assert list(logs.lines(RUN, done - 3, 3).lines) == lines[max(0, done - 3) : done]
    for first in range(0, 3000, 97):
        assert list(logs.lines(RUN, first, 5).lines) == lines[first : first + 5]


def test_a_log_that_is_read_anew_is_found_in_as_it_is_now(tmp_path: Path) -> None:
    logs = book(tmp_path, b"\n" * (2 * BLOCK_BYTES + 7))
    assert logs.lines(RUN, 0, 1).total == 2 * BLOCK_BYTES + 7
    logs.path(RUN).write_bytes(b"a\nb\n")
    found = logs.lines(RUN, 1, 5)
    assert (found.lines, found.total) == (("b",), 2)
    logs.remove(RUN)
    again = b"x" * (3 * BLOCK_BYTES) + b"\nlast\n"
    with logs.appending(RUN) as writer:
        writer.append(0, again)
    assert logs.lines(RUN, -1, 1).lines == ("last",)


def test_an_index_that_was_made_while_its_log_was_removed_is_not_kept() -> None:
    indexes = LineIndexes()
    damaged, whole = b"\n" * BLOCK_BYTES, b"x" * BLOCK_BYTES + b"\n"

    def open_late() -> BufferedReader:
        indexes.forget(RUN)
        return BufferedReader(BytesIO(damaged))  # type: ignore[arg-type]

    assert indexes.of(RUN, len(damaged), open_late).total == BLOCK_BYTES
    now = indexes.of(RUN, len(whole), lambda: BufferedReader(BytesIO(whole)))  # type: ignore[arg-type]
    assert now.total == 1


def test_a_line_longer_than_a_block_is_one_line(tmp_path: Path) -> None:
    logs = book(tmp_path, b"a\n" + b"x" * (3 * BLOCK_BYTES) + b"\nb\nc\n")
    assert logs.lines(RUN, 2, 2).lines == ("b", "c")
    assert logs.lines(RUN, 1, 1).lines[0].startswith("xxx")


@given(st.lists(st.sampled_from(["e: bad", "w: odd", "plain", "", "e: é"]), max_size=60))
def test_search_finds_the_lines_that_match(lines: list[str]) -> None:
    with TemporaryDirectory() as folder:
        logs = book(folder, "".join(f"{line}\n" for line in lines).encode())
        for pattern in ("^e:", "a", "^$", "d$"):
            expected = [n for n, line in enumerate(lines) if re.search(pattern, line)]
            assert logs.search(RUN, pattern, 10) == (tuple(expected[:10]), len(expected), len(lines))


@pytest.mark.parametrize("pattern", ["(", "a{1001}{1001}", "(?=x)", r"(a)\1", "x" * 1001])
def test_a_pattern_that_re2_does_not_take_is_refused(tmp_path: Path, pattern: str) -> None:
    with pytest.raises(BadRequest):
        book(tmp_path, b"x\n").search(RUN, pattern, 10)


def test_bytes_that_are_there_are_dropped_and_a_gap_is_never_written(tmp_path: Path) -> None:
    logs = book(tmp_path, b"hello ")
    with logs.appending(RUN) as writer:
        assert writer.append(3, b"lo world") == b"world"
        assert writer.append(0, b"hello") == b""
        with pytest.raises(ValueError, match="missing"):
            writer.append(40, b"!")
    assert logs.path(RUN).read_bytes() == b"hello world"


def test_a_log_that_is_not_there_is_empty(tmp_path: Path) -> None:
    logs = LogBook(tmp_path, Bells())
    assert logs.lines(RUN, -5, 5).lines == ()
    assert logs.search(RUN, "x", 5) == ((), 0, 0)
    assert logs.read(RUN, 0, 10) == b""
