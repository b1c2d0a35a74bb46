"""Agent runs that the service itself carries out: begun, followed, answered, stopped, gone on with.

The transcript of a run is its truth; the tasks here only work on it. A run that was put down, or left by
a service that ended, can be gone on with, and no effect is done twice: the transcript has them.
"""

import json
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import structlog
from anyio import TASK_STATUS_IGNORED, to_thread
from anyio.abc import TaskGroup, TaskStatus

from agent.approval import Reply
from agent.entries import Began, Entry, Resumed, entry_to_json
from agent.errors import AgentError, TranscriptFault
from agent.runner import Equipment, ended_well
from agent.tools.build import Builder
from agent.transcript import FILE_NAME, is_at_work, read_transcript
from orchestrator import bell
from orchestrator.access import Principal
from orchestrator.agent_keys import claim
from orchestrator.agent_list import OWNER_FILE, KeptRun, RunFilter, RunList, State, owner_of, read_run
from orchestrator.agent_live import LiveRun
from orchestrator.agent_order import AgentOrder, Change, carry_out, order_of, read_order, write_order
from orchestrator.agent_run import Manners, equipped, new_run_id, run_folder
from orchestrator.bell import Bells
from orchestrator.errors import BadRequest, Conflict, NotFound, Refusal
from orchestrator.settings import Settings

log = structlog.get_logger(__name__)
LOOK_AGAIN_S = 1.0

BuilderFor = Callable[[str | None], AbstractAsyncContextManager[Builder]]
"""Opens the builder of a run; the name of a phone pins its builds to that one."""


class DamagedTranscript(Refusal):
    """What is kept of a run cannot be read."""

    code = "transcript_damaged"
    status = 500
    default_hint = "The file on the service's disk is damaged; the workspace has what the run did."


