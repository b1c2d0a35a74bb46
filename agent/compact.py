"""Keep a conversation within what a model can read, by folding what matters least first.

Folding is a pure function of the conversation and a small `Fold` value; a transcript stores the value
and comes to the same conversation. First go build digests that a later build has superseded, then old
tool results, then whole turns, oldest first, each call and result becoming one line. A call is never
parted from its result, the assignment stays, and reasoning stays with its message or goes with it.
"""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import accumulate

from agent.message import (
    ConversationItem,
    Message,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolResult,
    UserMessage,
)

_CHARS_PER_TOKEN = 3.2
"""A low guess for code and English in the tokenizers of 2026: better to fold early than to be refused."""
_KEPT_TURNS = 4
_WHOLE_TURNS = 40
"""Once results are folded, older turns than these say no more than their lines do."""
_KEPT_RESULT_CHARS = 200
_OUTLINE_CHARS = 160
_LOOKED_AT_CHARS = 2000
_KEPT_OUTLINE_LINES = 200
_HEADING = "[Earlier in this run, folded to one line each]"
BUILD_TOOL = "build_gradle_project"
"""The tool whose results are digests."""


@dataclass(frozen=True, slots=True)
class Fold:
    """What is folded: results before `results_before`, turns before `turns_before` (item positions).

    `digests` says that superseded digests are folded wherever they stand.
    """

    digests: bool = False
    results_before: int = 0
    turns_before: int = 0


def estimate_tokens(items: Iterable[ConversationItem]) -> int:
    """Guess how many tokens the items take in a request."""
    return tokens_of(sum(map(chars_of, items)))


def tokens_of(chars: int) -> int:
    """Guess how many tokens so many characters take."""
    return int(chars / _CHARS_PER_TOKEN)


def chars_of(item: ConversationItem) -> int:
    """Give how many characters an item takes in a request, about."""
    match item:
        case UserMessage(text):
            return len(text) + 20
        case ToolResult():
            return len(item.content) + len(item.name) + 40
        case Message():
            return sum(map(_part_chars, item.parts)) + 20


def _part_chars(part: TextPart | ReasoningPart | ToolCall) -> int:
    opaque = len(str(part.provider_data)) if part.provider_data else 0
    match part:
        case TextPart() | ReasoningPart():
            return len(part.text) + opaque
        case ToolCall():
            return len(part.name) + max(len(part.raw_arguments), len(str(part.arguments))) + 40 + opaque


def plan_fold(items: tuple[ConversationItem, ...], *, used_tokens: int, allowed_tokens: int) -> Fold | None:
    """Give how to fold a conversation that takes `used_tokens` of `allowed_tokens`, None if it fits.

    Once three quarters are used, folding goes down to a half, in one step: every fold costs the
    provider's prompt cache. The last four turns are never folded; None also where nothing more can go.
    """
    if used_tokens < allowed_tokens * 3 // 4:
        return None
    sizes = _Sizes(items)
    before = sizes.after(Fold())
    target = before * (allowed_tokens / 2) / max(used_tokens, 1)
    starts = [position for position, item in enumerate(items) if isinstance(item, Message)]
    kept_from = starts[-_KEPT_TURNS] if len(starts) > _KEPT_TURNS else 0
    lines_before = starts[-_WHOLE_TURNS] if len(starts) > _WHOLE_TURNS else 0
    folds = [Fold(digests=True), Fold(True, kept_from, lines_before)]
    folds += [
        Fold(True, kept_from, turns_before=start) for start in starts if lines_before < start <= kept_from
    ]
    # Each fold takes more away than the one before it, so the first that fits is found by halving.
    first = bisect_left(folds, True, key=lambda fold: sizes.after(fold) <= target)
    best = folds[min(first, len(folds) - 1)]
    return best if estimate_tokens(apply_fold(items, best)) < tokens_of(before) else None


