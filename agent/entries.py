"""The entries of a transcript, and their form as JSON.

A transcript is the truth about a run: what the model saw, what it asked for, what was done. All that a
run needs to go on is in its entries. Readers take entries of kinds that they do not know as `Unknown`,
so that an older program can show a newer transcript; only a higher `schema` number is refused.
"""

from dataclasses import dataclass, field
from typing import Any

from agent.budget import Budget, Spent
from agent.compact import Fold
from agent.errors import TranscriptFault
from agent.message import (
    ConversationItem,
    Diagnostic,
    FinishReason,
    JsonObject,
    Message,
    Part,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolResult,
    Usage,
    UserMessage,
)

SCHEMA = 1
"""Grows when a reader of the older form would misunderstand the newer."""


@dataclass(frozen=True, slots=True)
class Began:
    """The run's first entry: what was asked, of whom, where, and within what limits."""

    run_id: str
    at: str
    assignment: str
    workspace: str
    provider: str
    model: str
    dialect: str
    budget: Budget
    options: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Resumed:
    """The run goes on in a new process, perhaps with another budget or another model."""

    at: str
    budget: Budget
    provider: str
    model: str


@dataclass(frozen=True, slots=True)
class Added:
    """A message, a result or a word of the loop joined the conversation.

    `spent` is what it cost, `memory` what the build desk must remember from then on (None: as before),
    both in one line with the item, so that no kill can part them. `is_redacted` says that secrets were
    taken out of the item when it was written.
    """

    item: ConversationItem
    spent: Spent = field(default_factory=Spent)
    memory: JsonObject | None = None
    is_redacted: bool = False


@dataclass(frozen=True, slots=True)
class Starting:
    """A call is about to have an effect; `note` lets a later process find out whether it had."""

    call_id: str
    note: JsonObject


@dataclass(frozen=True, slots=True)
class Folded:
    """The conversation was folded before the next request."""

    fold: Fold


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """A turn is over; these are the totals of the run so far."""

    spent: Spent


@dataclass(frozen=True, slots=True)
class Stopped:
    """The run ended, or was put down to be resumed."""

    at: str
    reason: str
    detail: str
    text: str
    spent: Spent


@dataclass(frozen=True, slots=True)
class Unknown:
    """An entry of a kind that this version does not know."""

    raw: JsonObject


Entry = Began | Resumed | Added | Starting | Folded | TurnEnded | Stopped | Unknown


def entry_to_json(entry: Entry) -> JsonObject:
    """Give the JSON object of an entry; its kind stands under `entry`."""
    match entry:
        case Unknown(raw):
            return raw
        case Added(item, spent, memory, _):
            return {"entry": "added", "item": item_to_json(item), "spent": _fields(spent), "memory": memory}
        case Began():
            return {"entry": "began", "schema": SCHEMA, **_fields(entry)}
        case Resumed() | Starting() | Folded() | TurnEnded() | Stopped():
            return {"entry": _NAMES[type(entry)], **_fields(entry)}


_NAMES: dict[type, str] = {
    Resumed: "resumed", Starting: "starting", Folded: "folded", TurnEnded: "turn_ended", Stopped: "stopped",
}  # fmt: skip


def entry_from_json(raw: JsonObject) -> Entry:
    """Give the entry that a JSON object stands for; raises `TranscriptFault` where it is misshapen."""
    body = {key: value for key, value in raw.items() if key not in ("entry", "schema", "redacted")}
    try:
        match raw.get("entry"):
            case "began":
                return _began(raw, body)
            case "added":
                return _added(raw)
            case "resumed":
                return Resumed(**{**body, "budget": Budget(**raw["budget"])})
            case "starting":
                return Starting(**body)
            case "folded":
                return Folded(Fold(**raw["fold"]))
            case "turn_ended":
                return TurnEnded(Spent(**raw["spent"]))
            case "stopped":
                return Stopped(**{**body, "spent": Spent(**raw["spent"])})
            case _:
                return Unknown(raw)
    except (KeyError, TypeError, ValueError) as fault:
        raise TranscriptFault(f"entry {raw.get('entry')!r} of a transcript is misshapen: {fault}") from fault


def _began(raw: JsonObject, body: JsonObject) -> Began:
    if raw.get("schema", 0) > SCHEMA:
        raise TranscriptFault(
            f"the transcript has schema {raw['schema']}, this version reads up to {SCHEMA}",
            hint="Use a newer pocketbuild to read it.",
        )
    return Began(**{**body, "budget": Budget(**raw["budget"])})


def _added(raw: JsonObject) -> Added:
    return Added(
        item_from_json(raw["item"]), Spent(**raw["spent"]), raw["memory"], raw.get("redacted", False)
    )


def item_to_json(item: ConversationItem) -> JsonObject:
    """Give the JSON object of a conversation item; its kind stands under `item`."""
    match item:
        case UserMessage(text):
            return {"item": "user", "text": text}
        case ToolResult():
            return {"item": "result", **_fields(item)}
        case Message():
            return {
                "item": "message",
                "parts": [_part_to_json(part) for part in item.parts],
                "finish_reason": item.finish_reason,
                "usage": _fields(item.usage) if item.usage else None,
                "diagnostics": [_fields(found) for found in item.diagnostics],
                "provider_data": item.provider_data,
            }


def _fields(value: Any) -> JsonObject:
    """Give the fields of a value, those of values in it too; JSON in it is shared, for nobody changes it."""
    nested = (Spent, Budget, Fold)
    fields = ((name, getattr(value, name)) for name in value.__slots__)
    return {name: _fields(found) if isinstance(found, nested) else found for name, found in fields}


def _part_to_json(part: Part) -> JsonObject:
    match part:
        case TextPart():
            return {"part": "text", **_fields(part)}
        case ReasoningPart():
            return {"part": "reasoning", **_fields(part)}
        case ToolCall():
            return {"part": "call", **_fields(part)}


def item_from_json(raw: JsonObject) -> ConversationItem:
    """Give the conversation item that a JSON object stands for."""
    match raw["item"]:
        case "user":
            return UserMessage(raw["text"])
        case "result":
            return ToolResult(**{key: value for key, value in raw.items() if key != "item"})
        case "message":
            return Message(
                parts=tuple(_part_from_json(part) for part in raw["parts"]),
                finish_reason=FinishReason(raw["finish_reason"]) if raw["finish_reason"] else None,
                usage=Usage(**raw["usage"]) if raw["usage"] else None,
                diagnostics=tuple(Diagnostic(**found) for found in raw["diagnostics"]),
                provider_data=raw["provider_data"],
            )
        case other:
            raise ValueError(f"no item is called {other!r}")


_PARTS: dict[str, Any] = {"text": TextPart, "reasoning": ReasoningPart, "call": ToolCall}


def _part_from_json(raw: JsonObject) -> Part:
    part: Part = _PARTS[raw["part"]](**{key: value for key, value in raw.items() if key != "part"})
    return part
