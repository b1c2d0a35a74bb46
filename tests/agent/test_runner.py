"""The loop over real HTTP: from an assignment to a green build, or to an honest reason why not."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.approval import Gate, Mode
from agent.budget import Budget
from agent.decide import StopReason
from agent.errors import ContextOverflow
from agent.message import Dialect, JsonObject, UserMessage
from agent.progress import (
    BuildAdvanced,
    CallForming,
    Compacted,
    RetryScheduled,
    RunStarted,
    TextStreamed,
    ToolEnded,
)
from agent.redact import Redactor
from agent.runner import Equipment, RunResult, Verify, resume, run
from agent.scripted import Call, Conversation, Expected, Failure, ScriptedProvider, Turn
from agent.scripted.conversation import ExpectedResult, TokenCounts
from agent.standing import Standing
from agent.transcript import Transcript, read_transcript
from tests.fakes_provider import (
    FAULT,
    FolderBuilder,
    MemoryLine,
    Watcher,
    equipment_for,
    equipped,
    make_workspace,
)

pytestmark = pytest.mark.anyio
MAIN = "app/src/main/java/Main.java"
BUILD = Call(tool="build_gradle_project", arguments={"variant": "debug"})
READ = Call(tool="read_file", arguments={"path": MAIN})
FIX = Call(tool="edit_file", arguments={"path": MAIN, "old": FAULT, "new": "42"})


def told(tool: str, *contains: str) -> Expected:
    return Expected(results=(ExpectedResult(tool=tool, contains=contains),))


REPAIR = Conversation(
    title="repair",
    turns=(
        Turn(expects=Expected(user_contains=("make it build",)), text="I build first.", calls=(BUILD,)),
        Turn(
            expects=told("build_gradle_project", "FAILED", "Main.java:3"), reasoning="A word.", calls=(READ,)
        ),
        Turn(expects=told("read_file", f"    3          int answer = {FAULT};"), calls=(FIX,)),
        Turn(expects=told("edit_file", "replaced 1 place"), calls=(BUILD,)),
        Turn(expects=told("build_gradle_project", "GREEN", "2 of 30 builds"), text="It was a broken word."),
    ),
)


@pytest.mark.parametrize("dialect", Dialect)
async def test_a_broken_project_is_repaired_in_every_dialect(dialect: Dialect, tmp_path: Path) -> None:
    workspace, watcher = make_workspace(tmp_path / "w"), Watcher()
    async with equipped(REPAIR, tmp_path, dialect=dialect, watcher=watcher) as (equipment, server):
        result = await run("make it build", workspace, equipment, run_id="r1")
    assert server.mismatches == []
    assert (result.reason, result.text) == (StopReason.GREEN, "It was a broken word.")
    assert (result.spent.turns, result.spent.builds, result.spent.input_tokens) == (5, 2, 5000)
    assert "int answer = 42;" in (workspace / MAIN).read_text()
    assert [p.is_scripted for p in watcher.seen if isinstance(p, RunStarted)] == [True]
    assert watcher.of(TextStreamed)
    assert watcher.of(CallForming)
    assert watcher.of(BuildAdvanced)


def script(*turns: Turn) -> Conversation:
    return Conversation(title="test", turns=turns)


ANSWER = Turn(text="Done.")


async def outcome(
    conversation: Conversation, folder: Path, **options: Any
) -> tuple[RunResult, Path, Watcher]:
    workspace, watcher = make_workspace(folder / "w", broken=options.pop("broken", True)), Watcher()
    async with equipped(conversation, folder, watcher=watcher) as (equipment, server):
        equipment = replace(equipment, **options.pop("equipment", {}))
        result = await run("make it build", workspace, equipment, run_id="r1", **options)
    if result.reason is not StopReason.PROVIDER:
        assert server.mismatches == []
    return result, workspace, watcher


async def test_an_answer_without_changes_needs_no_build(tmp_path: Path) -> None:
    result, _, _ = await outcome(script(Turn(calls=(READ,)), ANSWER), tmp_path)
    assert (result.reason, result.spent.builds) == (StopReason.ANSWERED, 0)


async def test_an_answer_after_a_change_is_checked_by_a_build_of_that_very_state(tmp_path: Path) -> None:
    result, _, _ = await outcome(script(Turn(calls=(FIX,)), ANSWER), tmp_path)
    assert (result.reason, result.spent.builds) == (StopReason.GREEN, 1)


@pytest.mark.parametrize(
    ("arguments", "builds"),
    [
        ({"tasks": [":app:compileDebugJavaWithJavac"]}, 2),
        ({"tasks": ["help"]}, 2),
        ({"args": ["--dry-run"]}, 2),
        ({"tasks": ["clean", ":app:assembleRelease"]}, 1),
        ({"tasks": ["build"]}, 1),
    ],
)
async def test_a_build_that_makes_no_product_is_no_proof_of_an_answer(
    arguments: JsonObject, builds: int, tmp_path: Path
) -> None:
    build = Call(tool=BUILD.tool, arguments=arguments)
    result, _, _ = await outcome(script(Turn(calls=(FIX, build)), ANSWER), tmp_path)
    assert (result.reason, result.spent.builds) == (StopReason.GREEN, builds)


async def test_an_answer_that_leaves_a_broken_state_is_not_accepted(tmp_path: Path) -> None:
    edit = Call(tool="edit_file", arguments={"path": MAIN, "old": FAULT, "new": FAULT + " + 1"})
    mend = Call(tool="edit_file", arguments={"path": MAIN, "old": FAULT + " + 1", "new": "1"})
    result, _, _ = await outcome(
        script(
            Turn(calls=(edit,)),
            ANSWER,
            Turn(expects=Expected(user_contains=("does not build", "Main.java:3")), calls=(mend,)),
            ANSWER,
        ),
        tmp_path,
    )
    assert (result.reason, result.spent.builds) == (StopReason.GREEN, 2)


async def test_a_model_that_insists_is_told_three_times_and_then_the_run_says_so(tmp_path: Path) -> None:
    edit = Call(tool="write_file", arguments={"path": "b.txt", "content": "b"})
    result, _, _ = await outcome(script(Turn(calls=(edit,)), *[ANSWER] * 4), tmp_path)
    assert result.reason is StopReason.NOT_GREEN
    assert result.spent.builds == 1


async def test_verify_can_be_asked_for_always_or_never(tmp_path: Path) -> None:
    result, _, _ = await outcome(script(ANSWER), tmp_path / "a", broken=False, verify=Verify.ALWAYS)
    assert (result.reason, result.spent.builds) == (StopReason.GREEN, 1)
    result, _, _ = await outcome(script(Turn(calls=(FIX,)), ANSWER), tmp_path / "b", verify=Verify.NEVER)
    assert (result.reason, result.spent.builds) == (StopReason.ANSWERED, 0)


async def test_budgets_end_the_run_with_the_limit_that_was_reached(tmp_path: Path) -> None:
    turns = [Turn(calls=(Call(tool="list_files", arguments={"pattern": f"*{n}"}),)) for n in range(5)]
    result, _, _ = await outcome(script(*turns), tmp_path / "a", budget=Budget(turns=3))
    assert (result.reason, result.detail) == (StopReason.BUDGET, "3 of 3 turns are spent")
    result, _, _ = await outcome(script(*turns), tmp_path / "b", budget=Budget(tokens=2000))
    assert (result.reason, result.spent.turns) == (StopReason.BUDGET, 2)


async def test_a_spent_budget_of_builds_is_told_to_the_model_which_may_still_answer(tmp_path: Path) -> None:
    result, _, _ = await outcome(
        script(
            Turn(calls=(BUILD,)),
            Turn(expects=told("build_gradle_project", "1 of 1 builds"), calls=(FIX,)),
            Turn(calls=(BUILD,)),
            Turn(
                expects=told("build_gradle_project", "not built: 1 of 1 builds are spent"), text="Unproven."
            ),
        ),
        tmp_path,
        budget=Budget(builds=1),
    )
    assert (result.reason, result.text) == (StopReason.NOT_GREEN, "Unproven.")


async def test_the_same_state_is_never_built_twice(tmp_path: Path) -> None:
    result, _, _ = await outcome(
        script(
            Turn(calls=(BUILD,)),
            Turn(calls=(BUILD,)),
            Turn(expects=told("build_gradle_project", "was built before"), calls=(READ,)),
            ANSWER,
        ),
        tmp_path,
    )
    assert result.spent.builds == 1


async def test_a_model_that_only_repeats_itself_is_stopped(tmp_path: Path) -> None:
    result, _, _ = await outcome(script(*[Turn(calls=(READ,))] * 12), tmp_path)
    assert result.reason is StopReason.NO_PROGRESS
    assert result.spent.turns == 7


async def test_builds_that_fail_for_the_same_cause_stop_the_run(tmp_path: Path) -> None:
    turns: list[Turn] = []
    for number in range(6):
        write = Call(tool="write_file", arguments={"path": "notes.txt", "content": f"try {number}"})
        turns += [Turn(calls=(write,)), Turn(calls=(BUILD,))]
    result, _, _ = await outcome(script(*turns), tmp_path)
    assert (result.reason, result.detail) == (
        StopReason.NO_PROGRESS,
        "5 builds in a row failed for the same causes",
    )


async def test_a_run_that_got_nowhere_is_resumed_with_new_patience(tmp_path: Path) -> None:
    turns: list[Turn] = []
    for number in range(5):
        write = Call(tool="write_file", arguments={"path": "notes.txt", "content": f"try {number}"})
        turns.append(Turn(calls=(write, BUILD)))
    conversation = script(*turns, Turn(calls=(FIX, BUILD)), Turn(text="Mended."))
    workspace = make_workspace(tmp_path / "w")
    async with equipped(conversation, tmp_path) as (equipment, _):
        stuck = await run("make it build", workspace, equipment, run_id="r1")
    assert (stuck.reason, stuck.spent.builds) == (StopReason.NO_PROGRESS, 5)
    async with equipped(conversation, tmp_path) as (equipment, _):
        result = await resume(equipment)
    assert (result.reason, result.text, result.spent.builds) == (StopReason.GREEN, "Mended.", 6)


async def test_a_file_that_no_longer_parses_is_refused_before_the_phone(tmp_path: Path) -> None:
    cut = Call(tool="edit_file", arguments={"path": MAIN, "old": FAULT + ";", "new": "("})
    sure = Call(tool="build_gradle_project", arguments={"skip_syntax_check": True})
    result, _, _ = await outcome(
        script(
            Turn(calls=(cut,)),
            Turn(calls=(BUILD,)),
            Turn(expects=told("build_gradle_project", "not built", "Main.java:4"), calls=(sure,)),
            Turn(expects=told("build_gradle_project", "GREEN"), text="It was right."),
        ),
        tmp_path,
    )
    assert (result.reason, result.spent.builds) == (StopReason.GREEN, 1)


async def test_calls_that_only_look_run_together_and_results_keep_their_order(tmp_path: Path) -> None:
    listing = Call(tool="list_files")
    result, _, watcher = await outcome(
        script(
            Turn(calls=(READ, listing, FIX, READ)),
            Turn(
                expects=Expected(
                    results=(
                        ExpectedResult(tool="read_file", contains=(FAULT,)),
                        ExpectedResult(tool="list_files", contains=("build.gradle",)),
                        ExpectedResult(tool="edit_file"),
                        ExpectedResult(tool="read_file", contains=("= 42",)),
                    )
                ),
                text="Done.",
            ),
        ),
        tmp_path,
    )
    assert result.reason is StopReason.GREEN
    assert len(watcher.of(ToolEnded)) == 4


@pytest.mark.parametrize(
    "failure", [Failure(status=429, retry_after_s=0), Failure(status=529, times=3), Failure(status=500)]
)
async def test_a_provider_that_is_busy_is_asked_again(failure: Failure, tmp_path: Path) -> None:
    result, _, watcher = await outcome(script(Turn(text="Done.", failures=(failure,))), tmp_path)
    assert result.reason is StopReason.ANSWERED
    assert len(watcher.of(RetryScheduled)) == failure.times


async def test_a_connection_that_is_cut_in_a_response_is_asked_again(tmp_path: Path) -> None:
    result, _, watcher = await outcome(
        script(Turn(text="A long answer.", cut_after_bytes=300, piece_bytes=50)), tmp_path
    )
    assert (result.reason, result.text) == (StopReason.ANSWERED, "A long answer.")
    assert len(watcher.of(RetryScheduled)) == 1


async def test_a_plan_that_is_used_up_ends_the_run_and_can_be_resumed(tmp_path: Path) -> None:
    used_up = Failure(status=402, body={"error": {"code": "insufficient_quota", "message": "no money"}})
    conversation = script(Turn(calls=(FIX,)), Turn(text="Done.", failures=(used_up,)))
    workspace = make_workspace(tmp_path / "w")
    async with equipped(conversation, tmp_path) as (equipment, _):
        result = await run("make it build", workspace, equipment, run_id="r1")
    assert result.reason is StopReason.PROVIDER
    assert "no money" in result.detail
    async with equipped(script(Turn(), ANSWER), tmp_path) as (equipment, _):
        result = await resume(equipment)
    assert (result.reason, result.spent.turns) == (StopReason.GREEN, 2)


async def test_a_script_that_does_not_fit_is_said_so(tmp_path: Path) -> None:
    result, _, _ = await outcome(script(Turn(expects=Expected(user_contains=("something else",)))), tmp_path)
    assert result.reason is StopReason.PROVIDER
    assert (
        "scripted provider: turn 1 does not fit: expected the user to say 'something else'" in result.detail
    )


async def test_a_run_is_put_down_between_steps_and_taken_up_again(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path / "w")
    steps = iter([False, False, True])
    async with ScriptedProvider(REPAIR) as server:
        async with equipment_for(server, tmp_path) as equipment:
            equipment = replace(equipment, is_interrupted=lambda: next(steps))
            put_down = await run("make it build", workspace, equipment, run_id="r1")
        assert (put_down.reason, put_down.spent.turns) == (StopReason.INTERRUPTED, 2)
        async with equipment_for(server, tmp_path) as equipment:
            result = await resume(equipment)
    assert (result.reason, result.spent.turns, server.mismatches) == (StopReason.GREEN, 5, [])


async def test_a_finished_run_is_not_run_again_unless_there_is_something_to_say(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path / "w", broken=False)
    conversation = script(Turn(text="One."), Turn(expects=Expected(user_contains=("and now?",)), text="Two."))
    async with ScriptedProvider(conversation) as server:
        async with equipment_for(server, tmp_path) as equipment:
            await run("look", workspace, equipment, run_id="r1")
        for say, text in ((None, "One."), ("and now?", "Two.")):
            async with equipment_for(server, tmp_path) as equipment:
                result = await resume(equipment, say=say)
            assert result.text == text
    assert len(server.requests) == 2


async def test_read_only_mode_looks_and_builds_but_changes_nothing(tmp_path: Path) -> None:
    result, workspace, _ = await outcome(
        script(Turn(calls=(FIX, BUILD)), Turn(text="I may not.")),
        tmp_path,
        equipment={"gate": Gate(Mode.READ_ONLY)},
    )
    assert result.reason is StopReason.ANSWERED
    assert FAULT in (workspace / MAIN).read_text()


async def test_the_instructions_of_the_workspace_reach_the_model(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path / "w")
    (workspace / "AGENTS.md").write_text("Use tabs. $HOME is not a place.")
    async with equipped(script(ANSWER), tmp_path) as (equipment, server):
        await run("look", workspace, equipment, run_id="r1")
    assert "Use tabs. $HOME is not a place." in str(server.requests[0])


async def in_memory(line: MemoryLine, folder: Path, budget: Budget) -> tuple[RunResult, Watcher]:
    workspace, watcher = make_workspace(folder / "w", broken=False), Watcher()
    (workspace / MAIN).write_text("line of an ordinary file, long enough to fill a context\n" * 60)
    with Transcript(folder / "run", Redactor()) as transcript:
        async with line:
            equipment = Equipment(line, FolderBuilder(folder / "b"), transcript, watcher)
            return await run("read it all", workspace, equipment, run_id="r1", budget=budget), watcher


def reads(last: int) -> Callable[[int, JsonObject], Turn]:
    """Read another part in each turn until the last, which answers; counts tokens by the body's size."""

    def answer(asked: int, body: JsonObject) -> Turn:
        usage = TokenCounts(input=len(str(body)) // 4)
        if asked == last:
            return Turn(text="Read.", usage=usage)
        return Turn(
            calls=(Call(tool="read_file", arguments={"path": MAIN, "first_line": asked}),), usage=usage
        )

    return answer


async def test_a_conversation_that_fills_the_context_is_folded_and_goes_on(tmp_path: Path) -> None:
    sizes: list[int] = []

    def answer(asked: int, body: JsonObject) -> Turn:
        sizes.append(len(str(body)) // 4)
        return reads(40)(asked, body)

    result, watcher = await in_memory(MemoryLine(answer, context_tokens=12_000), tmp_path, Budget(turns=50))
    assert (result.reason, result.text) == (StopReason.ANSWERED, "Read.")
    assert watcher.of(Compacted)
    assert max(sizes) < 12_000
    items = Standing.replay(read_transcript(tmp_path / "run")).items
    assert isinstance(items[1], UserMessage)
    assert "folded to one line each" in items[1].text


async def test_a_provider_that_finds_the_conversation_too_long_gets_it_folded(tmp_path: Path) -> None:
    refused = False

    def answer(asked: int, body: JsonObject) -> Turn:
        nonlocal refused
        if asked == 9 and not refused:
            refused = True
            raise ContextOverflow("prompt is too long", status=400)
        return reads(12)(asked, body)

    result, watcher = await in_memory(MemoryLine(answer), tmp_path, Budget())
    assert result.reason is StopReason.ANSWERED
    assert len(watcher.of(Compacted)) == 1


async def test_a_file_that_is_not_in_utf8_can_be_shown_to_the_model(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path / "w", broken=False)
    (workspace / MAIN).write_bytes(b"// caf\xe9\nclass Main {}\n")
    turns = (Turn(calls=(READ,)), Turn(expects=told("read_file", "// caf\ufffd"), text="Seen."))
    async with equipped(script(*turns), tmp_path) as (equipment, server):
        result = await run("look", workspace, equipment, run_id="r1")
    assert (result.reason, result.text, server.mismatches) == (StopReason.ANSWERED, "Seen.", [])
