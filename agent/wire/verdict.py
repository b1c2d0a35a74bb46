"""Judge the tool calls of a message once all of it has come: rebuilt, repeated or refused."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agent.message import JsonObject, ToolCall
from agent.wire.arguments import Unreadable, fingerprint
from agent.wire.draft import CallDraft, TextDraft
from agent.wire.json_text import mend_all, mend_surrogates

MALFORMED_NAME = "__malformed_tool_name__"
"""Stands where a tool's name never came."""

Conclude = Callable[[str, str, int], None]
"""Notes a diagnostic: code, detail, offset."""


@dataclass(frozen=True, slots=True)
class End:
    """How the response ended: the finish reason's word, and whether the model came to an end by itself."""

    word: str
    is_orderly: bool


def rebuild(
    drafts: Sequence[CallDraft], end: End, parts: Sequence[TextDraft | CallDraft], conclude: Conclude
) -> dict[int, ToolCall]:
    """Give the calls by their drafts' numbers; a repeated call is left out.

    Ids are unique within the message: a call whose id never came, or is another call's, gets
    `call_{n}`, n being its place among the calls.
    """
    calls: dict[int, ToolCall] = {}
    seen: set[tuple[str, str, str]] = set()
    origins = Counter(map(_origin, drafts))
    given = {draft.id for draft in drafts if draft.id}
    taken: set[str] = set()
    for draft in drafts:
        arguments, refusal = _judge(draft, end, draft is parts[-1], conclude)
        name = mend_surrogates(draft.name) or MALFORMED_NAME
        origin = _origin(draft)
        if origin and origins[origin] > 1:
            told = origin, name, fingerprint(arguments) if refusal is None else draft.raw_arguments
            if told in seen:
                detail = f"{name} came again under {origin} with the same arguments; it counts once"
                conclude("duplicate_tool_call", detail, draft.offset)
                continue
            seen.add(told)
        call_id = mend_surrogates(draft.id)
        if not call_id or call_id in taken:
            call_id = _free_id(len(calls), given | taken)
        taken.add(call_id)
        raw_id, raw_arguments = mend_surrogates(draft.id) or None, mend_surrogates(draft.raw_arguments)
        data = mend_all(draft.provider_data)
        calls[draft.number] = ToolCall(call_id, name, arguments, refusal, raw_id, raw_arguments, data)
    return calls


def _origin(draft: CallDraft) -> str:
    """Give what tells a call from another with the same content: its id, else its index."""
    return draft.id or ("" if draft.index is None else f"index {draft.index}")


def _free_id(place: int, taken: set[str]) -> str:
    call_id = f"call_{place}"
    while call_id in taken:
        call_id += "_"
    return call_id


def _judge(draft: CallDraft, end: End, is_last: bool, conclude: Conclude) -> tuple[JsonObject, str | None]:
    """Give a call's arguments, and why it must not run where it must not."""
    name = mend_surrogates(draft.name) or "the call without a name"
    found = draft.read_arguments()
    if draft.refusal is not None:
        found = Unreadable(draft.refusal)
    elif draft.lacks_a_part and not isinstance(found, Unreadable):
        found = Unreadable("lack a part that was lost on the way")
    elif not end.is_orderly and not draft.is_closed and (draft.is_plain_text or (draft.is_blank and is_last)):
        found = Unreadable(f"are cut off after {len(draft.raw_arguments)} characters", is_cut=True)
    if draft.needs_id and not draft.id:
        conclude("id_missing", f"{name} has no id", draft.offset)
    if not draft.name:
        conclude("name_missing", "a tool call has no name", draft.offset)
    if draft.is_orphan and not draft.name:
        conclude("orphan_arguments", "argument fragments belong to no announced call", draft.offset)
    if isinstance(found, Unreadable):
        for code in ("limit_exceeded", "invalid_arguments") if found.is_too_long else ("invalid_arguments",):
            conclude(code, f"the arguments of {name} {found.why}", draft.offset)
        return {}, _refusal(name, found, end)
    if not draft.name:
        chars = len(draft.raw_arguments) or len(fingerprint(found))
        what = (
            "Arguments came that belong to no announced call"
            if draft.is_orphan
            else "A call came without a name"
        )
        return found, (
            f"{what} ({chars} characters), so it is not known which tool was meant. Nothing was run. "
            "Send the call again with the tool's name and all of its arguments."
        )
    return found, None


def _refusal(name: str, found: Unreadable, end: End) -> str:
    """Tell the model what was wrong and what to send again."""
    if found.is_cut and not end.is_orderly:
        what = f" (finish reason: {end.word})"
        again = "Send the call again with shorter arguments, or split the work into several calls."
    elif found.is_too_long:
        what, again = "", "Split the work into several calls with shorter arguments."
    else:
        what, again = "", "Send the call again with its arguments as exactly one complete JSON object."
    return f"The arguments of {name} {found.why}{what}. Nothing was run. {again}"
