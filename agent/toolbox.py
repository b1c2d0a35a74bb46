"""Run the calls of a turn: check them, ask for leave, keep order, and give every call its result."""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

import anyio
import structlog

from agent.approval import Gate, Named, named_by
from agent.budget import Spent
from agent.errors import ToolFault
from agent.message import JsonObject, ToolCall, ToolResult, ToolSpec
from agent.progress import OnProgress, ToolEnded, ToolStarted
from agent.repeat import RepeatGuard
from agent.tools.output import OutputStore
from agent.tools.tool import AnyTool, CallContext, Effect, Output

_log = structlog.get_logger()
_DECORATIONS = ("functions.", "function.", "tools.", "default_api.", "default_api:")


@dataclass(frozen=True, slots=True)
class Done:
    """A call with its result; `changed` says that the workspace is another one now."""

    call: ToolCall
    result: ToolResult
    spent: Spent
    changed: bool


@dataclass(frozen=True, slots=True)
class Journal:
    """Where the toolbox writes down what is about to happen and what came of it, at once."""

    starting: Callable[[str, JsonObject], None]
    settled: Callable[[Done], None]


class Toolbox:
    """All tools of a run behind one door."""

    def __init__(
        self,
        tools: Iterable[AnyTool],
        gate: Gate,
        store: OutputStore,
        guard: RepeatGuard,
        journal: Journal,
        on_progress: OnProgress,
    ) -> None:
        self._tools: dict[str, AnyTool] = {}
        for tool in tools:
            # The first keeps its name: a server's tool must not stand in for one of ours.
            if self._tools.setdefault(tool.name, tool) is not tool:
                _log.warning("tool.left_out", tool=tool.name)
        self._gate = gate
        self._store = store
        self._guard = guard
        self._journal = journal
        self._on_progress = on_progress
        self.specs: tuple[ToolSpec, ...] = tuple(tool.spec for tool in self._tools.values())
        """What the model is told of the tools: the same for all turns, so that providers can cache it."""

    async def run(self, calls: tuple[ToolCall, ...], earlier: Mapping[str, JsonObject]) -> None:
        """Run the calls; calls that only look run together, others one by one in their order.

        `earlier` holds, by call id, the last note of a process that died in that call.
        """
        together: list[ToolCall] = []
        for call in calls:
            tool = self._find(call.name)
            if tool and tool.effect is Effect.READS:
                together.append(call)
                continue
            await self._run_together(together, earlier)
            together = []
            await self._run_one(call, earlier)
        await self._run_together(together, earlier)

    async def _run_together(self, calls: list[ToolCall], earlier: Mapping[str, JsonObject]) -> None:
        if len(calls) < 2:
            for call in calls:
                await self._run_one(call, earlier)
            return
        async with anyio.create_task_group() as tasks:
            for call in calls:
                tasks.start_soon(self._run_one, call, earlier)

    async def _run_one(self, call: ToolCall, earlier: Mapping[str, JsonObject]) -> None:
        started_s = time.monotonic()
        tool = self._find(call.name)
        why = self._refusal(call, tool)
        if tool is None or why is not None:
            output = Output(why or "", is_error=True)
        else:
            output = await self._outcome(call, tool, earlier.get(call.id))
            if output.changed:
                self._guard.changed()
            else:
                output = replace(output, text=self._guard.note(call, output.text))
        result = ToolResult(call.id, call.name, self._store.fit(output.text), output.is_error)
        self._journal.settled(Done(call, result, output.spent, output.changed))
        await self._on_progress(ToolEnded(call, result, time.monotonic() - started_s))

    def _refusal(self, call: ToolCall, tool: AnyTool | None) -> str | None:
        if tool is None:
            return f"not run: there is no tool {call.name}. There are: {', '.join(self._tools)}."
        return self._guard.refusal(call)

    async def _outcome(self, call: ToolCall, tool: AnyTool, earlier: JsonObject | None) -> Output:
        """Give what came of a call; whatever goes wrong in a tool is told to the model."""

        def named() -> Named:
            return named_by(arguments.model_dump(mode="json"), tool.named(arguments))

        try:
            arguments = tool.parse(call.arguments)
            summary = tool.summary(arguments)
            asked = replace(call, name=tool.name)
            if (why := await self._gate.refusal(asked, tool.effect, summary, named)) is not None:
                _log.info("tool.refused", tool=tool.name)
                return Output(why, is_error=True)
            await self._on_progress(ToolStarted(call, summary))
            output: Output = await tool.run(arguments, self._context(call, earlier))
        except ToolFault as fault:
            return Output(str(fault), is_error=True)
        except Exception as fault:  # noqa: BLE001  a tool's fault must not end the run
            _log.exception("tool.failed", tool=tool.name)
            hint = getattr(fault, "hint", "")
            return Output(
                f"{tool.name} failed: {type(fault).__name__}: {fault}\n{hint}".strip(), is_error=True
            )
        return output

    def _context(self, call: ToolCall, earlier: JsonObject | None) -> CallContext:
        return CallContext(
            call, lambda note: self._journal.starting(call.id, note), self._on_progress, earlier
        )

    def _find(self, name: str) -> AnyTool | None:
        """Give the tool of that name; a known decoration around exactly one of ours is taken off."""
        found = self._tools.get(name)
        if found is None:
            bare = name.partition("<|")[0]
            for decoration in _DECORATIONS:
                bare = bare.removeprefix(decoration)
            found = self._tools.get(bare)
        return found
