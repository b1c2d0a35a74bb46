"""Try a provider with one small conversation and a tool: what works of what a run needs."""

import time
from dataclasses import dataclass

from agent.errors import ProviderFault
from agent.http import Line
from agent.message import ConversationItem, FinishReason, Message, ToolResult, ToolSpec, UserMessage
from agent.progress import Progress, TextStreamed
from agent.retry import RetryPolicy
from agent.turn import TurnTaker, request_for

_ADD = ToolSpec(
    "add",
    "Add two whole numbers.",
    {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    },
)
_SYSTEM = "You test a connection. Call the tool when asked to, then answer in one short sentence."
_ASSIGNMENT = "Use the tool add to add 19 and 23, then say the sum."


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was tried: whether it works, and what was seen."""

    name: str
    works: bool
    seen: str


async def try_out(line: Line) -> list[Finding]:
    """Ask for a tool call and then, with its result, for an answer; two small requests are billed."""
    findings: list[Finding] = []
    items: list[ConversationItem] = [UserMessage(_ASSIGNMENT)]
    called = await _ask(line, items, "a streamed response", findings)
    if called is None:
        return findings
    calls = called.tool_calls
    good = [call for call in calls if call.is_executable and call.name == "add"]
    is_right = len(good) == 1 and good[0].arguments == {"a": 19, "b": 23}
    shown = ", ".join(f"{call.name}({call.raw_arguments or call.arguments})" for call in calls) or "no call"
    findings.append(Finding("a tool call with arguments", is_right, shown))
    reason = called.finish_reason
    findings.append(Finding("a finish reason", reason is FinishReason.TOOL_CALLS, str(reason or "none")))
    counts = f"{called.usage.input_tokens} in, {called.usage.output_tokens} out" if called.usage else "none"
    findings.append(Finding("token counts", called.usage is not None, counts))
    odd = ", ".join(sorted({found.code for found in called.diagnostics}))
    findings.append(Finding("a response in the dialect's own form", not odd, odd or "nothing odd"))
    if good:
        items += [called, *(ToolResult(call.id, call.name, "42") for call in calls)]
        answer = await _ask(line, items, "an answer to a tool result", findings)
        if answer is not None:
            said = " ".join(answer.text.split())[:80]
            findings.append(Finding("the right answer", "42" in answer.text, said or "no text"))
    return findings


async def _ask(
    line: Line, items: list[ConversationItem], name: str, findings: list[Finding]
) -> Message | None:
    streamed = 0

    async def watch(progress: Progress) -> None:
        nonlocal streamed
        streamed += isinstance(progress, TextStreamed)

    turns = TurnTaker(line, watch, RetryPolicy(attempts=2))
    started_s = time.monotonic()
    try:
        message = await turns.take(request_for(line, system=_SYSTEM, items=tuple(items), tools=(_ADD,)))
    except ProviderFault as fault:
        findings.append(Finding(name, False, f"{fault.code}: {fault}"))
        return None
    took = f"{time.monotonic() - started_s:.1f} s, {streamed} pieces of text"
    if turns.drops_effort:
        took += "; the effort field was refused and left out"
    findings.append(Finding(name, True, took))
    return message
