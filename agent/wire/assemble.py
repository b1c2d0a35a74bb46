"""Put a message together from what a dialect's decoder finds: the only place that rebuilds or refuses calls.

A decoder says what came (`text`, `reasoning`, `open_call`, `extend`, `finish`, `fail`); the assembly
keeps it in order and judges it once, at the end. Nothing is dropped in silence: what cannot be rebuilt
stays in the message as a call that must not run, with a reason in words for the model.
"""

from typing import Any

from agent.message import (
    Diagnostic,
    Dialect,
    FinishReason,
    JsonObject,
    Message,
    ReasoningPart,
    TextPart,
    ToolCall,
)
from agent.wire import finish
from agent.wire.draft import CallDraft, TextDraft
from agent.wire.event import CallDelta, ReasoningDelta, StreamEvent, TextDelta, UsageReport
from agent.wire.failure import lone_message
from agent.wire.json_text import mend_all, mend_surrogates
from agent.wire.limits import MAX_CALLS, MAX_DIAGNOSTICS, MAX_PARTS, LimitExceeded
from agent.wire.markup import find_call_markup
from agent.wire.sse import EventReader
from agent.wire.think_tag import OPEN_TAG, ThinkTag
from agent.wire.usage import Counts
from agent.wire.verdict import End, rebuild

_ORDERLY = (FinishReason.STOP, FinishReason.TOOL_CALLS)


