"""What a run tells a person while it works: one value for each thing worth showing.

A user interface gets these in order through `on_progress` of the run's `Equipment`, which is awaited;
a slow interface slows the run down and loses nothing. Nothing here holds keys.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from agent.budget import Budget, Spent
from agent.message import Diagnostic, Message, ToolCall, ToolResult


@dataclass(frozen=True, slots=True)
class RunStarted:
    """The run begins or goes on; `is_scripted` is true where no model answers but a recorded script."""

    run_id: str
    provider: str
    model: str
    is_scripted: bool
    is_resumed: bool = False


@dataclass(frozen=True, slots=True)
class TurnStarted:
    """A request goes to the model; `turn` counts from one."""

    turn: int


@dataclass(frozen=True, slots=True)
class TextStreamed:
    """A piece of visible text came."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningStreamed:
    """A piece of thinking came."""

    text: str


@dataclass(frozen=True, slots=True)
class CallForming:
    """A tool call grows; `key` tells calls of one response apart, `name` may still be empty."""

    key: int
    name: str
    argument_chars: int


@dataclass(frozen=True, slots=True)
class StreamDiagnosed:
    """Something about the response was odd; the call or text was rebuilt, or the model will be told."""

    diagnostic: Diagnostic


@dataclass(frozen=True, slots=True)
class MessageReceived:
    """The response is whole. After a retry this is the message that counts."""

    turn: int
    message: Message


@dataclass(frozen=True, slots=True)
class RetryScheduled:
    """A request failed and goes out again after `wait_s`; text streamed for it so far is void."""

    attempt: int
    wait_s: float
    reason: str


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """A tool begins to work on a call; `summary` is one line for a person."""

    call: ToolCall
    summary: str


@dataclass(frozen=True, slots=True)
class ToolEnded:
    """A call has its result, which the model will read."""

    call: ToolCall
    result: ToolResult
    seconds: float


@dataclass(frozen=True, slots=True)
class BuildSubmitted:
    """A build was handed to the builder under `build_id`, or joined one that was under way."""

    build_id: str


@dataclass(frozen=True, slots=True)
class BuildAdvanced:
    """A build moved on.

    `state` is a word of `builder_bridge.build.BuildState` or of the waiting before it (`queued`);
    `task` the Gradle task path at work; `percent` (below 100) and `remaining_s` are guesses from earlier
    builds; each None where unknown.
    """

    build_id: str
    state: str
    task: str | None = None
    percent: float | None = None
    detail: str | None = None
    remaining_s: float | None = None


@dataclass(frozen=True, slots=True)
class BuildProblemSeen:
    """The log of a build under way shows a problem."""

    build_id: str
    severity: str
    message: str
    file: str | None = None
    line: int | None = None


@dataclass(frozen=True, slots=True)
class BuildEnded:
    """A build came to its end; `outcome` is a word of `agent.tools.build.BuildOutcome`."""

    build_id: str
    outcome: str
    seconds: float
    is_from_earlier: bool


BuildProgress = BuildSubmitted | BuildAdvanced | BuildProblemSeen | BuildEnded


@dataclass(frozen=True, slots=True)
class Compacted:
    """Old parts of the conversation were folded so that the next request is shorter."""

    folded_results: int
    folded_turns: int
    tokens_before: int
    tokens_after: int


@dataclass(frozen=True, slots=True)
class TurnSpent:
    """A turn is over; `spent` holds the totals of the run so far."""

    turn: int
    spent: Spent
    budget: Budget


@dataclass(frozen=True, slots=True)
class RunStopped:
    """The run is over; `reason` is a word of `agent.decide.StopReason`, `detail` a sentence."""

    reason: str
    detail: str
    text: str
    spent: Spent


Progress = (
    RunStarted
    | TurnStarted
    | TextStreamed
    | ReasoningStreamed
    | CallForming
    | StreamDiagnosed
    | MessageReceived
    | RetryScheduled
    | ToolStarted
    | ToolEnded
    | BuildProgress
    | Compacted
    | TurnSpent
    | RunStopped
)

OnProgress = Callable[[Progress], Awaitable[None]]
"""What a run awaits for each value."""

OnBuildProgress = Callable[[BuildProgress], Awaitable[None]]
"""What a `Builder` awaits while a build is under way."""
