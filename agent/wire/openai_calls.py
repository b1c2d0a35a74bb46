"""Find the tool call that a fragment of an OpenAI chat stream belongs to.

By the specification its `index` tells. In practice servers count from one, send one index for all
calls, none, a head and its tail under different ones, mint ids anew or leave them out. What decides,
in this order: an id that is known, an index that is known, the call that is still incomplete. A new id
with a name, or a name after complete arguments, begins a new call even at a used index.
"""

import json
from typing import Any

from agent.message import JsonObject
from agent.wire.arguments import Unreadable, fingerprint
from agent.wire.assemble import Assembly
from agent.wire.collided_heads import TailLog
from agent.wire.draft import CallDraft
from agent.wire.scalars import identifier, whole_number


class CallRoutes:
    """Which call the next fragment belongs to, by all that came before it."""

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly
        self._growing: dict[int, CallDraft] = {}
        self._by_index: dict[int, CallDraft] = {}
        self._by_id: dict[str, CallDraft] = {}
        self._repeated_heads: dict[int, str] = {}
        self._repeated: CallDraft | None = None
        self._spare_ids: dict[int, str] = {}
        self._without_index: set[int] = set()
        self._legacy: CallDraft | None = None
        self._tails = TailLog(assembly)

    def take(self, raw: Any, place: int = 0, *, is_whole: bool = False) -> None:
        """Take one element of `tool_calls`, standing at `place` in its list.

        `is_whole` says that it comes from a complete message, where no element has an index.
        """
        if type(raw) is not dict:
            return
        function, index = raw.get("function"), raw.get("index")
        if type(function) is dict and len(function) == 1 and type(index) is int and not raw.get("id"):
            piece, draft = function.get("arguments"), self._growing.get(index)
            if type(piece) is str and draft is not None:
                if draft.is_touched and piece:
                    draft.pieces.append(piece)
                elif piece:
                    self._assembly.extend(draft, piece)
                return
        self._take_odd(raw, place, is_whole=is_whole)

    def take_legacy(self, function: JsonObject) -> None:
        """Take a piece of the deprecated `function_call`; such calls have no ids and come one by one."""
        name, piece = _name(function.get("name")), _text_of(function.get("arguments"))
        if not (name or piece):
            return
        if self._legacy is None or (name and self._begins_anew(self._legacy, name, piece)):
            self._legacy = self._assembly.open_call()
            self._legacy.needs_id = False
            self._assembly.diagnose(
                "legacy_function_call", "the call came in the deprecated function_call field"
            )
        self._fill(self._legacy, name, piece)

    def repair(self, calls: Any) -> None:
        """Fill gaps from the calls of a complete message that repeats what was streamed."""
        told = [raw for raw in calls if isinstance(raw, dict)] if isinstance(calls, list) else []
        known = [self._by_id.get(identifier(raw.get("id"))) for raw in told]
        unpaired = [draft for draft in self._assembly.calls if draft not in known]
        missing = len(told) - len(self._assembly.calls)
        for place, raw in enumerate(told):
            source = _source(raw)
            name, arguments = _name(source.get("name")), source.get("arguments")
            again = CallDraft(0, 0, name=name, whole=[arguments] if isinstance(arguments, str | dict) else [])
            draft = known[place] or next((draft for draft in unpaired if _is_told_by(draft, again)), None)
            if draft is None and missing > 0:
                missing -= 1
                self.take(raw, place, is_whole=True)
            elif draft is not None:
                unpaired = [other for other in unpaired if other is not draft]
                draft.id = draft.id or identifier(raw.get("id"))
                draft.take_name(name if not draft.name else None)
                draft.whole += again.whole

    def settle(self) -> None:
        """Put right what only the whole stream tells: collided heads, a call that came in both fields."""
        self._tails.settle()
        calls = self._assembly.calls
        if self._legacy is None or not any(draft.needs_id for draft in calls):
            return
        told = [_content(draft) for draft in calls if draft.needs_id]
        for draft in [draft for draft in calls if not draft.needs_id]:
            if (content := _content(draft)) is not None and content in told:
                self._assembly.drop_call(draft)
                detail = f"{draft.name} came in function_call and in tool_calls; it counts once"
                self._assembly.diagnose("duplicate_tool_call", detail, draft.offset)

    def report_renumbered(self) -> None:
        """Report calls whose index is not their place."""
        for draft in self._assembly.calls:
            if draft.index is not None and draft.index != draft.number:
                detail = f"the call at place {draft.number} came under the index {draft.index}"
                self._assembly.diagnose("index_renumbered", detail, draft.offset)

    def _take_odd(self, raw: JsonObject, place: int, *, is_whole: bool) -> None:
        source = _source(raw)
        call_id = (
            identifier(raw.get("id")) or identifier(raw.get("call_id")) or identifier(raw.get("tool_call_id"))
        )
        name, index = _name(source.get("name")), whole_number(raw.get("index"))
        key = "input" if source is raw.get("custom") else "arguments"
        piece = _text_of(next((source[own] for own in (key, "parameters", "input") if own in source), None))
        if not (call_id or name or piece):
            return
        if is_whole and index is None and call_id not in self._by_id:
            draft = self._assembly.open_call()
        else:
            draft = self._find(index, call_id, name, piece, place) or self._open(index, call_id, name)
            self._note_index(draft, index)
        if call_id:
            draft.id = draft.id or call_id
            self._by_id[call_id] = draft
            if draft.number in self._repeated_heads:
                self._repeated_heads[draft.number] = call_id
        draft.is_plain_text = draft.is_plain_text or key == "input"
        if isinstance(extra := raw.get("extra_content"), dict):
            draft.provider_data = {self._assembly.dialect: {"extra_content": extra}}
        self._fill(draft, name, piece)
        if self._tails.is_watching and piece and index is not None and not (call_id or name):
            self._tails.note(index, draft)

    def _fill(self, draft: CallDraft, name: object, piece: str) -> None:
        draft.take_name(name)
        if piece:
            self._assembly.extend(draft, piece)
        else:
            self._assembly.touch(draft)

    def _open(self, index: int | None, call_id: str, name: str) -> CallDraft:
        draft = self._assembly.open_call(index=index)
        draft.is_orphan = not (call_id or name)
        before = None if index is None else self._by_index.get(index)
        if before is not None and call_id and not before.has_arguments:
            self._tails.is_watching = True
            self._growing = {}
        if before is not None and not call_id:
            draft.id = self._spare_ids.pop(before.number, "")
        if self._repeated is not None:
            draft.take_name(self._repeated.name)
            draft.id = draft.id or self._repeated_heads.pop(self._repeated.number)
            self._repeated = None
        return draft

    def _note_index(self, draft: CallDraft, index: int | None) -> None:
        if index is not None:
            draft.index = index if draft.index is None else draft.index
            self._by_index[index] = draft
            if draft.number not in self._repeated_heads and not self._tails.is_watching:
                self._growing[index] = draft
        elif draft.number not in self._without_index:
            self._without_index.add(draft.number)
            self._assembly.diagnose(
                "index_missing", f"a fragment of the call at place {draft.number} has no index"
            )

    def _find(self, index: int | None, call_id: str, name: str, piece: str, place: int) -> CallDraft | None:
        """Give the call that a fragment belongs to, None where it begins a new one."""
        there = None if index is None else self._by_index.get(index)
        known = self._by_id.get(call_id) if call_id else None
        if there is not None and call_id and there.id == call_id:
            known = there
        if known is not None:
            if not name:
                return self._goes_on(known, piece)
            if there is known or index is None or known.index == index:
                return None if self._begins_anew(known, name, piece) else known
            has_begun = known.pieces or known.index is None
            is_same = known.name == name and has_begun and not known.has_arguments
            return known if is_same else None
        if there is not None:
            return self._find_at_index(there, call_id, name, piece)
        if index is None:
            return self._find_without_index(call_id, name, piece, place)
        if call_id:
            return self._find_without_index(call_id, name, piece, place) if self._is_headless() else None
        return self._find_by_order(index, name, piece)

    def _find_at_index(self, there: CallDraft, call_id: str, name: str, piece: str) -> CallDraft | None:
        if not name:
            if call_id and there.id and there.has_arguments and not piece:
                self._spare_ids[there.number] = call_id
            return there if call_id else self._goes_on(there, piece)
        if call_id and there.id:
            return None
        return None if self._begins_anew(there, name, piece) else there

    def _find_without_index(self, call_id: str, name: str, piece: str, place: int) -> CallDraft | None:
        last = self._last()
        if last is None:
            return None
        if call_id:
            is_late_id = not last.id and not (name and last.name) and not (piece and last.has_arguments)
            goes_on = not name and not last.has_arguments
            return last if is_late_id or goes_on else None
        if not name:
            return self._goes_on(last, piece)
        if not last.name:
            return last
        if place or self._begins_anew(last, name, piece):
            return None
        is_next_whole_call = name != last.name and last.is_blank and piece
        return None if is_next_whole_call else last

    def _is_headless(self) -> bool:
        """Whether the last call has neither an index nor an id yet."""
        last = self._last()
        return last is not None and last.index is None and not last.id

    def _find_by_order(self, index: int, name: str, piece: str) -> CallDraft | None:
        """Find the call for a tail under an index that no head had: heads and tails may be counted apart."""
        calls, last = self._assembly.calls, self._last()
        if name:
            is_begun = last is not None and last.index is None and not last.has_arguments
            return last if last is not None and is_begun and last.name == name else None
        if 0 <= index < len(calls):
            draft = calls[index]
            if draft.index is None or (draft.index != index and not draft.has_arguments):
                return draft
        if last is not None and last.number in self._repeated_heads:
            return self._goes_on(last, piece)
        return last if last is not None and not last.has_arguments else None

    def _begins_anew(self, draft: CallDraft, name: str, piece: str) -> bool:
        """Whether a name that comes to a call that has one begins another call."""
        if not draft.name:
            return False
        if name != draft.name:
            return draft.has_object
        if not draft.has_arguments:
            return False
        if not piece.strip():
            # A repeat of the head, or the head of another call: the next fragment will tell.
            self._repeated_heads[draft.number] = ""
            self._growing = {at: call for at, call in self._growing.items() if call is not draft}
        return _begins_object(piece)

    def _goes_on(self, draft: CallDraft, piece: str) -> CallDraft | None:
        """Give the call itself, None if its head was repeated and these are another call's arguments."""
        if draft.number in self._repeated_heads and _begins_object(piece):
            self._repeated = draft
            return None
        return draft

    def _last(self) -> CallDraft | None:
        return self._assembly.calls[-1] if self._assembly.calls else None


