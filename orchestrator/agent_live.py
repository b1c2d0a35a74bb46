"""A run of the service's agent while it is at work in this process: its question, its progress, its stop."""

from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import anyio

from agent.approval import Question, Reply
from agent.progress import (
    BuildAdvanced,
    BuildSubmitted,
    Progress,
    RetryScheduled,
    ToolStarted,
    TurnStarted,
)

MAX_PROGRESS = 10_000
"""Newest events of a run that are kept for those who begin to follow it late."""


@dataclass(slots=True)
class LiveRun:
    """A run at work; `life` counts how often it was begun or gone on with, from 0.

    `ring` wakes who follows it. `doing` is what it does just now, in a few words. A question has an id of
    its own, so that an answer can say which one it is meant for.
    """

    life: int
    ring: Callable[[], None]
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    is_equipped: bool = False
    is_stop_asked: bool = False
    question: Question | None = None
    doing: str | None = None
    _asked: int = 0
    _reply: Reply = field(default_factory=lambda: Reply(is_allowed=False))
    _answered: anyio.Event = field(default_factory=anyio.Event)
    _seen: int = 0
    _progress: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=MAX_PROGRESS))

    @property
    def question_id(self) -> str | None:
        """The id of the question that is open, None where none is."""
        return None if self.question is None else f"{self.life}-{self._asked}"

    @property
    def state(self) -> Literal["asking", "running"]:
        """Whether it waits for a person."""
        return "running" if self.question is None else "asking"

    @property
    def asked(self) -> dict[str, Any] | None:
        """The question that is open, for those who may answer it."""
        if self.question is None:
            return None
        call, summary = self.question.call, self.question.summary
        return {"id": self.question_id, "tool": call.name, "arguments": call.arguments, "summary": summary}

    async def show(self, progress: Progress) -> None:
        """Take in a step of the run."""
        self.doing = _in_words(progress) or self.doing
        self._seen += 1
        self._progress.append({"event": type(progress).__name__, **asdict(progress)})
        self.ring()

    async def ask(self, question: Question) -> Reply:
        """Hold the run until somebody answers; one question is open at a time."""
        self._asked += 1
        self.question, self._answered = question, anyio.Event()
        self.ring()
        await self._answered.wait()
        return self._reply

    def answer(self, reply: Reply) -> None:
        """Let the run go on with a reply to its open question."""
        self.question, self._reply = None, reply
        self._answered.set()
        self.ring()

    def stop(self, *, at_once: bool) -> None:
        """Put the run down after its step at work, or at once; where it only waits for a person, at once."""
        self.is_stop_asked = True
        if at_once or self.question is not None:
            self.question = None
            self.scope.cancel()

    def events_after(self, number: int) -> list[tuple[int, dict[str, Any]]]:
        """Give the kept events behind the one of that number, each with its own; numbers count from 1."""
        first = self._seen - len(self._progress)
        events = list(self._progress)[max(0, number - first) :]
        return list(enumerate(events, start=self._seen - len(events) + 1))


def _in_words(progress: Progress) -> str | None:
    """Give a step in a few words, None for those that are part of another."""
    match progress:
        case TurnStarted(turn):
            return f"turn {turn}: the model is asked"
        case ToolStarted(call, summary):
            return f"{call.name} {summary}".strip()[:200]
        case BuildSubmitted(build_id):
            return f"build {build_id} submitted"
        case BuildAdvanced(build_id, state, task):
            return f"build {build_id}: {' '.join(word for word in (state, task) if word)}"
        case RetryScheduled(attempt, wait_s):
            return f"the provider failed; try {attempt + 1} in {wait_s:.0f} s"
        case _:
            return None
