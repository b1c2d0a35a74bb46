"""Programs of this host, of whose output no more is read than is wanted."""

from pathlib import Path

import pytest

from agent.tools.program import Collected, run_program

pytestmark = pytest.mark.anyio
DEADLINE_S = 60.0


async def test_a_program_that_never_ends_is_ended_once_there_is_enough(tmp_path: Path) -> None:
    told = Collected(100_000)
    ended = await run_program(["yes"], cwd=tmp_path, feed=told.feed, deadline_s=DEADLINE_S)
    assert (ended.was_enough, bytes(told.data)) == (True, b"y\n" * 50_000)


async def test_output_and_faults_of_a_program_that_ends_are_told_apart(tmp_path: Path) -> None:
    told = Collected(4)
    command = ["sh", "-c", "printf 1234; printf bad >&2; exit 3"]
    ended = await run_program(command, cwd=tmp_path, feed=told.feed, deadline_s=DEADLINE_S)
    assert (ended.status, ended.faults, ended.was_enough, bytes(told.data)) == (3, b"bad", False, b"1234")


async def test_of_endless_faults_the_beginning_is_kept_until_the_deadline(tmp_path: Path) -> None:
    with pytest.raises(TimeoutError):
        await run_program(["sh", "-c", "exec yes >&2"], cwd=tmp_path, feed=lambda _: False, deadline_s=0.2)


async def test_many_faults_do_not_stop_a_program(tmp_path: Path) -> None:
    command = ["sh", "-c", "yes | head -c 1000000 >&2; printf end"]
    told = Collected(100)
    ended = await run_program(command, cwd=tmp_path, feed=told.feed, deadline_s=DEADLINE_S)
    assert (ended.status, len(ended.faults), bytes(told.data)) == (0, 64 * 1024, b"end")


async def test_a_program_that_is_not_there_is_told_of(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        await run_program(["no-such-program"], cwd=tmp_path, feed=lambda _: False, deadline_s=DEADLINE_S)
