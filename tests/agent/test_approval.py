"""Who decides whether a call may run."""

import anyio
import pytest

from agent.approval import Gate, Mode, Question, Reply, Rule, Verdict, named_by
from agent.message import ToolCall
from agent.tools.tool import Effect

pytestmark = pytest.mark.anyio
WRITE = ToolCall("c1", "write_file", {"path": "app/src/Main.kt"})
RULES = (
    Rule(Verdict.DENY, "*", {"path": "*/secrets/*"}),
    Rule(Verdict.ALLOW, "write_file", {"path": "app/*"}),
    Rule(Verdict.ASK, "git_*"),
)


@pytest.mark.parametrize(
    ("mode", "effect", "may_run"),
    [
        (Mode.YES, Effect.REACHES_OUT, True),
        (Mode.READ_ONLY, Effect.READS, True),
        (Mode.READ_ONLY, Effect.BUILDS, True),
        (Mode.READ_ONLY, Effect.WRITES, False),
        (Mode.READ_ONLY, Effect.REACHES_OUT, False),
        (Mode.ASK, Effect.READS, True),
        (Mode.ASK, Effect.WRITES, False),
    ],
)
async def test_a_mode_decides_where_no_rule_does(mode: Mode, effect: Effect, may_run: bool) -> None:
    assert (await Gate(mode).refusal(WRITE, effect, "", dict) is None) is may_run


async def test_the_first_rule_that_matches_wins_over_the_mode() -> None:
    gate = Gate(Mode.READ_ONLY, RULES)
    assert await gate.refusal(WRITE, Effect.WRITES, "", lambda: named_by(WRITE.arguments)) is None
    hidden = ToolCall("c", "read_file", {"path": "app/secrets/key"})
    assert "not allowed" in (
        await gate.refusal(hidden, Effect.READS, "", lambda: named_by(hidden.arguments)) or ""
    )


async def test_a_person_is_asked_once_for_all_or_each_time_and_may_say_why_not() -> None:
    asked: list[Question] = []
    replies = iter([Reply(False, reason="use kotlin"), Reply(True), Reply(True, for_all=True)])

    async def ask(question: Question) -> Reply:
        asked.append(question)
        return next(replies)

    gate = Gate(Mode.ASK, asker=ask)
    refusal = await gate.refusal(WRITE, Effect.WRITES, "s", dict)
    assert refusal == "not run: the person refused write_file: use kotlin."
    for _ in range(4):
        assert await gate.refusal(WRITE, Effect.WRITES, "s", dict) is None
    assert asked == [Question(WRITE, Effect.WRITES, "s")] * 3


async def test_asking_without_a_person_is_a_refusal_in_words() -> None:
    refusal = await Gate(Mode.ASK).refusal(WRITE, Effect.WRITES, "", dict)
    assert "nobody is there" in (refusal or "")


@pytest.mark.parametrize(
    ("verdict", "named", "matches"),
    [
        (Verdict.DENY, ("app/A.kt", "secrets/B.kt"), True),
        (Verdict.ASK, ("app/A.kt", "secrets/B.kt"), True),
        (Verdict.ALLOW, ("app/A.kt", "secrets/B.kt"), False),
        (Verdict.ALLOW, ("secrets/A.kt", "secrets/B.kt"), True),
        (Verdict.DENY, ("app/A.kt",), False),
    ],
)
def test_of_several_files_one_is_enough_to_deny_and_all_are_needed_to_allow(
    verdict: Verdict, named: tuple[str, ...], matches: bool
) -> None:
    assert Rule(verdict, "*", {"path": "secrets/*"}).matches("apply_patch", {"path": named}) is matches


def test_items_of_lists_are_matched_each_and_all_else_as_json() -> None:
    named = named_by({"tasks": ["clean", ":app:publish"], "clean": True, "n": None}, {"path": ("a", "b")})
    assert named == {
        "tasks": ("clean", ":app:publish"),
        "clean": ("true",),
        "n": ("null",),
        "path": ("a", "b"),
    }
    assert Rule(Verdict.DENY, "build_*", {"tasks": "*publish*"}).matches("build_gradle_project", named)


async def test_calls_that_run_together_ask_one_after_the_other() -> None:
    open_questions, most = 0, 0

    async def ask(question: Question) -> Reply:
        nonlocal open_questions, most
        open_questions += 1
        most = max(most, open_questions)
        await anyio.lowlevel.checkpoint()
        open_questions -= 1
        return Reply(True)

    gate = Gate(Mode.YES, (Rule(Verdict.ASK, "read_file"),), ask)
    async with anyio.create_task_group() as tasks:
        for number in range(3):
            call = ToolCall(f"c{number}", "read_file", {"path": "a"})
            tasks.start_soon(gate.refusal, call, Effect.READS, "", dict)
    assert most == 1
