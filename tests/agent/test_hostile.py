"""Flaws that providers have shown, through the whole loop in each dialect.

Each is either rebuilt into exactly the calls that were meant, or the model is told and the run goes on.
Never silent, never a wrong call.
"""

from pathlib import Path

import pytest

from agent.decide import StopReason
from agent.entries import Added
from agent.message import Dialect, ToolResult, UserMessage
from agent.progress import RetryScheduled, StreamDiagnosed, ToolStarted
from agent.runner import run
from agent.scripted import Call, Conversation, Expected, Turn
from agent.scripted.conversation import ExpectedResult
from agent.scripted.hostile import Flavor
from agent.transcript import read_transcript
from tests.fakes_provider import FAULT, Watcher, equipped, make_workspace

pytestmark = pytest.mark.anyio
MEANT = (
    Call(tool="read_file", arguments={"path": "app/src/main/java/Main.java"}),
    Call(tool="search_text", arguments={"pattern": "no plugins", "glob": "*.gradle"}),
)
RESULTS = Expected(
    results=(
        ExpectedResult(tool="read_file", contains=(FAULT,)),
        ExpectedResult(tool="search_text", contains=("build.gradle:1: // no plugins",)),
    )
)
SOUND = Turn(calls=MEANT)
REBUILT = {
    Flavor.NO_INDEX,
    Flavor.ONE_INDEX_TWO_IDS,
    Flavor.HEAD_REPEATED,
    Flavor.IDS_EMPTY,
    Flavor.INDEX_FROM_ONE,
    Flavor.BROKEN_LINE,
}
TOLD = {Flavor.CALLS_ANNOUNCED_NONE_SENT, Flavor.NO_NAME, Flavor.ARGUMENTS_CUT}


def hostile(flavor: Flavor, times: int = 1_000_000) -> Turn:
    return Turn(text="I look.", calls=MEANT, hostile=flavor, hostile_times=times)


async def go(turns: list[Turn], dialect: Dialect, folder: Path) -> tuple[Watcher, list[str]]:
    """Run the script to its end; give what was seen and what the model was told besides sound results."""
    watcher, conversation = Watcher(), Conversation(title="hostile", turns=tuple(turns))
    workspace = make_workspace(folder / "w")
    async with equipped(conversation, folder, dialect=dialect, watcher=watcher) as (equipment, server):
        result = await run("look at it", workspace, equipment, run_id="r1")
    assert server.mismatches == []
    assert (result.reason, result.text) == (StopReason.ANSWERED, "Seen.")
    items = [entry.item for entry in read_transcript(folder / "run") if isinstance(entry, Added)]
    told = [item.content for item in items if isinstance(item, ToolResult) and item.is_error]
    return watcher, told + [item.text for item in items[1:] if isinstance(item, UserMessage)]


def ran(watcher: Watcher) -> list[tuple[str, object]]:
    return [(p.call.name, p.call.arguments) for p in watcher.seen if isinstance(p, ToolStarted)]


MEANT_TO_RUN = [(call.tool, call.arguments) for call in MEANT]


@pytest.mark.parametrize("dialect", Dialect)
@pytest.mark.parametrize("flavor", sorted(REBUILT))
async def test_a_flaw_that_leaves_one_reading_is_rebuilt(
    flavor: Flavor, dialect: Dialect, tmp_path: Path
) -> None:
    watcher, told = await go([hostile(flavor), Turn(expects=RESULTS, text="Seen.")], dialect, tmp_path)
    assert ran(watcher) == MEANT_TO_RUN
    assert told == []


@pytest.mark.parametrize("dialect", Dialect)
@pytest.mark.parametrize("flavor", sorted(TOLD))
async def test_a_flaw_that_lost_something_is_told_to_the_model(
    flavor: Flavor, dialect: Dialect, tmp_path: Path
) -> None:
    turns = [hostile(flavor), SOUND, Turn(expects=RESULTS, text="Seen.")]
    watcher, told = await go(turns, dialect, tmp_path)
    assert ran(watcher) == MEANT_TO_RUN
    assert told
    assert watcher.of(StreamDiagnosed) or flavor is Flavor.ARGUMENTS_CUT


@pytest.mark.parametrize("dialect", Dialect)
async def test_a_response_that_breaks_off_once_is_asked_for_again(dialect: Dialect, tmp_path: Path) -> None:
    turns = [hostile(Flavor.NO_FINISH, times=1), Turn(expects=RESULTS, text="Seen.")]
    watcher, told = await go(turns, dialect, tmp_path)
    assert (ran(watcher), told) == (MEANT_TO_RUN, [])
    assert len(watcher.of(RetryScheduled)) == 1


@pytest.mark.parametrize("dialect", Dialect)
async def test_a_response_that_always_breaks_off_is_told_and_nothing_of_it_runs(
    dialect: Dialect, tmp_path: Path
) -> None:
    turns = [hostile(Flavor.NO_FINISH), SOUND, Turn(expects=RESULTS, text="Seen.")]
    watcher, told = await go(turns, dialect, tmp_path)
    assert ran(watcher) == MEANT_TO_RUN
    assert len(told) == 2
    assert "connection ended before this response did" in told[0]


async def test_every_flavor_is_tried() -> None:
    assert REBUILT | TOLD | {Flavor.NO_FINISH} == set(Flavor)
