"""The loop: ask the model, decide, run tools, check the answer."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import structlog

from agent.budget import Spent, builds_exhausted, cost, exhausted, explain, is_near, render
from agent.compact import BUILD_TOOL, plan_fold
from agent.decide import Answer, AskAgain, RunTools, Stop, StopReason, decide, refuse
from agent.entries import Added, Began, Entry, Folded, Starting, Stopped, TurnEnded
from agent.equipment import Equipment, RunResult, Verify
from agent.errors import ContextOverflow, ProviderFault
from agent.message import Message, Request, ToolResult, UserMessage
from agent.progress import (
    Compacted,
    MessageReceived,
    Progress,
    RunStarted,
    RunStopped,
    TurnSpent,
    TurnStarted,
)
from agent.prompt import fill, system_prompt
from agent.repeat import RepeatGuard
from agent.standing import Standing
from agent.toolbox import Done, Journal, Toolbox
from agent.tools.build import BuildOutcome
from agent.tools.building import BuildDesk, spent_on
from agent.tools.kit import workspace_tools
from agent.tools.output import OutputStore
from agent.turn import TurnTaker, request_for

_log = structlog.get_logger()
_MAX_FAILED_CHECKS = 3
_MAX_REFUSED_IN_A_ROW = 5
_SLOW_BUILD_S = 240.0
_CACHE_TTL_S, _LONG_CACHE_TTL_S = 300, 3600
_NOT_KEPT = (
    "not run: its arguments held what looks like a secret, which was not kept when the run was put down. "
    "Send the call again."
)


class Loop:
    """Takes a run from step to step; every step is in the transcript before it counts."""

    def __init__(self, beginning: Began, standing: Standing, equipment: Equipment) -> None:
        self._beginning = beginning
        self._standing = standing
        self._equipment = equipment
        self._verify = Verify(beginning.options["verify"])
        workspace = Path(beginning.workspace)
        folder = equipment.transcript.folder
        self._desk = BuildDesk(equipment.builder, workspace, exhausted=self._no_more_builds)
        if standing.memory:
            self._desk.recall(standing.memory)
        self._guard = RepeatGuard()
        store = OutputStore(folder / "outputs")
        self._toolbox = Toolbox(
            (
                *workspace_tools(workspace, folder, self._desk, store, equipment.author),
                *equipment.tools,
            ),
            equipment.gate,
            store,
            self._guard,
            Journal(lambda call_id, note: self.record(Starting(call_id, note)), self._settled),
            equipment.on_progress,
        )
        self._turns = TurnTaker(equipment.line, equipment.on_progress, equipment.retry)
        self._system = system_prompt(workspace, verifies=self._verify is not Verify.NEVER)
        self._tokens_per_guess = 1.0
        self._counted_s = equipment.clock()

    def record(self, entry: Entry) -> None:
        """Write down what happened, then let it count."""
        self._equipment.transcript.append(entry)
        self._standing.apply(entry)

    def begin_patience_anew(self) -> None:
        """Forget how often builds and checks had failed when the run stopped; who resumes it wants more."""
        self._desk.trend.alike = self._desk.failed_checks = 0

    async def run(self, *, is_resumed: bool) -> RunResult:
        """Go from step to step until one of them ends the run."""
        beginning, choice = self._beginning, self._equipment.line.choice
        await self._tell(
            RunStarted(
                beginning.run_id, choice.provider.name, choice.model, choice.provider.is_scripted, is_resumed
            )
        )
        stop: Stop | None = None
        while stop is None:
            stop = await self._step()
        return await self._end(stop)

    async def _step(self) -> Stop | None:
        """Act on the last message, or ask for the next one."""
        standing = self._standing
        if standing.pending is not None:
            return await self._act(standing.pending)
        if self._equipment.is_interrupted():
            return Stop(StopReason.INTERRUPTED, "put down between two steps; resume goes on here")
        spent = standing.spent + Spent(wall_s=self._equipment.clock() - self._counted_s)
        if limit := exhausted(standing.budget, spent):
            return Stop(StopReason.BUDGET, explain(limit, standing.budget, spent))
        if self._desk.trend.is_stuck:
            told = f"{self._desk.trend.alike} builds in a row failed for the same causes"
            return Stop(StopReason.NO_PROGRESS, told)
        if self._guard.refused_in_a_row >= _MAX_REFUSED_IN_A_ROW:
            told = f"{self._guard.refused_in_a_row} calls in a row only repeated earlier ones"
            return Stop(StopReason.NO_PROGRESS, told)
        try:
            await self._ask()
        except ProviderFault as fault:
            _log.warning("run.provider_failed", code=fault.code, status=fault.status)
            return Stop(StopReason.PROVIDER, f"{fault} ({fault.hint})")
        return None

    async def _ask(self) -> None:
        """Send the conversation and record the message that answers it."""
        standing, turn = self._standing, self._standing.spent.turns + 1
        await self._tell(TurnStarted(turn))
        await self._fold(int(standing.tokens * self._tokens_per_guess))
        try:
            message = await self._turns.take(self._request())
        except ContextOverflow:
            if not await self._fold(2 * self._equipment.line.choice.context_tokens):
                raise
            message = await self._turns.take(self._request())
        spent = Spent(turns=1)
        if message.usage:
            self._tokens_per_guess = max(0.5, message.usage.input_tokens / max(1, standing.tokens))
            spent += cost(message.usage, self._equipment.line.choice.price)
        self.record(Added(message, spent))
        await self._tell(MessageReceived(turn, message))

    def _request(self) -> Request:
        is_slow = self._desk.longest_build_s > _SLOW_BUILD_S
        return request_for(
            self._equipment.line,
            system=self._system,
            items=tuple(self._standing.items),
            tools=self._toolbox.specs,
            cache_ttl_s=_LONG_CACHE_TTL_S if is_slow else _CACHE_TTL_S,
        )

    async def _fold(self, used_tokens: int) -> bool:
        allowed = self._equipment.line.choice.context_tokens
        fold = plan_fold(tuple(self._standing.items), used_tokens=used_tokens, allowed_tokens=allowed)
        if fold is None:
            return False
        self.record(Folded(fold))
        after = int(self._standing.tokens * self._tokens_per_guess)
        await self._tell(Compacted(fold.results_before, fold.turns_before, used_tokens, after))
        return True

    async def _act(self, message: Message) -> Stop | None:
        """Do what follows from a message; done again after a kill, it goes on where it was."""
        standing = self._standing
        match decide(message, standing.flaws):
            case Stop() as stop:
                return stop
            case Answer(text):
                return await self._check(text)
            case AskAgain(_, results, text):
                self._give(results)
                if text is not None:
                    self.record(Added(UserMessage(text)))
            case RunTools(calls, refused):
                left = tuple(call for call in calls if call.id not in standing.results)
                unsafe, earlier = standing.unsafe, dict(standing.earlier)
                self._give(refused)
                self._give(tuple(refuse(call, _NOT_KEPT) for call in left if call.id in unsafe))
                await self._toolbox.run(tuple(call for call in left if call.id not in unsafe), earlier)
        self._count_time()
        await self._tell(TurnSpent(standing.spent.turns, standing.spent, standing.budget))
        return None

    def _give(self, results: tuple[ToolResult, ...]) -> None:
        for result in results:
            if result.call_id not in self._standing.results:
                self.record(Added(result))

    def _settled(self, done: Done) -> None:
        """Record what a call gave, with what it cost and what must be remembered."""
        standing, result = self._standing, done.result
        self._desk.changed = self._desk.changed or done.changed
        after = standing.spent + done.spent
        if done.spent.builds or is_near(standing.budget, after):
            result = replace(result, content=f"{result.content}\n[{render(standing.budget, after)}]")
        remembers = done.changed or done.spent != Spent() or result.name == BUILD_TOOL
        self.record(Added(result, done.spent, self._desk.to_memory() if remembers else None))

    async def _check(self, text: str) -> Stop | None:
        """Accept a final answer, or build the state it leaves behind and tell the model what fails."""
        desk = self._desk
        if self._verify is Verify.NEVER or (self._verify is Verify.CHANGED and not desk.changed):
            return Stop(StopReason.ANSWERED, "answered; nothing had to be built")
        if await desk.is_green():
            return Stop(StopReason.GREEN, "the present state of the workspace is built without failure")
        if desk.failed_checks >= _MAX_FAILED_CHECKS:
            told = f"{desk.failed_checks} answers in a row left a state that does not build"
            return Stop(StopReason.NOT_GREEN, told)
        if limit := self._no_more_builds():
            return Stop(StopReason.NOT_GREEN, f"the present state is not built, and {limit}")
        report = await desk.build(desk.spec_for_check(), self._equipment.on_progress, note=lambda _: None)
        if report.outcome is BuildOutcome.FAILED:
            desk.failed_checks += 1
            failed = UserMessage(fill("failed_check", digest=report.digest_text))
            self.record(Added(failed, spent_on(report), desk.to_memory()))
            return None
        self.record(TurnEnded(self._standing.spent + spent_on(report)))
        if report.outcome is BuildOutcome.GREEN:
            return Stop(StopReason.GREEN, "the check of the answer built the present state without failure")
        return Stop(
            StopReason.NOT_GREEN, f"the check of the answer ended {report.outcome}: {report.digest_text}"
        )

    async def _end(self, stop: Stop) -> RunResult:
        self._count_time()
        standing = self._standing
        last = next((item for item in reversed(standing.items) if isinstance(item, Message)), Message())
        self.record(Stopped(now(), stop.reason, stop.detail, last.text, standing.spent))
        _log.info("run.stopped", run_id=self._beginning.run_id, reason=stop.reason)
        await self._tell(RunStopped(stop.reason, stop.detail, last.text, standing.spent))
        return RunResult(self._beginning.run_id, stop.reason, stop.detail, last.text, standing.spent)

    def _no_more_builds(self) -> str | None:
        standing = self._standing
        limit = builds_exhausted(standing.budget, standing.spent)
        return explain(limit, standing.budget, standing.spent) if limit else None

    def _count_time(self) -> None:
        """Add the time since the last count to what is spent, and end the turn on disk."""
        now_s = self._equipment.clock()
        self.record(TurnEnded(self._standing.spent + Spent(wall_s=now_s - self._counted_s)))
        self._counted_s = now_s

    async def _tell(self, progress: Progress) -> None:
        await self._equipment.on_progress(progress)


def now() -> str:
    """Give the present time for a transcript, in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")
