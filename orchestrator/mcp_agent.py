"""Agent runs as MCP tools: begun, waited for, answered by a person, gone on with, put down.

A run belongs to the service, never to the call that waits for it. What it asks is put to the person by
elicitation where the client can: in mid-call, or, since protocol 2026-07-28, as an answer that wants input.
Elsewhere the question stays open and the answer of the tool says how it is answered.
"""

import time
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal

from mcp.server.mcpserver import Context
from mcp_types import InputRequiredResult

from orchestrator.client import JsonObject
from orchestrator.mcp_answers import AgentRunStatus
from orchestrator.mcp_calls import DEFAULT_WAIT_S, MAX_WAIT_S, STEP_S, Door, OpenDoor, TellingFaults
from orchestrator.mcp_elicit import Elicitor, Way, agent_status

Mode = Literal["yes", "ask", "read_only"]
AgentAnswer = AgentRunStatus | InputRequiredResult


class AgentDoor:
    """The tools; one instance serves all callers."""

    def __init__(self, open_door: OpenDoor) -> None:
        self._open_door = open_door

    async def run_agent(
        self,
        assignment: str,
        workspace: str,
        context: Context[Any, Any],
        mode: Mode = "ask",
        provider: str | None = None,
        model: str | None = None,
        phone: str | None = None,
        turns: int | None = None,
        tokens: int | None = None,
        money: float | None = None,
        builds: int | None = None,
        wait_s: float = DEFAULT_WAIT_S,
    ) -> AgentAnswer:
        """Let an agent work on a project until its build is green; gives the outcome, or an id to wait with.

        Takes minutes up to an hour, and costs the money of a model's tokens and the time of a phone; `turns`,
        `tokens`, `money` (US dollars) and `builds` limit it. It changes files of `workspace`, an absolute
        path inside the service's roots: with mode `ask` a person is asked before each change, `yes` asks
        nothing, `read_only` changes nothing. Waits up to `wait_s` seconds; the run goes on until it ends.
        """
        wish: JsonObject = {"assignment": assignment, "path": workspace, "mode": mode}
        further: JsonObject = {
            "provider": provider,
            "model": model,
            "phone": phone,
            "turns": turns,
            "tokens": tokens,
        }
        further |= {"money": money, "builds": builds}
        wish |= {name: value for name, value in further.items() if value is not None}
        async with self._door(context) as door:
            if context.request_state is not None:
                return await _watched(door, context, None, wait_s)
            begun = await door.client.begin_run(wish)
            return await _watched(door, context, begun["id"], wait_s)

    async def get_agent_run(self, run_id: str, context: Context[Any, Any]) -> AgentRunStatus:
        """Say how a run of the agent is now and what it asks; costs nothing and returns at once."""
        async with self._door(context) as door:
            return agent_status(await door.client.agent_run(run_id))

    async def wait_agent_run(
        self, run_id: str, context: Context[Any, Any], wait_s: float = DEFAULT_WAIT_S
    ) -> AgentAnswer:
        """Wait until a run of the agent ends or asks, up to `wait_s` seconds; costs nothing but time.

        What it asks is put to the person where your client can.
        """
        async with self._door(context) as door:
            return await _watched(door, context, run_id, wait_s)

    async def answer_approval(
        self,
        run_id: str,
        question_id: str,
        is_allowed: bool,
        context: Context[Any, Any],
        reason: str = "",
        for_all: bool = False,
    ) -> AgentRunStatus:
        """Answer what a run of the agent asks; only as the person told you, never on your own.

        `reason` is read by the agent; `for_all` allows all later calls of that tool. Free, returns at once.
        """
        async with self._door(context) as door:
            body = {
                "is_allowed": is_allowed,
                "for_all": for_all,
                "reason": reason,
                "question_id": question_id,
            }
            await door.client.tell_run(run_id, "answer", body)
            return agent_status(await door.client.agent_run(run_id))

    async def resume_agent_run(
        self,
        run_id: str,
        context: Context[Any, Any],
        say: str | None = None,
        wait_s: float = DEFAULT_WAIT_S,
    ) -> AgentAnswer:
        """Go on with a run that stopped or was put down, perhaps with a further word; nothing is done twice.

        Costs time and money as run_agent does, within what is left of the run's limits.
        """
        async with self._door(context) as door:
            if context.request_state is None:
                await door.client.tell_run(run_id, "resume", {"say": say})
            return await _watched(door, context, run_id, wait_s)

    async def cancel_agent_run(self, run_id: str, context: Context[Any, Any]) -> AgentRunStatus:
        """Put a run of the agent down after its step at work; it can be resumed. Free; returns soon."""
        async with self._door(context) as door:
            await door.client.tell_run(run_id, "cancel", {})
            return agent_status(await door.client.agent_run(run_id, wait_s=STEP_S))

    def _door(self, context: Context[Any, Any]) -> AbstractAsyncContextManager[Door]:
        return TellingFaults(self._open_door(context))


async def _watched(door: Door, context: Context[Any, Any], run_id: str | None, wait_s: float) -> AgentAnswer:
    """Wait for a run and put what it asks to the person; the client's state knows the run where one is."""
    elicitor = Elicitor(door, context)
    note = await elicitor.take_answer()
    run_id = elicitor.run_id or run_id
    assert run_id is not None
    began_s = time.monotonic()
    deadline_s = began_s + max(0.0, min(wait_s, MAX_WAIT_S))
    steps = 0
    while True:
        left_s = deadline_s - time.monotonic()
        run = await door.client.agent_run(run_id, wait_s=max(0.0, min(STEP_S, left_s)))
        if note is not None or left_s <= 0 or run["state"] not in ("running", "asking"):
            return agent_status(run, note)
        if run["state"] == "asking":
            match elicitor.way:
                case Way.NONE:
                    return agent_status(run)
                case Way.ROUNDS:
                    return elicitor.wanting_input(run)
                case Way.MID_CALL:
                    note = await elicitor.ask(run, left_s)
                    continue
        steps += 1
        spent_s = time.monotonic() - began_s
        await context.report_progress(steps, message=f"{run['doing'] or run['state']}, {spent_s:.0f} s")
