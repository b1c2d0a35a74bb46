"""Who decides whether a call may run."""

import pytest

from agent.approval import Gate, Mode, Question, Reply, Rule, Verdict
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
    assert (await Gate(mode).refusal(WRITE, effect, "") is None) is may_run


async def test_the_first_rule_that_matches_wins_over_the_mode() -> None:
    gate = Gate(Mode.READ_ONLY, RULES)
    assert await gate.refusal(WRITE, Effect.WRITES, "") is None
    hidden = ToolCall("c", "read_file", {"path": "app/secrets/key"})
    assert "not allowed" in (await gate.refusal(hidden, Effect.READS, "") or "")


async def test_a_person_is_asked_once_for_all_or_each_time_and_may_say_why_not() -> None:
    asked: list[Question] = []
    replies = iter([Reply(False, reason="use kotlin"), Reply(True), Reply(True, for_all=True)])

    async def ask(question: Question) -> Reply:
        asked.append(question)
        return next(replies)

    gate = Gate(Mode.ASK, asker=ask)
    assert (
        await gate.refusal(WRITE, Effect.WRITES, "s") == "not run: the person refused write_file: use kotlin."
    )
    for _ in range(4):
        assert await gate.refusal(WRITE, Effect.WRITES, "s") is None
    assert asked == [Question(WRITE, Effect.WRITES, "s")] * 3


async def test_asking_without_a_person_is_a_refusal_in_words() -> None:
    refusal = await Gate(Mode.ASK).refusal(WRITE, Effect.WRITES, "")
    assert "nobody is there" in (refusal or "")