def _begins_object(piece: str) -> bool:
    """Whether a fragment can be the first of a call's arguments: an object, or one encoded as a string."""
    return piece.lstrip()[:1] in ("{", '"')


def _content(draft: CallDraft) -> tuple[str, str] | None:
    """Give what a call says, None where it cannot run."""
    found = draft.read_arguments()
    return None if isinstance(found, Unreadable) or not draft.name else (draft.name, fingerprint(found))


def _is_told_by(draft: CallDraft, again: CallDraft) -> bool:
    """Whether a call that comes again is this one: the same, or what this one lacks."""
    if not draft.has_arguments:
        return draft.name in ("", again.name)
    return draft.name == again.name and _content(draft) == _content(again)


def _source(raw: JsonObject) -> JsonObject:
    """Give the object that holds name and arguments: `function`, `custom`, or the call itself."""
    function = raw.get("function") if isinstance(raw.get("function"), dict) else raw.get("custom")
    return function if isinstance(function, dict) else raw


def _name(value: Any) -> str:
    return value if isinstance(value, str) and value.strip() else ""


def _text_of(arguments: Any) -> str:
    """Give arguments as JSON text; servers also send them as an object."""
    if arguments is None or isinstance(arguments, str):
        return arguments or ""
    return json.dumps(arguments, ensure_ascii=False)
