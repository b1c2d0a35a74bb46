"""The agent's command line: how runs end, what they say, and how they are gone on with."""

import io
import json
from pathlib import Path

import pytest

from agent.budget import Budget, Spent
from agent.decide import StopReason
from agent.entries import Added, Began, Entry, Stopped
from agent.message import UserMessage
from agent.progress import BuildAdvanced
from agent.redact import Redactor
from agent.transcript import Transcript
from orchestrator.cli.agent import exit_code_of
from orchestrator.cli.agent_screen import Screen
from orchestrator.cli.terminal import forecast
from tests.orchestrator.cli.test_build import pocketbuild

STARTED = "2026-01-02T03:04:05+00:00"
BUILD = "b1"


def keep_run(data: Path, *entries: Entry, provider: str = "scripted") -> str:
    """Keep the transcript of a run that was begun and went as the entries say."""
    run_id = "20260102-030405-abcd"
    began = Began(run_id, STARTED, "mend it", str(data), provider, "m", "openai-chat", Budget())
    with Transcript(data / "agents" / run_id, Redactor()) as transcript:
        for entry in (began, Added(UserMessage("mend it")), *entries):
            transcript.append(entry)
    return run_id


def stopped(reason: StopReason) -> Stopped:
    return Stopped(STARTED, reason, "as it is", "The last word.", Spent(turns=3))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_run_that_ended_well_is_told_so_and_how_to_give_it_more(data: Path, form: str) -> None:
    run_id = keep_run(data, stopped(StopReason.GREEN))
    done = pocketbuild(data, "agent", "--resume", run_id, "--output", form)
    assert done.returncode == 0, done.stderr
    assert "there is nothing to go on with" in done.stderr
    assert f'pocketbuild agent "…" --resume {run_id}' in done.stderr
    if form == "json":
        assert json.loads(done.stdout)["reason"] == "green"
    else:
        assert done.stdout.startswith("green: as it is")


@pytest.mark.parametrize("more", [(), ("do this, too",)])
def test_a_script_has_to_be_named_again(data: Path, more: tuple[str, ...]) -> None:
    run_id = keep_run(data, *([stopped(StopReason.GREEN)] if more else []))
    done = pocketbuild(data, "agent", *more, "--resume", run_id)
    assert done.returncode == 2
    assert "was answered by a recorded script" in done.stderr
    assert "--script" in done.stderr


def test_a_run_that_is_not_there_is_told_so(data: Path) -> None:
    done = pocketbuild(data, "agent", "--resume", "20260102-030405-0000")
    assert (done.returncode, "there is no run" in done.stderr) == (3, True)


def test_what_is_neither_begun_nor_resumed_is_wrong_usage(data: Path) -> None:
    done = pocketbuild(data, "agent", "run")
    assert (done.returncode, "--resume" in done.stderr) == (2, True)


@pytest.mark.parametrize("reason", StopReason)
def test_every_end_has_its_exit_code(reason: StopReason) -> None:
    expected = {"green": 0, "answered": 0, "interrupted": 130, "provider": 4}
    assert exit_code_of(reason) == expected.get(reason, 1)


@pytest.mark.parametrize(
    ("percent", "remaining_s", "shown"),
    [
        (None, None, ""),
        (41.6, None, "42 %"),
        (41.6, 63.0, "42 %, about 1 min 3 s left"),
        (99.0, 0.0, "99 %, about 0.0 s left"),
    ],
)
def test_how_far_a_build_is(percent: float | None, remaining_s: float | None, shown: str) -> None:
    progress = BuildAdvanced(BUILD, "running", ":a", percent, remaining_s=remaining_s)
    assert forecast(progress) == shown


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.anyio
async def test_a_build_at_work_is_drawn_with_task_percent_and_time_left() -> None:
    step = BuildAdvanced(BUILD, "running", ":app:dexDebug", 40.0, remaining_s=12.0)
    terminal, pipe = Terminal(), io.StringIO()
    for stream in (terminal, pipe):
        await Screen(is_json=False, stream=stream).show(step)
    assert terminal.getvalue() == "\r\x1b[K  running 40 %, about 12.0 s left :app:dexDebug"
    assert pipe.getvalue() == ""


def test_runs_are_listed_by_filters_and_pages(data: Path) -> None:
    run_id = keep_run(data, stopped(StopReason.GREEN))
    (data / "agents" / "20260102-030406-0000").mkdir()
    done = pocketbuild(data, "agent", "list", "--limit", "1")
    assert (done.returncode, done.stdout.split()[:2]) == (0, ["20260102-030406-0000", "interrupted"])
    assert "agent list --before 20260102-030406-0000" in done.stderr
    done = pocketbuild(data, "agent", "list", "--state", "stopped", "--workspace", str(data), "--json")
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [run_id]
    assert "green" in pocketbuild(data, "agent", "list", "--before", "20260102-030406-0000").stdout
    assert pocketbuild(data, "agent", "list", "--before", "%%%").returncode == 3
