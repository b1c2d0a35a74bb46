"""Agent runs: let the service's own agent work on a workspace of this host.

They are followed, answered, stopped, and gone on with, also after a restart of the service.
"""

import hashlib
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from anyio import to_thread
from fastapi import APIRouter, Header, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from orchestrator.access import Permission
from orchestrator.desk import need
from orchestrator.errors import BadRequest, NotReady
from orchestrator.routes.builds import MAX_WAIT_S, IdempotencyKey
from orchestrator.routes.context import PrincipalDep, Service, ServiceDep
from orchestrator.routes.logs import EventStream
from orchestrator.schema import AbsolutePath, Name, Text

if TYPE_CHECKING:
    from orchestrator.agent_desk import AgentDesk, BuilderFor

router = APIRouter(prefix="/v1/runs", tags=["agent runs"])
RunState = Literal["running", "asking", "interrupted", "stopped", "damaged"]
CURSOR = r"^[0-9]{8}-[0-9]{6}-[0-9a-f]{4}$"
"""The id of the last run of a page, which says when it began."""


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class AgentRequest(_Body):
    """What an agent is to do in a folder of the service's host, inside its roots."""

    assignment: str = Field(min_length=1, max_length=20_000, examples=["Fix the crash in the login screen."])
    path: AbsolutePath = Field(examples=["/home/me/projects/hello"])
    provider: Name | None = None
    model: Text | None = None
    effort: Name | None = None
    mode: Literal["yes", "ask", "read_only"] = "yes"
    verify: Literal["changed", "always", "never"] = "changed"
    phone: Text | None = None
    turns: int | None = Field(default=None, gt=0)
    tokens: int | None = Field(default=None, gt=0)
    money: float | None = Field(default=None, gt=0)
    builds: int | None = Field(default=None, gt=0)


class ResumeRequest(_Body):
    """What is different when a run goes on; what is left out stays as it was.

    `say` is a word to the model; only with one does a run go on that was done.
    """

    say: str | None = Field(default=None, min_length=1, max_length=20_000, examples=["Now the tests, too."])
    provider: Name | None = None
    model: Text | None = None
    effort: Name | None = None
    mode: Literal["yes", "ask", "read_only"] | None = None
    turns: int | None = Field(default=None, gt=0)
    tokens: int | None = Field(default=None, gt=0)
    money: float | None = Field(default=None, gt=0)
    builds: int | None = Field(default=None, gt=0)


class AgentReply(_Body):
    """A run as it is now; `question` is what it waits for a person to allow, `doing` what it is at.

    One that is `interrupted` was put down, or left by a service that ended, and can be gone on with. One
    that is `damaged` has a transcript that cannot be read; `detail` says why.
    """

    id: str
    owner: str
    state: RunState
    assignment: str | None
    workspace: str | None
    model: str | None
    created: datetime | None
    finished: datetime | None
    question: dict[str, Any] | None
    doing: str | None
    reason: str | None
    detail: str | None
    text: str | None
    spent: dict[str, Any] | None


class AgentPage(_Body):
    """Some runs, newest first; `next` is the cursor of the following page."""

    runs: list[AgentReply]
    next: str | None


class TranscriptReply(_Body):
    """Every entry of a transcript so far."""

    entries: list[dict[str, Any]]


class AnswerRequest(_Body):
    """May the call run? `for_all` stands for all later calls of the tool; `reason` is for the model.

    With `question_id` the answer counts for that question alone.
    """

    is_allowed: bool = Field(examples=[True])
    for_all: bool = False
    reason: str = Field(default="", max_length=2000)
    question_id: Text | None = Field(default=None, examples=["0-1"])


@router.post("", status_code=201, responses={200: {"description": "The run that the key began before."}})
async def begin_run(
    body: AgentRequest,
    request: Request,
    service: ServiceDep,
    principal: PrincipalDep,
    response: Response,
    idempotency_key: IdempotencyKey = None,
) -> AgentReply:
    """Begin a run; it works on the folder itself, and its builds are builds of the asker."""
    # The agent is loaded when one is asked for; a service that only builds starts without it.
    from agent.approval import Mode
    from agent.budget import Budget
    from agent.runner import Verify
    from orchestrator.agent_order import AgentOrder
    from orchestrator.agent_run import ModelChoice

    need(principal, Permission.AGENT)
    workspace = await to_thread.run_sync(_folder, service, body.path)
    limits = service.stores.settings.agent.budget()
    order = AgentOrder(
        assignment=body.assignment,
        workspace=workspace,
        choice=ModelChoice(provider=body.provider, model=body.model, effort=body.effort),
        mode=Mode(body.mode),
        verify=Verify(body.verify),
        budget=Budget(**{**limits, **_own_limits(body)}),
        phone=body.phone,
    )
    desk = _desk(request)
    digest = hashlib.sha256(body.model_dump_json().encode()).hexdigest()
    key = None if idempotency_key is None else (idempotency_key, digest)
    run_id, is_new = await desk.begin(principal, order, _builders(request), key)
    response.status_code = 201 if is_new else 200
    response.headers["location"] = f"/v1/runs/{run_id}"
    return AgentReply(**desk.describe(principal, run_id))


