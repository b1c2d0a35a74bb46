"""Puts what an agent's run asks to the person at an MCP client, and brings the answer back.

Elicitation as the protocol knows it: up to 2025-11-25 `elicitation/create` is a request of the server in
mid-call; since 2026-07-28 a call is answered with the question, and the client calls again with the answer.
Accept holds a decision, decline refuses the call, and cancel leaves the question open.
"""

import json
from enum import Enum, auto
from typing import Any, Literal

import anyio
from mcp import MCPError
from mcp.server.elicitation import render_elicitation_schema
from mcp.server.mcpserver import Context
from mcp_types import ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequiredResult
from pydantic import BaseModel, Field, ValidationError

from orchestrator.client import JsonObject, Refused
from orchestrator.errors import ServiceFault
from orchestrator.mcp_answers import AgentQuestion, AgentRunStatus
from orchestrator.mcp_calls import STEP_S, Door

MAX_ARGUMENT_CHARS = 3_000
MAX_ROUNDS = 8
"""Common clients answer a call that wants input at most ten times."""
_KEY = "approval"
_ROUNDS_SINCE = "2026-07-28"


class Approval(BaseModel):
    """May the call run?"""

    decision: Literal["allow", "allow_all", "deny"] = Field(
        description="allow this call, allow all later calls of this tool, or deny it"
    )
    reason: str = Field(default="", max_length=2000, description="What the agent should know; may be empty.")


class Way(Enum):
    """How a person can be asked through this client."""

    NONE = auto()
    MID_CALL = auto()
    ROUNDS = auto()


class Elicitor:
    """Asks for one call of a tool; `run_id` is known from a call that wanted input before."""

    def __init__(self, door: Door, context: Context[Any, Any]) -> None:
        self._door = door
        self._context = context
        state: JsonObject = {} if context.request_state is None else json.loads(context.request_state)
        self.run_id: str | None = state.get("run_id")
        self._question_id: str | None = state.get("question_id")
        self._rounds: int = state.get("rounds", 0)

    @property
    def way(self) -> Way:
        """How the person can be asked; a client asks only for what it declared."""
        can = self._context.client_capabilities
        form = None if can is None or can.elicitation is None else can.elicitation
        if form is None or (form.form is None and form.url is not None):
            return Way.NONE
        if self._context.session.can_send_request:
            return Way.MID_CALL
        is_new = (self._context.protocol_version or "") >= _ROUNDS_SINCE
        return Way.ROUNDS if is_new and self._rounds < MAX_ROUNDS else Way.NONE

    def wanting_input(self, run: JsonObject) -> InputRequiredResult:
        """Give the answer that makes the client ask and call again; the SDK seals the state."""
        state = {"run_id": run["id"], "question_id": run["question"]["id"], "rounds": self._rounds + 1}
        form = ElicitRequestFormParams(
            message=_message(run), requested_schema=render_elicitation_schema(Approval)
        )
        return InputRequiredResult(
            input_requests={_KEY: ElicitRequest(params=form)}, request_state=json.dumps(state)
        )

    async def take_answer(self) -> str | None:
        """Bring the answer to a round before; gives why its question stays open, None where nothing does."""
        answer = (self._context.input_responses or {}).get(_KEY)
        if self.run_id is None or self._question_id is None or not isinstance(answer, ElicitResult):
            return None
        return await self._bring(self.run_id, self._question_id, answer)

    async def ask(self, run: JsonObject, at_most_s: float) -> str | None:
        """Ask in mid-call and bring the answer; gives why the question stays open, None once it is not.

        A question that is answered elsewhere, or whose run ends, is taken back from the person.
        """
        answer: ElicitResult | None = None
        note: str | None = None
        question_id = run["question"]["id"]
        with anyio.move_on_after(at_most_s) as deadline:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._end_once_settled, run["id"], question_id, tasks.cancel_scope)
                try:
                    answer = await self._context.session.elicit_form(
                        _message(run), render_elicitation_schema(Approval), self._context.request_id
                    )
                except (MCPError, ValidationError) as fault:
                    note = f"the client could not ask the person ({type(fault).__name__})"
                tasks.cancel_scope.cancel()
        if answer is not None:
            return await self._bring(run["id"], question_id, answer)
        return f"the person did not answer within {at_most_s:.0f} s" if deadline.cancelled_caught else note

    async def _end_once_settled(self, run_id: str, question_id: str, asking: anyio.CancelScope) -> None:
        """Watch the question while the person thinks, and keep the client's clock from running out."""
        steps = 0
        while True:
            try:
                run = await self._door.client.agent_run(run_id, wait_s=STEP_S, past_question=question_id)
            except ServiceFault:  # the one who waits meets the same fault, and tells it
                run = {"question": None}
            if run["question"] is None or run["question"]["id"] != question_id:
                asking.cancel()
                return
            steps += 1
            await self._context.report_progress(steps, message="waiting for the person's answer")

    async def _bring(self, run_id: str, question_id: str, answer: ElicitResult) -> str | None:
        body: JsonObject = {"is_allowed": False, "question_id": question_id}
        match answer.action:
            case "cancel":
                return "the person put the question aside without an answer"
            case "decline":
                pass
            case "accept":
                try:
                    said = Approval.model_validate(answer.content)
                except ValidationError:
                    return "the client's answer does not hold a decision"
                body |= {"is_allowed": said.decision != "deny", "for_all": said.decision == "allow_all"}
                body["reason"] = said.reason
        try:
            await self._door.client.tell_run(run_id, "answer", body)
        except Refused as refusal:
            if refusal.answered_status != 409:  # answered elsewhere in the meantime
                raise
        return None


def agent_status(run: JsonObject, note: str | None = None) -> AgentRunStatus:
    """Give a run as tools answer it; `note` says why a question that was put to the person is still open."""
    asked = run["question"]
    return AgentRunStatus(
        run_id=run["id"],
        state=run["state"],
        doing=run["doing"],
        question=None
        if asked is None
        else AgentQuestion(
            question_id=asked["id"],
            tool=asked["tool"],
            summary=asked["summary"],
            arguments=_arguments(asked),
        ),
        reason=run["reason"],
        detail=run["detail"],
        text=run["text"],
        spent=run["spent"],
        next_step=_next_step(run, note),
    )


def _next_step(run: JsonObject, note: str | None) -> str:
    run_id, asked = run["id"], run["question"]
    if asked is not None:
        why = f"{note}; " if note else ""
        return (
            f"{why}a person has to allow this call: ask them, then answer_approval with run_id {run_id} and "
            f"question_id {asked['id']} (over HTTP: POST /v1/runs/{run_id}/answer), then wait_agent_run"
        )
    if run["state"] == "running":
        return f"call wait_agent_run with run_id {run_id}"
    if run["reason"] in ("green", "answered"):
        return "nothing: the agent is done"
    return f"read `detail`; resume_agent_run with run_id {run_id} goes on with it, with `say` in other words"


def _message(run: JsonObject) -> str:
    asked = run["question"]
    return (
        f"The agent of run {run['id']} wants to call {asked['tool']}: {asked['summary']}\n{_arguments(asked)}"
    )


def _arguments(asked: JsonObject) -> str:
    whole = json.dumps(asked["arguments"], ensure_ascii=False)
    left_out = len(whole) - MAX_ARGUMENT_CHARS
    return whole if left_out <= 0 else f"{whole[:MAX_ARGUMENT_CHARS]} [… {left_out} more characters]"