class AgentDesk:
    """All verbs on agent runs of one service."""

    def __init__(self, settings: Settings, tasks: TaskGroup, bells: Bells) -> None:
        self._settings = settings
        self._tasks = tasks
        self._bells = bells
        self._live: dict[str, LiveRun] = {}
        self._list = RunList(settings.data_dir)

    async def begin(
        self,
        principal: Principal,
        order: AgentOrder,
        builder_for: BuilderFor,
        key: tuple[str, str] | None = None,
    ) -> tuple[str, bool]:
        """Start a run and give its id, and whether it is new; it goes on whoever listens.

        `key` is an idempotency key of the caller with the digest of what it sent. Raises `BadRequest`
        for a model that cannot be asked; then nothing is left of the run.
        """
        run_id = new_run_id()
        folder = run_folder(self._settings, run_id)
        # Nothing here waits, so of two equal wishes at once the second finds the first.
        holder = run_id if key is None else claim(self._settings.data_dir, principal.owner, *key, run_id)
        if holder != run_id:
            return holder, False
        folder.mkdir(parents=True, mode=0o700)
        (folder / OWNER_FILE).write_text(principal.owner)
        write_order(folder, order)
        try:
            await self._start(run_id, 0, order, builder_for, None)
        except Refusal:
            await to_thread.run_sync(shutil.rmtree, folder)
            raise
        return run_id, True

    def order(self, principal: Principal, run_id: str) -> AgentOrder:
        """Give what a run was asked to do; raises `NotFound` for a run that never began."""
        folder = self.check(principal, run_id)
        order, entries = read_order(folder), _entries_in(folder)
        if order is not None:
            return order
        if not entries or not isinstance(entries[0], Began):
            raise NotFound(f"run {run_id} of an agent never began")
        return order_of(entries[0])

    async def resume(
        self, principal: Principal, run_id: str, change: Change, builder_for: BuilderFor
    ) -> None:
        """Go on with a run wherever it was left.

        Raises `Conflict` for one that is at work, here or in another process, and for one that is done
        where nothing new is said to it; `BadRequest` for a model that cannot be asked.
        """
        order = change.applied(self.order(principal, run_id))
        folder = run_folder(self._settings, run_id)
        if run_id in self._live:
            raise Conflict(f"run {run_id} is at work already")
        entries = _entries_in(folder)
        done = ended_well(entries) if entries and change.say is None else None
        if done is not None:
            raise Conflict(f"run {run_id} is done: {done.reason}", hint="Say something new to it with `say`.")
        lives = 1 + sum(isinstance(entry, Resumed) for entry in entries)
        await self._start(run_id, lives, order, builder_for, change if entries else None)
        await to_thread.run_sync(write_order, folder, order)

    def check(self, principal: Principal, run_id: str) -> Path:
        """Give the folder of a run that the asker may see; raises `NotFound` for all others alike."""
        folder = run_folder(self._settings, run_id)
        if not folder.is_dir() or not principal.sees(owner_of(folder)):
            raise NotFound(f"there is no run {run_id} of an agent")
        return folder

    def describe(self, principal: Principal, run_id: str) -> dict[str, Any]:
        """Give what is known of a run: what was asked, whether it works, asks or has ended, and how."""
        self.check(principal, run_id)
        run, live = read_run(self._settings.data_dir, run_id), self._live.get(run_id)
        if live is not None:
            return _shown(run, live.state, live)
        is_elsewhere = run.idle_state == "interrupted" and is_at_work(run_folder(self._settings, run_id))
        return _shown(run, "running" if is_elsewhere else run.idle_state, None)

    async def list_runs(self, wanted: RunFilter) -> list[dict[str, Any]]:
        """Give runs as `describe` does, newest first."""
        live = dict(self._live)
        states = {run_id: each.state for run_id, each in live.items()}
        page = await to_thread.run_sync(self._list.page, wanted, states)
        return [_shown(run, state, live.get(run.id)) for run, state in page]

    def transcript(self, principal: Principal, run_id: str) -> list[dict[str, Any]]:
        """Give every entry of a run's transcript so far."""
        return [entry_to_json(entry) for entry in _entries_in(self.check(principal, run_id))]

    async def wait(self, principal: Principal, run_id: str, wait_s: float, past: str | None = None) -> None:
        """Return once a run asks or has ended; with `past`, once that question is no longer open."""
        self.check(principal, run_id)
        ring = self._bells.of(f"agent:{run_id}")
        with anyio.move_on_after(wait_s):
            while (live := self._live.get(run_id)) is not None:
                rung = ring.listen()
                if live.question_id != past:
                    return
                await rung.wait()

    def answer(self, principal: Principal, run_id: str, reply: Reply, question_id: str | None = None) -> None:
        """Answer the question that a run waits on.

        Raises `Conflict` where it asks nothing, or something else than the question that is named.
        """
        self.check(principal, run_id)
        live = self._live.get(run_id)
        if live is None or live.question is None:
            raise Conflict(f"run {run_id} asks nothing just now")
        if question_id not in (None, live.question_id):
            raise Conflict(
                f"question {question_id} of run {run_id} is no longer open",
                hint=f"It asks {live.question_id} now; look at that before you answer.",
            )
        live.answer(reply)

    def stop(self, principal: Principal, run_id: str, *, at_once: bool) -> None:
        """Put a run down after the step at work, or at once; it can be resumed."""
        self.check(principal, run_id)
        live = self._live.get(run_id)
        if live is not None:
            live.stop(at_once=at_once)

    async def follow(
        self, principal: Principal, run_id: str, life: int = 0, number: int = 0
    ) -> AsyncIterator[bytes]:
        """Give the progress of a run at work as server-sent events, behind event `number` of a life.

        Ids are `LIFE-NUMBER`: a run that was gone on with counts its events anew.
        """
        self.check(principal, run_id)
        ring = self._bells.of(f"agent:{run_id}")
        while True:
            rung = ring.listen()
            live = self._live.get(run_id)
            if live is not None and live.life != life:
                life, number = live.life, 0
            for place, event in [] if live is None else live.events_after(number):
                number, data = place, json.dumps(event, default=str)
                yield f"event: progress\nid: {life}-{number}\ndata: {data}\n\n".encode()
            if live is None:
                yield f"event: end\ndata: {json.dumps(self.describe(principal, run_id))}\n\n".encode()
                return
            await bell.wait(rung, LOOK_AGAIN_S)

    async def _start(
        self, run_id: str, life: int, order: AgentOrder, builder_for: BuilderFor, change: Change | None
    ) -> None:
        """Let a run work; it counts as at work from here on, and no longer where it could not begin."""
        live = self._live[run_id] = LiveRun(life, ring=lambda: self._bells.ring(f"agent:{run_id}"))
        try:
            await self._tasks.start(self._work, run_id, order, builder_for, change)
        except BaseException:
            self._end(run_id, live)  # the task may have been cancelled before its first step
            raise

    async def _work(
        self,
        run_id: str,
        order: AgentOrder,
        builder_for: BuilderFor,
        change: Change | None,
        *,
        task_status: TaskStatus[None] = TASK_STATUS_IGNORED,
    ) -> None:
        """Carry a run out; it counts as started once all it works with is open."""
        live = self._live[run_id]
        try:
            with live.scope:
                async with self._equipped(run_id, order, builder_for, live) as equipment:
                    live.is_equipped = True
                    task_status.started()
                    say = None if change is None else change.say
                    await carry_out(order, equipment, run_id, is_begun=change is not None, say=say)
        except AgentError as fault:
            if not live.is_equipped:
                raise _refused(fault) from fault
            log.warning("agent.failed", run_id=run_id, code=fault.code, fault=str(fault))
        except Exception:
            if not live.is_equipped:
                raise
            # The outermost frame of a run: a defect ends this one, not the service with all builds.
            log.exception("agent.broke", run_id=run_id)
        finally:
            self._end(run_id, live)
        if not live.is_equipped:
            raise Conflict(f"run {run_id} was stopped before it began")

    @asynccontextmanager
    async def _equipped(
        self, run_id: str, order: AgentOrder, builder_for: BuilderFor, live: LiveRun
    ) -> AsyncIterator[Equipment]:
        manners = Manners(mode=order.mode, asker=live.ask, is_interrupted=lambda: live.is_stop_asked)
        async with (
            builder_for(order.phone) as builder,
            equipped(self._settings, order.choice, builder, run_id, live.show, manners) as equipment,
        ):
            yield equipment

    def _end(self, run_id: str, live: LiveRun) -> None:
        """Take a life of a run from those at work, unless another has begun since."""
        if self._live.get(run_id) is live:
            del self._live[run_id]
        live.ring()


def _shown(run: KeptRun, state: State, live: LiveRun | None) -> dict[str, Any]:
    if live is None:
        return run.fields(state)
    return {**replace(run, stopped=None).fields(state), "doing": live.doing, "question": live.asked}


def _entries_in(folder: Path) -> list[Entry]:
    """Give the transcript so far; empty where the service was killed before the first entry."""
    try:
        return read_transcript(folder) if (folder / FILE_NAME).exists() else []
    except TranscriptFault as fault:
        raise DamagedTranscript(str(fault)) from fault


def _refused(fault: AgentError) -> Refusal:
    kind = Conflict if isinstance(fault, TranscriptFault) else BadRequest
    return kind(str(fault), code=fault.code, hint=fault.hint)