class Assembly:
    """A message that is growing; `has_end_marker` is for dialects whose last event is a marker."""

    def __init__(self, dialect: Dialect, reader: EventReader) -> None:
        self.dialect = dialect
        self._reader = reader
        self.counts = Counts()
        self.calls: list[CallDraft] = []
        self.parts: list[TextDraft | CallDraft] = []
        self._open: TextDraft | None = None
        self._think: ThinkTag | None = ThinkTag()
        self._touched: list[TextDraft | CallDraft] = []
        self._diagnostics: list[Diagnostic] = []
        self._fresh_diagnostics: list[Diagnostic] = []
        self._word = self._note = ""
        self._word_offset = 0
        self._is_tool_word_too = False
        self._has_failed = False
        self._suspicion: tuple[str, int] | None = None
        self.has_end_marker = False

    @property
    def offset(self) -> int:
        """Where in the body the event begins that is being decoded."""
        return self._reader.offset

    @property
    def event_name(self) -> str:
        """What the `event:` line of the event said that is being decoded, empty where it has none."""
        return self._reader.name

    # What came

    def text(self, piece: str) -> TextDraft | None:
        """Add visible text; a `<think>` block at its very start is thinking.

        Gives where the text went, None while it is held back.
        """
        if self._think is None:
            draft = self._open
            if draft is not None and draft.is_touched and not draft.is_reasoning:
                draft.fresh.append(piece)
                return draft
            return self._add(piece, is_reasoning=False)
        thinking, text = self._think.feed(piece)
        if thinking:
            self._add(thinking, is_reasoning=True, is_tagged=True)
        if self._think.is_over:
            self._think = None
        return self._add(text, is_reasoning=False) if text else None

    def reasoning(self, piece: str) -> TextDraft:
        """Add thinking; gives where it went."""
        return self._add(piece, is_reasoning=True)

    def end_part(self) -> None:
        """Let the next text or thinking begin a part of its own."""
        self._open = None

    def open_part(self, *, is_reasoning: bool) -> TextDraft:
        """Give the text or thinking that is growing, begun anew where none is."""
        draft = self._open
        if draft is None or draft.is_reasoning is not is_reasoning or draft.is_tagged:
            draft = self._open = TextDraft(self.offset, is_reasoning)
            self._begin(draft)
        return draft

    def opaque_part(self, data: Any, *, is_reasoning: bool = False) -> None:
        """Keep what only this dialect understands, in its place among the parts."""
        self._begin(TextDraft(self.offset, is_reasoning, provider_data={self.dialect: data}))
        self._open = None

    def open_call(self, *, index: int | None = None) -> CallDraft:
        """Begin a tool call."""
        if len(self.calls) >= MAX_CALLS:
            raise LimitExceeded(f"a message takes {MAX_CALLS} tool calls at most")
        draft = CallDraft(len(self.calls), self.offset, index=index)
        self.calls.append(draft)
        self._begin(draft)
        self._open = None
        return draft

    def drop_call(self, draft: CallDraft) -> None:
        """Take back a call that turned out to be none; those behind it move up."""
        self.calls.remove(draft)
        self.parts.remove(draft)
        for number, call in enumerate(self.calls):
            call.number = number

    def extend(self, draft: CallDraft, piece: str) -> None:
        """Add a fragment to the arguments of a call."""
        draft.pieces.append(piece)
        if not draft.is_touched:
            draft.is_touched = True
            self._touched.append(draft)

    def touch(self, draft: CallDraft) -> None:
        """Tell those who watch that something about a call came, if only its name."""
        if not draft.is_touched:
            draft.is_touched = True
            self._touched.append(draft)

    def finish(self, word: object, *, is_tool_word_too: bool = False, note: object = None) -> None:
        """Take the provider's word for the end; of several the last counts, null and empty are none.

        `is_tool_word_too` says that the dialect has the same word for an end with calls and without;
        `note` is what the provider says of it besides.
        """
        if isinstance(word, str) and finish.finish_reason(word) is not None:
            self._word, self._word_offset = word, self.offset
            self._note = f": {note}" if isinstance(note, str) and note else ""
            self._is_tool_word_too = is_tool_word_too

    def fail(self, detail: str, offset: int | None = None) -> None:
        """Take that the provider could not go on; no later word makes up for it."""
        if not self._has_failed or len(self._diagnostics) < MAX_DIAGNOSTICS:
            self.diagnose("provider_error", detail, offset)
        self._has_failed = True

    def suspect(self, event: JsonObject) -> None:
        """Take an event of no known kind: if nothing else comes, its words are why."""
        if self._suspicion is None and (words := lone_message(event)):
            self._suspicion = words, self.offset

    def exceed(self, detail: str) -> None:
        """Take that a limit was passed; the message is an error, with what came before."""
        self._has_failed = True
        self.diagnose("limit_exceeded", detail)

    def restart(self) -> None:
        """Forget all parts and the word for the end: they were of another answer than the one to read."""
        self.parts, self.calls, self._touched = [], [], []
        self._open, self._think, self._word = None, ThinkTag(), ""

    def diagnose(self, code: str, detail: str, offset: int | None = None) -> None:
        """Note something odd, at the event being decoded or at `offset`; after many, only failures."""
        if len(self._diagnostics) < MAX_DIAGNOSTICS or code in ("provider_error", "limit_exceeded"):
            found = Diagnostic(code, mend_surrogates(detail), self.offset if offset is None else offset)
            self._diagnostics.append(found)
            self._fresh_diagnostics.append(found)

    @property
    def is_empty(self) -> bool:
        """Whether nothing at all came that belongs to a message."""
        return not (self.parts or self._word or self._has_failed or self.counts.usage())

    @property
    def has_finish_word(self) -> bool:
        """Whether the provider said how the response ended."""
        return bool(self._word)

    def has_text(self, *, is_reasoning: bool) -> bool:
        """Whether text, or thinking, came."""
        held = not is_reasoning and self._think is not None and (self._think.is_inside or self._think.close())
        return bool(held) or any(
            isinstance(part, TextDraft) and part.is_reasoning is is_reasoning and part.text
            for part in self.parts
        )

    # What it comes to

    def take_events(self) -> list[StreamEvent]:
        """Give what changed since the last time, for those who watch."""
        if not (self._touched or self._fresh_diagnostics or self.counts.is_changed):
            return []
        events: list[StreamEvent] = [*self._fresh_diagnostics]
        self._fresh_diagnostics = []
        for draft in self._touched:
            draft.is_touched = False
            text = draft.take_fresh()
            if isinstance(draft, CallDraft):
                events.append(CallDelta(draft.number, draft.name, text, draft.told_chars))
            elif text:
                events.append(ReasoningDelta(text) if draft.is_reasoning else TextDelta(text))
        self._touched = []
        if self.counts.is_changed and (usage := self.counts.usage()):
            self.counts.is_changed = False
            events.append(UsageReport(usage))
        return events

    def close(self, *, has_end_marker: bool, size_bytes: int) -> Message:
        """Give the message. Without a finish word, an end marker still makes an orderly end."""
        if self._suspicion is not None and self.is_empty:
            self.fail(*self._suspicion)
        self._close_think_tag()
        reason = FinishReason.ERROR if self._has_failed else finish.finish_reason(self._word)
        is_orderly = reason in _ORDERLY or (reason is None and has_end_marker)
        end = End(reason or "none", is_orderly)
        calls = rebuild(self.calls, end, self.parts, self._conclude)
        has_executable = any(call.is_executable for call in calls.values())
        if reason is None and not has_end_marker:
            self._conclude("stream_truncated", "the body ended before the response did", size_bytes)
        elif is_orderly:
            reason = self._orderly_reason(reason, has_executable)
        ended = f"the provider ended with {self._word}{self._note}"
        if finish.tells_failed_call(self._word):
            self._conclude("no_executable_tool_call", ended, self._word_offset)
        elif reason is FinishReason.ERROR and not self._has_failed:
            self._conclude("provider_error", ended, self._word_offset)
        parts = [part for draft in self.parts if (part := self._part(draft, calls))]
        if (at := find_call_markup("".join(part.text for part in parts if isinstance(part, TextPart)))) >= 0:
            first = next(part.offset for part in self.parts if isinstance(part, TextDraft))
            self._conclude("tool_call_in_text", f"markup of a tool call at character {at} of the text", first)
        return Message(tuple(parts), reason, self.counts.usage(), tuple(self._diagnostics))

    def _orderly_reason(self, reason: FinishReason | None, has_executable: bool) -> FinishReason | None:
        if has_executable:
            if reason is FinishReason.STOP and not self._is_tool_word_too:
                detail = f"the provider ended with {self._word} although it called tools"
                self._conclude("finish_reason_mismatch", detail, self._word_offset)
            return FinishReason.TOOL_CALLS
        if reason is FinishReason.TOOL_CALLS or (self._is_tool_word_too and self.calls):
            detail = f"the provider ended with {self._word}, but no call can run"
            self._conclude("no_executable_tool_call", detail, self._word_offset)
            return FinishReason.TOOL_CALLS
        return reason

    def _conclude(self, code: str, detail: str, offset: int) -> None:
        """Note what only the end shows; no limit keeps it out."""
        self._diagnostics.append(Diagnostic(code, mend_surrogates(detail), offset))

    def _begin(self, draft: TextDraft | CallDraft) -> None:
        if len(self.parts) >= MAX_PARTS:
            raise LimitExceeded(f"a message takes {MAX_PARTS} parts at most")
        self.parts.append(draft)

    def _add(self, piece: str, *, is_reasoning: bool, is_tagged: bool = False) -> TextDraft:
        draft = self._open
        if draft is None or draft.is_reasoning is not is_reasoning or draft.is_tagged is not is_tagged:
            draft = self._open = TextDraft(self.offset, is_reasoning, is_tagged)
            self._begin(draft)
        draft.fresh.append(piece)
        if not draft.is_touched:
            draft.is_touched = True
            self._touched.append(draft)
        return draft

    def _close_think_tag(self) -> None:
        """Turn thinking whose tag never closed into the text that it is."""
        think, self._think = self._think, None
        if think is None:
            return
        if think.is_inside:
            tagged = [part for part in self.parts if isinstance(part, TextDraft) and part.is_tagged]
            for draft in tagged:
                draft.is_reasoning = draft.is_tagged = False
            if not tagged:
                self._add(OPEN_TAG, is_reasoning=False)
            else:
                tagged[0].replace(OPEN_TAG + tagged[0].text)
                self._open = tagged[-1]
        if held := think.close():
            self._add(held, is_reasoning=False)

    def _part(
        self, draft: TextDraft | CallDraft, calls: dict[int, ToolCall]
    ) -> TextPart | ReasoningPart | ToolCall | None:
        if isinstance(draft, CallDraft):
            return calls.get(draft.number)
        data: JsonObject | None = draft.provider_data
        if draft.is_tagged:
            data = {self.dialect: {"is_tagged": True}}
        if not draft.text and data is None:
            return None
        return (ReasoningPart if draft.is_reasoning else TextPart)(draft.text, mend_all(data))
