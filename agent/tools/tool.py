"""What a tool is: a checked set of arguments and an async function that gives text for the model."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from agent.budget import Spent
from agent.errors import ToolFault
from agent.message import JsonObject, ToolCall, ToolSpec
from agent.progress import OnProgress


class Effect(StrEnum):
    """What a call may do besides giving text; decides about approval, order and repetition."""

    READS = "reads"
    WRITES = "writes"
    BUILDS = "builds"
    REACHES_OUT = "reaches_out"


class Arguments(BaseModel):
    """Arguments of a tool, as a model sends them; unknown names are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


@dataclass(frozen=True, slots=True)
class Output:
    """What a tool gives: text for the model, and what the loop must know.

    `changed` says that the workspace is another one now. `spent` counts builds and phone time.
    """

    text: str
    is_error: bool = False
    changed: bool = False
    spent: Spent = field(default_factory=Spent)


@dataclass(frozen=True, slots=True)
class CallContext:
    """What a tool function gets besides its arguments.

    `note` writes to the transcript what is about to happen, right before it happens; `earlier` is the
    last note of a process that died in this very call, None where none did. A tool that notes must
    look at `earlier` first and not do again what was done.
    """

    call: ToolCall
    note: Callable[[JsonObject], None]
    on_progress: OnProgress
    earlier: JsonObject | None = None


A = TypeVar("A", bound=Arguments)


@dataclass(frozen=True, slots=True)
class Tool(Generic[A]):
    """A tool that a model can call.

    `purpose` is what the model reads of it. `summary` gives one line for a person. `run` may raise
    `ToolFault`; its message becomes the result. `parameters` is the JSON Schema where somebody else
    than `arguments` knows it. `named` gives what rules of approval look at and the arguments do not say
    plainly: files by their real names in the workspace.
    """

    name: str
    purpose: str
    arguments: type[A]
    effect: Effect
    run: Callable[[A, CallContext], Awaitable[Output]]
    summary: Callable[[A], str]
    parameters: JsonObject | None = None
    named: Callable[[A], Mapping[str, tuple[str, ...]]] = lambda arguments: {}

    @property
    def spec(self) -> ToolSpec:
        """Give what the model is told."""
        return ToolSpec(self.name, self.purpose, self.parameters or schema_of(self.arguments))

    def parse(self, arguments: JsonObject) -> A:
        """Check the arguments of a call; raises `ToolFault` that says what to send instead."""
        try:
            return self.arguments.model_validate(arguments)
        except ValidationError as fault:
            wrong = "; ".join(
                f"{'.'.join(map(str, error['loc'])) or 'arguments'}: {error['msg'].lower()}"
                for error in fault.errors()[:5]
            )
            names = ", ".join(self.arguments.model_fields) or "none"
            raise ToolFault(
                f"{self.name} was not run, its arguments do not fit: {wrong}. It takes: {names}."
            ) from fault


AnyTool = Tool[Any]
"""A tool whatever its arguments are."""


def schema_of(arguments: type[BaseModel]) -> JsonObject:
    """Give the JSON Schema of arguments without titles, which only cost tokens."""
    schema: JsonObject = _untitled(arguments.model_json_schema())
    schema.pop("description", None)
    return schema


def _untitled(value: Any) -> Any:
    if isinstance(value, list):
        return [_untitled(item) for item in value]
    if not isinstance(value, dict):
        return value
    plain = {
        key: _untitled(item) for key, item in value.items() if not (key == "title" and isinstance(item, str))
    }
    options = plain.get("anyOf")
    if isinstance(options, list) and {"type": "null"} in options and len(options) == 2:
        # An optional argument may be left out; providers that know only plain types take it this way.
        kept = next(option for option in options if option != {"type": "null"})
        plain = {key: item for key, item in plain.items() if key not in ("anyOf", "default")} | kept
    return plain
