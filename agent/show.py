"""Render a transcript as Markdown, with its totals, for people who read it elsewhere."""

import json
import re
from collections.abc import Iterable, Sequence

from agent.budget import Budget, Spent, render
from agent.entries import Added, Began, Entry, Folded, Resumed, Starting, Stopped, TurnEnded, Unknown
from agent.message import (
    ConversationItem,
    Message,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolResult,
    UserMessage,
)
from agent.standing import Standing

_SHOWN_RESULT_LINES = 40
_TICKS = re.compile("`+")


def to_markdown(entries: Sequence[Entry]) -> str:
    """Give a run as Markdown: what was asked, each turn with its calls and results, the end, the totals."""
    blocks = [block for entry in entries for block in _blocks(entry)]
    return "\n\n".join([*blocks, _totals(Standing.replay(entries))]) + "\n"


def _totals(standing: Standing) -> str:
    spent = standing.spent
    counted = (
        f"{spent.turns} turns, {spent.input_tokens} tokens in ({spent.cached_input_tokens} cached), "
        f"{spent.output_tokens} out, {spent.money:.4f} US dollars, {spent.builds} builds, "
        f"{spent.phone_s:.0f} s of phone time, {spent.wall_s:.0f} s at work"
    )
    return f"**Totals:** {counted}"


def _blocks(entry: Entry) -> Iterable[str]:
    match entry:
        case Began():
            yield f"# Run {entry.run_id}"
            asked = f"{entry.provider}/{entry.model} ({entry.dialect})"
            yield f"{entry.at}, {asked}, workspace `{entry.workspace}`"
            if limits := render(entry.budget, Spent()):
                yield f"Budget: {limits}"
        case Added(item):
            yield from _item(item)
        case Folded(fold):
            yield f"*Folded: turns up to item {fold.turns_before}, results up to {fold.results_before}.*"
        case Resumed(at, budget, provider, model):
            yield f"*Resumed {at} with {provider}/{model}{_changed(budget)}.*"
        case Stopped():
            yield f"**Stopped {entry.at}: {entry.reason}.** {entry.detail}"
        case Unknown():
            yield "*An entry of a newer program.*"
        case Starting() | TurnEnded():
            return


def _changed(budget: Budget) -> str:
    limits = render(budget, Spent())
    return f", {limits}" if limits else ""


def _item(item: ConversationItem) -> Iterable[str]:
    match item:
        case UserMessage(text):
            yield f"## Told\n\n{text}"
        case ToolResult():
            mark = " (error)" if item.is_error else ""
            yield f"Result of `{item.name}`{mark}:\n\n{_fenced(_cut(item.content.splitlines()))}"
        case Message():
            yield "## Model"
            for part in item.parts:
                match part:
                    case TextPart(text):
                        yield text
                    case ReasoningPart(text):
                        yield "\n".join(f"> {line}" for line in text.splitlines())
                    case ToolCall():
                        yield _call(part)
            for found in item.diagnostics:
                yield f"*Odd: {found.code}, {found.detail} (byte {found.offset_bytes}).*"


def _call(call: ToolCall) -> str:
    arguments = json.dumps(call.arguments, ensure_ascii=False, indent=1)
    fault = f"\n\n*Not run: {call.fault}*" if call.fault else ""
    return f"Call `{call.name}`:\n\n{_fenced(arguments.splitlines())}{fault}"


def _cut(lines: list[str]) -> list[str]:
    left_out = len(lines) - _SHOWN_RESULT_LINES
    return [*lines[:_SHOWN_RESULT_LINES], f"[{left_out} more lines]"] if left_out > 0 else lines


def _fenced(lines: list[str]) -> str:
    """Give lines as a code block whose fence is longer than any inside."""
    runs = _TICKS.findall("\n".join(lines))
    fence = "`" * max(3, 1 + max(map(len, runs), default=0))
    return "\n".join([fence, *lines, fence])
