"""Shows the transcript of an agent's run: as text, as Markdown, or as the JSON lines it is made of."""

import json
from collections.abc import Iterator, Sequence

from agent.entries import Added, Began, Entry, Folded, Resumed, Starting, Stopped, TurnEnded, entry_to_json
from agent.message import ConversationItem, Message, ToolResult, UserMessage
from orchestrator.cli.agent_screen import spent_text

MAX_RESULT_LINES = 40


def as_json(entries: Sequence[Entry]) -> str:
    """Give each entry as a line of JSON."""
    return "\n".join(json.dumps(entry_to_json(entry), ensure_ascii=False) for entry in entries)


def as_text(entries: Sequence[Entry], *, is_markdown: bool) -> str:
    """Give a run as people read it: what was asked, said, done and answered, and the totals."""
    return "\n".join(line for entry in entries for line in _entry(entry, is_markdown))


def _entry(entry: Entry, md: bool) -> Iterator[str]:
    match entry:
        case Began():
            yield f"{'# ' if md else ''}run {entry.run_id} · {entry.provider}/{entry.model} · {entry.at}"
            yield f"workspace {entry.workspace}"
            yield ""
        case Resumed(at):
            yield _title(f"resumed {at}", md)
        case Added(item):
            yield from _item(item, md)
        case Folded():
            yield _title("older parts were folded", md)
        case TurnEnded(spent):
            yield f"{'*' if md else '  '}{spent_text(spent)}{'*' if md else ''}"
            yield ""
        case Stopped():
            yield _title(f"stopped: {entry.reason}", md)
            yield entry.detail
            yield spent_text(entry.spent)
        case Starting():
            pass
        case _:
            yield _title("an entry of a newer program", md)


def _item(item: ConversationItem, md: bool) -> Iterator[str]:
    match item:
        case UserMessage(text):
            yield _title("person", md)
            yield text
        case Message():
            yield _title("model", md)
            if item.text:
                yield item.text
            for call in item.tool_calls:
                arguments = json.dumps(call.arguments, ensure_ascii=False)
                fault = f"  (refused: {call.fault})" if call.fault else ""
                yield f"→ {call.name} {arguments}{fault}"
        case ToolResult():
            yield _title(f"result of {item.name}{' (error)' if item.is_error else ''}", md)
            yield from _content(item.content, md)
    yield ""


def _content(content: str, md: bool) -> Iterator[str]:
    lines = content.splitlines()
    if md:
        yield "```"
    yield from lines[:MAX_RESULT_LINES]
    if len(lines) > MAX_RESULT_LINES:
        yield f"… {len(lines) - MAX_RESULT_LINES} more lines"
    if md:
        yield "```"


def _title(text: str, md: bool) -> str:
    return f"## {text}" if md else f"── {text}"
