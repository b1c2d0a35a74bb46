"""The door to the agent: start a run on an assignment, or go on with one."""

from collections.abc import Sequence
from pathlib import Path

from agent.budget import Budget
from agent.decide import StopReason
from agent.entries import Added, Began, Entry, Resumed
from agent.equipment import Equipment, RunResult, Verify
from agent.loop import Loop, now
from agent.message import UserMessage
from agent.standing import Standing

__all__ = ["Equipment", "RunResult", "Verify", "ended_well", "resume", "run"]


async def run(
    assignment: str,
    workspace: Path,
    equipment: Equipment,
    *,
    run_id: str,
    budget: Budget | None = None,
    verify: Verify = Verify.CHANGED,
) -> RunResult:
    """Work on an assignment until it is done or cannot go on; gives why in the result.

    Faults of the provider end the run with a reason, as everything else does; only faults of the
    transcript are raised, for nothing can be done without it. `workspace` is an absolute path.
    """
    choice = equipment.line.choice
    beginning = Began(
        run_id=run_id,
        at=now(),
        assignment=assignment,
        workspace=str(workspace),
        provider=choice.provider.name,
        model=choice.model,
        dialect=choice.dialect,
        budget=budget or Budget(),
        options={"verify": verify, "mode": equipment.gate.mode},
    )
    equipment.transcript.append(beginning)
    standing = Standing(beginning.budget, (choice.provider.name, choice.model))
    loop = Loop(beginning, standing, equipment)
    loop.record(Added(UserMessage(assignment)))
    return await loop.run(is_resumed=False)


async def resume(equipment: Equipment, *, budget: Budget | None = None, say: str | None = None) -> RunResult:
    """Go on with the run of the transcript, wherever it was left.

    `say` adds a word of the person to the conversation, also to a run that had ended. Effects that had
    happened are found and not repeated. Signatures of another model's messages are dropped.
    """
    entries = equipment.transcript.take_entries()
    standing = Standing.replay(entries)
    beginning = entries[0]
    assert isinstance(beginning, Began)
    loop = Loop(beginning, standing, equipment)
    if say is None and (result := ended_well(entries)) is not None:
        return result
    if standing.stopped is not None:
        loop.begin_patience_anew()
    choice = equipment.line.choice
    loop.record(Resumed(now(), budget or standing.budget, choice.provider.name, choice.model))
    if not standing.items:
        loop.record(Added(UserMessage(beginning.assignment)))
    if say is not None:
        loop.record(Added(UserMessage(say)))
    return await loop.run(is_resumed=True)


def ended_well(entries: Sequence[Entry]) -> RunResult | None:
    """Give what came of a run that has done what it was asked, None for one that can go on by itself."""
    first, stopped = entries[0], Standing.replay(entries).stopped
    if stopped is None or not StopReason(stopped.reason).is_success or not isinstance(first, Began):
        return None
    return RunResult(first.run_id, StopReason(stopped.reason), stopped.detail, stopped.text, stopped.spent)