class _Sizes:
    """How many characters a conversation takes after a fold, reckoned without folding it."""

    def __init__(self, items: tuple[ConversationItem, ...]) -> None:
        last_build = _last_build(items)
        whole = [chars_of(item) for item in items]
        short = [
            chars_of(_short(item, False)) if isinstance(item, ToolResult) else size
            for item, size in zip(items, whole, strict=True)
        ]
        digests = [
            small if _is_digest(item) and position < last_build else size
            for position, (item, size, small) in enumerate(zip(items, whole, short, strict=True))
        ]
        lines = [[len(line) + 1 for line in _outline(item)] for item in items[1:]]
        self._first = whole[0] if whole else 0
        self._whole, self._short, self._digests = map(_sums, (whole, short, digests))
        self._lines_before = _sums([0, *map(len, lines)])
        self._outline = _sums([size for sizes in lines for size in sizes])

    def after(self, fold: Fold) -> int:
        """Give the characters that are left, about."""
        gone, last = max(1, fold.turns_before), len(self._whole) - 1
        kept = self._digests if fold.digests else self._whole
        shortened = max(gone, fold.results_before)
        left = self._short[shortened] - self._short[gone] + kept[last] - kept[shortened]
        if fold.turns_before <= 1:
            return self._first + left
        lines = self._lines_before[gone]
        return self._first + left + self._outline[lines] - self._outline[max(0, lines - _KEPT_OUTLINE_LINES)]


def _sums(sizes: list[int]) -> list[int]:
    """Give the sum of the sizes before each place, and of all."""
    return list(accumulate(sizes, initial=0))


def apply_fold(items: tuple[ConversationItem, ...], fold: Fold) -> tuple[ConversationItem, ...]:
    """Give the folded conversation; every call that is left still has its result beside it."""
    last_build = _last_build(items)
    gone = items[1 : fold.turns_before][-_KEPT_OUTLINE_LINES:]
    outline = [line for item in gone for line in _outline(item)]
    folded = list(items[:1])
    if outline:
        folded.append(UserMessage("\n".join([_HEADING, *outline[-_KEPT_OUTLINE_LINES:]])))
    for position, item in enumerate(items[max(1, fold.turns_before) :], start=max(1, fold.turns_before)):
        is_superseded = fold.digests and _is_digest(item) and position < last_build
        if isinstance(item, ToolResult) and (is_superseded or position < fold.results_before):
            folded.append(_short(item, is_superseded))
        else:
            folded.append(item)
    return tuple(folded)


def _last_build(items: tuple[ConversationItem, ...]) -> int:
    """Give the place of the newest digest, -1 where there is none."""
    return max((position for position, item in enumerate(items) if _is_digest(item)), default=-1)


def _is_digest(item: ConversationItem) -> bool:
    return isinstance(item, ToolResult) and item.name == BUILD_TOOL


def _short(result: ToolResult, is_superseded: bool) -> ToolResult:
    if len(result.content) <= _KEPT_RESULT_CHARS:
        return result
    head = result.content[:_KEPT_RESULT_CHARS].rsplit("\n", 1)[0]
    why = "a later build superseded this digest" if is_superseded else "call the tool again to see the rest"
    return replace(result, content=f"{head}\n[folded: {why}]")


def _outline(item: ConversationItem) -> list[str]:
    match item:
        case UserMessage(text) if text.startswith(_HEADING):
            return text.splitlines()[1:]
        case UserMessage(text):
            return [f"- told: {_line(text)}"]
        case ToolResult():
            return [f"  → {'error: ' if item.is_error else ''}{_line(item.content)}"]
        case Message():
            said = [f"- you said: {_line(item.text)}"] if item.text.strip() else []
            return said + [
                f"- you called {call.name} {_line(str(call.arguments))}" for call in item.tool_calls
            ]


def _line(text: str) -> str:
    head = text[:_LOOKED_AT_CHARS]
    # A word and the blank before it take two characters at least, so no more words are looked for.
    flat = " ".join(head.split(None, _OUTLINE_CHARS)[:_OUTLINE_CHARS])
    is_whole = len(head) == len(text) and len(flat) <= _OUTLINE_CHARS
    return flat if is_whole else flat[: _OUTLINE_CHARS - 1] + "…"
