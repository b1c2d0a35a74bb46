"""Who decides whether a call may run: rules by tool and argument, then the mode, then a person."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase

import anyio

from agent.message import ToolCall
from agent.tools.tool import Effect


class Verdict(StrEnum):
    """What a rule says of a call."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


class Mode(StrEnum):
    """What happens to calls that no rule names.

    `yes` allows all; `ask` asks for everything but looking and building; `read_only` denies everything
    but looking and building. Building is held in check by the budget.
    """

    YES = "yes"
    ASK = "ask"
    READ_ONLY = "read_only"


@dataclass(frozen=True, slots=True)
class Rule:
    """A verdict on the calls whose tool and arguments match (shell wildcards).

    Each of `arguments` must match the text of the call's argument of that name.
    """

    verdict: Verdict
    tool: str
    arguments: dict[str, str] = field(default_factory=dict)

    def matches(self, call: ToolCall) -> bool:
        """Say whether the rule is about this call."""
        return fnmatchcase(call.name, self.tool) and all(
            fnmatchcase(str(call.arguments.get(name, "")), pattern)
            for name, pattern in self.arguments.items()
        )


@dataclass(frozen=True, slots=True)
class Question:
    """What a person is asked: may this call run?"""

    call: ToolCall
    effect: Effect
    summary: str


@dataclass(frozen=True, slots=True)
class Reply:
    """What the person says; `for_all` stands for all later calls of the tool, `reason` is for the model."""

    is_allowed: bool
    for_all: bool = False
    reason: str = ""


Asker = Callable[[Question], Awaitable[Reply]]
"""Asks a person, in the terminal, over HTTP or by elicitation."""


class Gate:
    """Lets calls through or says why not. The first rule that matches wins; without an asker, ask is deny."""

    def __init__(self, mode: Mode, rules: tuple[Rule, ...] = (), asker: Asker | None = None) -> None:
        self._mode = mode
        self._rules = rules
        self._asker = asker
        self._allowed_by_person: set[str] = set()
        self._asking = anyio.Lock()

    async def refusal(self, call: ToolCall, effect: Effect, summary: str) -> str | None:
        """Give the reason why the call must not run, None where it may."""
        match self._verdict(call, effect):
            case Verdict.ALLOW:
                return None
            case Verdict.DENY:
                return (
                    f"not run: {call.name} is not allowed here ({self._mode} mode or a rule). Do without it."
                )
            case Verdict.ASK:
                return await self._ask(Question(call, effect, summary))

    def _verdict(self, call: ToolCall, effect: Effect) -> Verdict:
        for rule in self._rules:
            if rule.matches(call):
                return rule.verdict
        if effect in (Effect.READS, Effect.BUILDS) or self._mode is Mode.YES:
            return Verdict.ALLOW
        return Verdict.ASK if self._mode is Mode.ASK else Verdict.DENY

    async def _ask(self, question: Question) -> str | None:
        name = question.call.name
        if self._asker is None:
            return f"not run: {name} needs a person's approval and nobody is there to give it. Do without it."
        # Calls that only look run together; a person is asked one thing at a time.
        async with self._asking:
            if name in self._allowed_by_person:
                return None
            reply = await self._asker(question)
            if reply.is_allowed and reply.for_all:
                self._allowed_by_person.add(name)
        if reply.is_allowed:
            return None
        return f"not run: the person refused {name}{f': {reply.reason}' if reply.reason else ''}."