@router.post("/{run_id}/resume")
async def resume_run(
    run_id: str, body: ResumeRequest, request: Request, service: ServiceDep, principal: PrincipalDep
) -> AgentReply:
    """Go on with a run wherever it was left; what it had done is not done again."""
    from agent.approval import Mode
    from orchestrator.agent_order import Change

    need(principal, Permission.AGENT)
    desk = _desk(request)
    order = await to_thread.run_sync(desk.order, principal, run_id)
    await to_thread.run_sync(_folder, service, str(order.workspace))
    change = Change(
        say=body.say,
        mode=None if body.mode is None else Mode(body.mode),
        provider=body.provider,
        model=body.model,
        effort=body.effort,
        limits=_own_limits(body),
    )
    await desk.resume(principal, run_id, change, _builders(request))
    return AgentReply(**desk.describe(principal, run_id))


@router.get("")
async def list_runs(
    request: Request,
    principal: PrincipalDep,
    state: RunState | None = None,
    reason: Annotated[str | None, Query(pattern="^[a-z_]{1,40}$", description="Why it stopped.")] = None,
    workspace: Annotated[AbsolutePath | None, Query(description="The folder it works on.")] = None,
    owner: Annotated[str | None, Query(max_length=200)] = None,
    cursor: Annotated[str | None, Query(pattern=CURSOR, description="The `next` of a page.")] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> AgentPage:
    """List the runs that this host keeps, newest first; a token without `admin` sees its owner's only."""
    from orchestrator.agent_list import RunFilter

    need(principal, Permission.READ)
    whose = owner if principal.is_admin else principal.owner
    wanted = RunFilter(whose, state, reason, workspace, before=cursor, limit=limit + 1)
    found = [AgentReply(**fields) for fields in await _desk(request).list_runs(wanted)]
    page, rest = found[:limit], found[limit:]
    return AgentPage(runs=page, next=page[-1].id if rest else None)


@router.get("/{run_id}")
async def get_run(
    run_id: str,
    request: Request,
    principal: PrincipalDep,
    wait_s: Annotated[float, Query(ge=0, le=MAX_WAIT_S)] = 0.0,
    past_question: Annotated[str | None, Query(pattern=r"^\d{1,9}-\d{1,9}$")] = None,
) -> AgentReply:
    """Show a run; with `wait_s`, as soon as it asks or has ended.

    With `past_question`, the id of an open question, as soon as that is open no longer.
    """
    need(principal, Permission.READ)
    desk = _desk(request)
    if wait_s:
        await desk.wait(principal, run_id, wait_s, past_question)
    return AgentReply(**desk.describe(principal, run_id))


@router.get("/{run_id}/transcript")
async def get_transcript(run_id: str, request: Request, principal: PrincipalDep) -> TranscriptReply:
    """Give what was said and done so far."""
    need(principal, Permission.READ)
    desk = _desk(request)
    return TranscriptReply(entries=await to_thread.run_sync(desk.transcript, principal, run_id))


@router.get("/{run_id}/live", response_class=EventStream)
async def follow_run(
    run_id: str,
    request: Request,
    principal: PrincipalDep,
    last_event_id: Annotated[str | None, Header(pattern=r"^\d{1,9}-\d{1,9}$")] = None,
) -> EventStream:
    """Follow a run at work: `progress` events, then `end`; send the last id to go on behind it."""
    need(principal, Permission.READ)
    desk = _desk(request)
    desk.check(principal, run_id)
    life, number = map(int, (last_event_id or "0-0").split("-"))
    return EventStream(desk.follow(principal, run_id, life, number))


@router.post("/{run_id}/answer", status_code=204)
async def answer_run(run_id: str, body: AnswerRequest, request: Request, principal: PrincipalDep) -> Response:
    """Answer the question that a run waits on."""
    from agent.approval import Reply

    need(principal, Permission.AGENT)
    reply = Reply(body.is_allowed, body.for_all, body.reason)
    _desk(request).answer(principal, run_id, reply, body.question_id)
    return Response(status_code=204)


@router.post("/{run_id}/cancel", status_code=204)
async def cancel_run(
    run_id: str, request: Request, principal: PrincipalDep, at_once: Annotated[bool, Query()] = False
) -> Response:
    """Put a run down after the step at work, or at once."""
    need(principal, Permission.AGENT)
    _desk(request).stop(principal, run_id, at_once=at_once)
    return Response(status_code=204)


def _folder(service: Service, path: str) -> Path:
    """Give the real place of a workspace, where the service may work on it."""
    folder = service.intake.inside_roots(path)
    if not folder.is_dir():
        raise BadRequest(f"{path} is no folder", code="no_workspace")
    return folder


def _own_limits(body: AgentRequest | ResumeRequest) -> dict[str, Any]:
    """Give the limits that a request sets itself."""
    own = {name: getattr(body, name) for name in ("turns", "tokens", "money", "builds")}
    return {name: value for name, value in own.items() if value is not None}


def _builders(request: Request) -> "BuilderFor":
    from orchestrator.inner_client import inner_builder

    return lambda phone: inner_builder(request, phone)


def _desk(request: Request) -> "AgentDesk":
    from orchestrator.agent_desk import AgentDesk

    state = request.app.state
    service: Service | None = getattr(state, "service", None)
    if service is None:
        raise NotReady("the service is starting or stopping")
    if getattr(state, "agents", None) is None:
        state.agents = AgentDesk(service.stores.settings, state.tasks, service.stores.bells)
    desk: AgentDesk = state.agents
    return desk
