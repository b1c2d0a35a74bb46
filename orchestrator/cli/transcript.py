"""Shows the transcript of an agent's run: as text, or as the JSON lines it is made of."""

import json
from collections.abc import Iterator, Sequence

from agent.entries import Added, Began, Entry, Folded, Resumed, Starting, Stopped, TurnEnded, entry_to_json
from agent.message import ConversationItem, Message, ToolResult, UserMessage
from orchestrator.cli.agent_screen import spent_text

MAX_RESULT_LINES = 40


def as_json(entries: Sequence[Entry]) -> str:
    """Give each entry as a line of JSON."""
    lines = "\n".join(json.dumps(entry_to_json(entry), ensure_ascii=False) for entry in entries)
    # Half of a surrogate pair, as a file that is not in UTF-8 leaves it, has only this form in UTF-8.
    return lines.encode("utf-8", "backslashreplace").decode()


def as_text(entries: Sequence[Entry]) -> str:
    """Give a run as people read it: what was asked, said, done and answered, and the totals."""
    return "\n".join(line for entry in entries for line in _entry(entry))


def _entry(entry: Entry) -> Iterator[str]:
    match entry:
        case Began():
            yield f"run {entry.run_id} · {entry.provider}/{entry.model} · {entry.at}"
            yield f"workspace {entry.workspace}"
            yield ""
        case Resumed(at):
            yield _title(f"resumed {at}")
        case Added(item):
            yield from _item(item)
        case Folded():
            yield _title("older parts were folded")
        case TurnEnded(spent):
            yield f"  {spent_text(spent)}"
            yield ""
        case Stopped():
            yield _title(f"stopped: {entry.reason}")
            yield entry.detail
            yield spent_text(entry.spent)
        case Starting():
            pass
        case _:
            yield _title("an entry of a newer program")


def _item(item: ConversationItem) -> Iterator[str]:
    match item:
        case UserMessage(text):
            yield _title("person")
            yield text
        case Message():
            yield _title("model")
            if item.text:
                yield item.text
            for call in item.tool_calls:
                arguments = json.dumps(call.arguments, ensure_ascii=False)
                fault = f"  (refused: {call.fault})" if call.fault else ""
                yield f"→ {call.name} {arguments}{fault}"
        case ToolResult():
            yield _title(f"result of {item.name}{' (error)' if item.is_error else ''}")
            yield from _content(item.content)
    yield ""


def _content(content: str) -> Iterator[str]:
    lines = content.splitlines()
    yield from lines[:MAX_RESULT_LINES]
    if len(lines) > MAX_RESULT_LINES:
        yield f"… {len(lines) - MAX_RESULT_LINES} more lines"


def _title(text: str) -> str:
    return f"── {text}"
