"""Agent runs that the service itself carries out: begun, followed, answered and stopped over HTTP.

The transcript of a run is its truth; the tasks here only work on it. A run that a stopped or killed
service left is gone on with by `pocketbuild agent --resume`, and no effect is done twice.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import anyio
import structlog
from anyio.abc import TaskGroup

from agent.approval import Mode, Question, Reply
from agent.budget import Budget
from agent.entries import Began, Stopped, entry_to_json
from agent.errors import AgentError
from agent.progress import Progress
from agent.runner import Verify, run
from agent.tools.build import Builder
from agent.transcript import FILE_NAME, read_transcript
from orchestrator import bell
from orchestrator.access import Principal
from orchestrator.agent_run import Manners, ModelChoice, equipped, known_runs, new_run_id, run_folder
from orchestrator.bell import Bells
from orchestrator.errors import Conflict, NotFound
from orchestrator.settings import Settings

log = structlog.get_logger(__name__)
LOOK_AGAIN_S = 1.0
MAX_PROGRESS = 10_000
OWNER_FILE = "owner"


@dataclass(frozen=True, slots=True)
class AgentOrder:
    """What an agent is to do, for whom, and with which model."""

    assignment: str
    workspace: Path
    choice: ModelChoice
    mode: Mode
    verify: Verify
    budget: Budget


@dataclass(slots=True)
class _Live:
    """A run at work in this process."""

    scope: anyio.CancelScope
    is_stop_asked: bool = False
    question: Question | None = None
    replies: list[Reply] = field(default_factory=list)
    answered: anyio.Event = field(default_factory=anyio.Event)
    progress: list[dict[str, Any]] = field(default_factory=list)


class AgentDesk:
    """All verbs on agent runs of one service."""

    def __init__(self, settings: Settings, tasks: TaskGroup, bells: Bells) -> None:
        self._settings = settings
        self._tasks = tasks
        self._bells = bells
        self._live: dict[str, _Live] = {}

    async def begin(self, principal: Principal, order: AgentOrder, builder: Builder) -> str:
        """Start a run and give its id; it goes on whoever listens."""
        run_id = new_run_id()
        folder = run_folder(self._settings, run_id)
        await anyio.Path(folder).mkdir(parents=True)
        await anyio.Path(folder / OWNER_FILE).write_text(principal.owner)
        self._live[run_id] = _Live(anyio.CancelScope())
        self._tasks.start_soon(self._work, run_id, order, builder)
        return run_id

    def check(self, principal: Principal, run_id: str) -> Path:
        """Give the folder of a run that the asker may see; raises `NotFound` for all others alike."""
        folder = run_folder(self._settings, run_id)
        note = folder / OWNER_FILE
        owner = note.read_text() if note.is_file() else "local"
        if not folder.is_dir() or not principal.sees(owner):
            raise NotFound(f"there is no run {run_id} of an agent")
        return folder

    def describe(self, principal: Principal, run_id: str) -> dict[str, Any]:
        """Give what is known of a run: what was asked, whether it works, asks or has ended, and how."""
        folder = self.check(principal, run_id)
        live = self._live.get(run_id)
        entries = read_transcript(folder) if (folder / FILE_NAME).exists() else []
        began = entries[0] if entries and isinstance(entries[0], Began) else None
        stopped = entries[-1] if entries and isinstance(entries[-1], Stopped) else None
        question = None
        if live is not None and live.question is not None:
            asked = live.question
            question = {"tool": asked.call.name, "arguments": asked.call.arguments, "summary": asked.summary}
        state = "asking" if question else "running" if live else "stopped"
        return {
            "id": run_id,
            "state": state,
            "assignment": None if began is None else began.assignment,
            "workspace": None if began is None else began.workspace,
            "model": None if began is None else f"{began.provider}/{began.model}",
            "question": question,
            "reason": None if stopped is None else stopped.reason,
            "detail": None if stopped is None else stopped.detail,
            "text": None if stopped is None else stopped.text,
            "spent": None if stopped is None else asdict(stopped.spent),
        }

    def list_runs(self, principal: Principal) -> list[str]:
        """Give the ids of the asker's runs, newest first."""
        return [run_id for run_id in known_runs(self._settings) if self._is_seen(principal, run_id)]

    def transcript(self, principal: Principal, run_id: str) -> list[dict[str, Any]]:
        """Give every entry of a run's transcript so far."""
        return [entry_to_json(entry) for entry in read_transcript(self.check(principal, run_id))]

    def answer(self, principal: Principal, run_id: str, reply: Reply) -> None:
        """Answer the question that a run waits on; raises `Conflict` where it asks nothing."""
        self.check(principal, run_id)
        live = self._live.get(run_id)
        if live is None or live.question is None:
            raise Conflict(f"run {run_id} asks nothing just now")
        live.question = None
        live.replies.append(reply)
        live.answered.set()

    def stop(self, principal: Principal, run_id: str, *, at_once: bool) -> None:
        """Put a run down after the step at work, or at once; it can be resumed."""
        self.check(principal, run_id)
        live = self._live.get(run_id)
        if live is None:
            return
        live.is_stop_asked = True
        if at_once or live.question is not None:
            live.scope.cancel()

    async def follow(self, principal: Principal, run_id: str, first: int) -> AsyncIterator[bytes]:
        """Give the progress of a run at work from event number `first` on, as server-sent events."""
        self.check(principal, run_id)
        ring = self._bells.of(f"agent:{run_id}")
        number = first
        while True:
            rung = ring.listen()
            live = self._live.get(run_id)
            events = [] if live is None else live.progress
            for event in events[number:]:
                number += 1
                yield f"event: progress\nid: {number}\ndata: {json.dumps(event, default=str)}\n\n".encode()
            if live is None:
                yield f"event: end\ndata: {json.dumps(self.describe(principal, run_id))}\n\n".encode()
                return
            await bell.wait(rung, LOOK_AGAIN_S)

    def _is_seen(self, principal: Principal, run_id: str) -> bool:
        try:
            self.check(principal, run_id)
        except NotFound:
            return False
        return True

    async def _work(self, run_id: str, order: AgentOrder, builder: Builder) -> None:
        live = self._live[run_id]
        try:
            with live.scope:
                async with self._equipped(run_id, order, builder, live) as equipment:
                    await run(
                        order.assignment,
                        order.workspace,
                        equipment,
                        run_id=run_id,
                        budget=order.budget,
                        verify=order.verify,
                    )
        except AgentError as fault:
            log.warning("agent.failed", run_id=run_id, code=fault.code, fault=str(fault))
        finally:
            del self._live[run_id]
            self._bells.ring(f"agent:{run_id}")

    @asynccontextmanager
    async def _equipped(
        self, run_id: str, order: AgentOrder, builder: Builder, live: _Live
    ) -> AsyncIterator[Any]:
        async def show(progress: Progress) -> None:
            if len(live.progress) < MAX_PROGRESS:
                live.progress.append({"event": type(progress).__name__, **asdict(progress)})
            self._bells.ring(f"agent:{run_id}")

        async def ask(question: Question) -> Reply:
            live.question, live.answered = question, anyio.Event()
            self._bells.ring(f"agent:{run_id}")
            await live.answered.wait()
            return live.replies.pop()

        manners = Manners(mode=order.mode, asker=ask, is_interrupted=lambda: live.is_stop_asked)
        async with equipped(self._settings, order.choice, builder, run_id, show, manners) as equipment:
            yield equipment
