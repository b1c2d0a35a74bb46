"""Every budget ends a run in words that name the limit with both figures."""

from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from agent.budget import Budget, Price
from agent.decide import StopReason
from agent.http import Line
from agent.runner import resume, run
from agent.scripted import Call, Conversation, Turn
from tests.fakes_provider import equipped, make_workspace

pytestmark = pytest.mark.anyio
EDIT = Call(tool="write_file", arguments={"path": "notes.txt", "content": "x"})
BUILD = Call(tool="build_gradle_project")
LOOKS = [Turn(calls=(Call(tool="list_files", arguments={"pattern": f"*{n}"}),)) for n in range(6)]
BUILDS = [Turn(calls=(BUILD,)), Turn(calls=(EDIT, BUILD)), Turn(text="Unproven.")]


@pytest.mark.parametrize(
    ("budget", "turns", "reason", "detail"),
    [
        (Budget(turns=3), LOOKS, StopReason.BUDGET, "3 of 3 turns are spent"),
        (Budget(tokens=2000), LOOKS, StopReason.BUDGET, "2100 of 2000 tokens are spent"),
        (Budget(money=0.0025), LOOKS, StopReason.BUDGET, "0.0033 of 0.0025 US dollars are spent"),
        (Budget(wall_s=20), LOOKS, StopReason.BUDGET, "of 20 s of time are spent"),
        (Budget(builds=1), BUILDS, StopReason.NOT_GREEN, "1 of 1 builds are spent"),
        (Budget(phone_s=1.5), BUILDS, StopReason.NOT_GREEN, "2 of 1.5 s of phone time are spent"),
    ],
)
async def test_a_spent_budget_is_named_and_a_larger_one_goes_on(
    budget: Budget, turns: list[Turn], reason: StopReason, detail: str, tmp_path: Path
) -> None:
    conversation = Conversation(title="budget", turns=(*turns, Turn(text="Done.")))
    workspace, seconds = make_workspace(tmp_path / "w"), count()
    async with equipped(conversation, tmp_path) as (equipment, server):
        choice = replace(equipment.line.choice, price=Price(input=1.0, output=2.0))
        async with Line(choice, None) as line:
            changed: dict[str, Any] = {"line": line, "clock": lambda: 2.0 * next(seconds)}
            equipment = replace(equipment, **changed)
            result = await run("go on", workspace, equipment, run_id="r1", budget=budget)
    assert (result.reason, server.mismatches) == (reason, [])
    assert result.detail.endswith(detail)
    async with equipped(conversation, tmp_path) as (equipment, _):
        again = await resume(equipment, budget=Budget(), say="go on")
    assert again.spent.turns > result.spent.turns
