"""Where a run stands: the state that its transcript's entries add up to.

A running loop and a resumed one go through the same `apply`, so a run that was killed anywhere goes on
as if it had not been.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from agent.budget import Budget, Spent
from agent.compact import apply_fold, chars_of, tokens_of
from agent.decide import Flaws, flaws_after
from agent.entries import Added, Began, Entry, Folded, Resumed, Starting, Stopped, TurnEnded, Unknown
from agent.errors import TranscriptFault
from agent.message import ConversationItem, JsonObject, Message, ToolResult, UserMessage


@dataclass(slots=True)
class Standing:
    """Where a run stands.

    `speaker` is the provider and model that answer. `flaws` counts those before the last message.
    `results` are those of the last message's calls that have ended, `earlier` the last notes of calls
    that have begun, `unsafe` the ids of calls whose arguments lost a secret when they were written.
    `memory` is what the build desk knows.
    """

    budget: Budget
    speaker: tuple[str, str]
    items: list[ConversationItem] = field(default_factory=list)
    spent: Spent = field(default_factory=Spent)
    flaws: Flaws = field(default_factory=Flaws)
    memory: JsonObject | None = None
    results: dict[str, ToolResult] = field(default_factory=dict)
    earlier: dict[str, JsonObject] = field(default_factory=dict)
    unsafe: frozenset[str] = frozenset()
    stopped: Stopped | None = None
    _chars: int = 0
    _last: Message | None = None

    @classmethod
    def replay(cls, entries: Iterable[Entry]) -> "Standing":
        """Give where the run of these entries stands; the first must be its beginning."""
        first, *rest = entries
        if not isinstance(first, Began):
            raise TranscriptFault("the transcript does not begin with the beginning of a run")
        state = cls(first.budget, (first.provider, first.model))
        for entry in rest:
            state.apply(entry)
        return state

    @property
    def pending(self) -> Message | None:
        """The last message, while it has not been acted upon or not wholly."""
        return self._last if self.items and self.items[-1] is self._last else None

    @property
    def tokens(self) -> int:
        """A guess of how many tokens the conversation takes."""
        return tokens_of(self._chars)

    def apply(self, entry: Entry) -> None:
        """Take in what has happened."""
        match entry:
            case Added():
                self._add(entry)
            case Starting(call_id, note):
                self.earlier[call_id] = note
            case Folded(fold):
                folded = apply_fold(tuple(self.items), fold)
                self.items, self._chars = [], 0
                self._extend(folded)
            case TurnEnded(spent):
                self.spent = spent
            case Resumed():
                self._resume(entry)
            case Stopped():
                self.spent, self.stopped = entry.spent, entry
            case Began() | Unknown():
                pass

    def _resume(self, entry: Resumed) -> None:
        """Start flaws anew, and drop what another model signed: its provider alone can read that."""
        self.budget, self.stopped, self.flaws = entry.budget, None, Flaws()
        if (entry.provider, entry.model) != self.speaker:
            is_pending = self.pending is not None
            self.items = [i.without_provider_data() if isinstance(i, Message) else i for i in self.items]
            last = self.items[-1] if self.items else None
            self._last = last if is_pending and isinstance(last, Message) else self._last
            self.speaker = (entry.provider, entry.model)

    def _add(self, entry: Added) -> None:
        self.spent += entry.spent
        self.memory = entry.memory or self.memory
        match entry.item:
            case ToolResult():
                self.results[entry.item.call_id] = entry.item
                self._settle()
            case Message():
                if self._last:
                    self.flaws = flaws_after(self.flaws, self._last)
                self._last = entry.item
                self._extend((entry.item,))
                if entry.is_redacted:
                    self.unsafe = frozenset(call.id for call in entry.item.tool_calls)
            case UserMessage():
                self._extend((entry.item,))

    def _settle(self) -> None:
        """Once all calls have results, put those behind the message in the order of the calls."""
        calls = self.pending.tool_calls if self.pending else ()
        if calls and all(call.id in self.results for call in calls):
            self._extend(self.results[call.id] for call in calls)
            self.results, self.earlier, self.unsafe = {}, {}, frozenset()

    def _extend(self, items: Iterable[ConversationItem]) -> None:
        for item in items:
            self.items.append(item)
            self._chars += chars_of(item)
