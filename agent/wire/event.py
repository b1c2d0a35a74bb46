"""What a response tells while it is still coming.

Events are for people who watch; the message that `ResponseParser.close` gives is what counts. Deltas
that arrive in one piece come as one event, so an event costs little. An event may turn out wrong: a
call that looked sound is refused in the end, thinking in tags that never close becomes text.
"""

from dataclasses import dataclass

from agent.message import Diagnostic, Usage


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More visible text."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """More thinking."""

    text: str


@dataclass(frozen=True, slots=True)
class CallDelta:
    """More of a tool call that is forming.

    `number` tells the calls of a response apart and counts from zero as they appear. `name` is what
    is known of the tool's name by now, empty where nothing is. `arguments` is the text that came since
    the last delta of this call, `received_chars` all of it so far.
    """

    number: int
    name: str
    arguments: str
    received_chars: int


@dataclass(frozen=True, slots=True)
class UsageReport:
    """The token counts as they stand; later ones replace earlier ones."""

    usage: Usage


StreamEvent = TextDelta | ReasoningDelta | CallDelta | UsageReport | Diagnostic
