"""Who decides whether a call may run: rules by tool and argument, then the mode, then a person."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any

import anyio
from pydantic_core import to_json

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


Named = Mapping[str, tuple[str, ...]]
"""What a call is about: texts by the names of its arguments, defaults too; files by their real names."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A verdict on the calls whose tool and arguments match (shell wildcards).

    Each of `arguments` must match what the call names by that argument. Where that is several things, such as
    the files of a patch, one that matches is enough to deny or to ask; to allow, all must match.
    """

    verdict: Verdict
    tool: str
    arguments: dict[str, str] = field(default_factory=dict)

    def matches(self, tool: str, named: Named) -> bool:
        """Say whether the rule is about a call of this tool."""
        enough = all if self.verdict is Verdict.ALLOW else any
        return fnmatchcase(tool, self.tool) and all(
            enough(fnmatchcase(text, pattern) for text in named.get(name) or ("",))
            for name, pattern in self.arguments.items()
        )


def named_by(arguments: Mapping[str, Any], known: Named | None = None) -> Named:
    """Give what arguments name as texts: strings as they are, items of lists each, all else as JSON.

    `known` is what the tool itself knows better.
    """
    return {name: _texts(value) for name, value in arguments.items()} | dict(known or {})


def _texts(value: Any) -> tuple[str, ...]:
    if isinstance(value, list | tuple):
        return tuple(text for item in value for text in _texts(item))
    return (value if isinstance(value, str) else to_json(value, inf_nan_mode="strings").decode(),)


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

    @property
    def mode(self) -> Mode:
        """What happens to calls that no rule names."""
        return self._mode

    async def refusal(
        self, call: ToolCall, effect: Effect, summary: str, named: Callable[[], Named]
    ) -> str | None:
        """Give the reason why the call must not run, None where it may.

        `call` bears the tool's own name, whatever decoration the model put around it. `named` is asked only
        where there are rules.
        """
        match self._verdict(call.name, named() if self._rules else {}, effect):
            case Verdict.ALLOW:
                return None
            case Verdict.DENY:
                return (
                    f"not run: {call.name} is not allowed here ({self._mode} mode or a rule). Do without it."
                )
            case Verdict.ASK:
                return await self._ask(Question(call, effect, summary))

    def _verdict(self, tool: str, named: Named, effect: Effect) -> Verdict:
        for rule in self._rules:
            if rule.matches(tool, named):
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
