"""The loop's whole policy: what follows from a model's message.

A message that came whole leads to one of four decisions. Calls run only where the response ended
normally; whatever does not run has a result that tells the model why and what to do.
"""

from dataclasses import dataclass
from enum import StrEnum

from agent.message import FinishReason, Message, ToolCall, ToolResult


class StopReason(StrEnum):
    """Why a run ended."""

    GREEN = "green"
    ANSWERED = "answered"
    NOT_GREEN = "not_green"
    BUDGET = "budget"
    NO_PROGRESS = "no_progress"
    MALFORMED = "malformed"
    CUT_OFF = "cut_off"
    CONTENT_FILTER = "content_filter"
    PROVIDER = "provider"
    INTERRUPTED = "interrupted"

    @property
    def is_success(self) -> bool:
        """Whether the assignment was answered, and its build is green where that was asked."""
        return self in (StopReason.GREEN, StopReason.ANSWERED)


@dataclass(frozen=True, slots=True)
class RunTools:
    """Run the executable `calls`; the `refused` ones have their results already."""

    calls: tuple[ToolCall, ...]
    refused: tuple[ToolResult, ...] = ()


@dataclass(frozen=True, slots=True)
class AskAgain:
    """Nothing can run: give the `results` of what was announced, say `text` and ask again.

    `flaw` says which kind of flaw this is; each kind has its own small budget.
    """

    flaw: "Flaw"
    results: tuple[ToolResult, ...] = ()
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """The model is done and this is what it says."""

    text: str


@dataclass(frozen=True, slots=True)
class Stop:
    """The run ends here."""

    reason: StopReason
    detail: str


Decision = RunTools | AskAgain | Answer | Stop


class Flaw(StrEnum):
    """What was wrong with a message that has to be asked for again."""

    MALFORMED = "malformed"
    CUT_OFF = "cut_off"
    EMPTY = "empty"


@dataclass(frozen=True, slots=True)
class Flaws:
    """How many messages in a row had a flaw, by kind."""

    malformed: int = 0
    cut_off: int = 0
    empty: int = 0

    def plus(self, flaw: Flaw) -> "Flaws":
        """Count one more of the kind; the other kinds keep their counts."""
        return Flaws(
            malformed=self.malformed + (flaw is Flaw.MALFORMED),
            cut_off=self.cut_off + (flaw is Flaw.CUT_OFF),
            empty=self.empty + (flaw is Flaw.EMPTY),
        )


@dataclass(frozen=True, slots=True)
class Patience:
    """How many flawed messages in a row are asked for again, by kind."""

    malformed: int = 3
    cut_off: int = 3
    empty: int = 2


def decide(message: Message, flaws: Flaws, patience: Patience = Patience()) -> Decision:
    """Say what follows from a message, given the flawed ones right before it."""
    match message.finish_reason:
        case FinishReason.CONTENT_FILTER:
            return Stop(StopReason.CONTENT_FILTER, _filtered(message))
        case FinishReason.LENGTH:
            return _cut_off(message, flaws, patience, "the limit on output length cut this response off")
        case FinishReason.ERROR:
            return _malformed(message, flaws, patience)
        case None if _is_truncated(message):
            return _cut_off(message, flaws, patience, "the connection ended before this response did")
        case FinishReason.STOP | FinishReason.TOOL_CALLS | None:
            return _ended_normally(message, flaws, patience)


def flaws_after(flaws: Flaws, message: Message) -> Flaws:
    """Count a message in: a flawed one adds to its kind, any other starts anew.

    A message with good and bad calls counts as flawed, or a model could fail with one of two calls
    for ever.
    """
    match decide(message, Flaws()):
        case AskAgain(flaw):
            return flaws.plus(flaw)
        case RunTools(_, refused) if refused:
            return flaws.plus(Flaw.MALFORMED)
        case RunTools() | Answer() | Stop():
            return Flaws()


def _ended_normally(message: Message, flaws: Flaws, patience: Patience) -> Decision:
    good = tuple(call for call in message.tool_calls if call.is_executable)
    bad = tuple(refuse(call) for call in message.tool_calls if not call.is_executable)
    if good:
        if bad and flaws.malformed >= patience.malformed:
            return Stop(StopReason.MALFORMED, _what_was_odd(message))
        return RunTools(good, bad)
    if bad or message.finish_reason is FinishReason.TOOL_CALLS:
        return _malformed(message, flaws, patience)
    if _has_markup_call(message):
        return _malformed(message, flaws, patience)
    if message.text.strip():
        return Answer(message.text)
    if flaws.empty >= patience.empty:
        return Stop(StopReason.NO_PROGRESS, f"{flaws.empty + 1} empty responses in a row")
    return AskAgain(
        Flaw.EMPTY,
        text="Your last response was empty. Call a tool, or give your final answer as text.",
    )


def _malformed(message: Message, flaws: Flaws, patience: Patience) -> Decision:
    if flaws.malformed >= patience.malformed:
        return Stop(StopReason.MALFORMED, _what_was_odd(message))
    results = tuple(refuse(call) for call in message.tool_calls)
    told = None if results else _tell_of_lost_call(message)
    return AskAgain(Flaw.MALFORMED, results, told)


def _cut_off(message: Message, flaws: Flaws, patience: Patience, cause: str) -> Decision:
    if flaws.cut_off >= patience.cut_off:
        return Stop(StopReason.CUT_OFF, f"{flaws.cut_off + 1} responses in a row were cut off: {cause}")
    results = tuple(refuse(call, f"not run: {cause}. Send the call again, in smaller pieces.")
                    for call in message.tool_calls)  # fmt: skip
    told = None if results else f"{cause[0].upper()}{cause[1:]}. Go on from where you were, and be brief."
    return AskAgain(Flaw.CUT_OFF, results, told)


def refuse(call: ToolCall, why: str | None = None) -> ToolResult:
    """Give the result of a call that does not run; a fault of the call itself is said first."""
    reasons = [reason for reason in (call.fault, why) if reason]
    return ToolResult(call.id, call.name, "\n".join(reasons) or "not run.", is_error=True)


def _tell_of_lost_call(message: Message) -> str:
    if _has_markup_call(message):
        return (
            "Your last response holds a tool call written as text; such calls are never run. "
            "Send it again through the tool interface."
        )
    return (
        f"Your last response ended as if to call a tool, but no call arrived ({_what_was_odd(message)}). "
        "Send the tool call again, or give your final answer as text."
    )


def _what_was_odd(message: Message) -> str:
    odd = [f"{found.code}: {found.detail}" for found in message.diagnostics[:3]]
    return "; ".join(odd) or f"finish reason {message.finish_reason or 'none'}, no tool call"


def _filtered(message: Message) -> str:
    said = message.text.strip()
    return f"the provider's content filter ended the response{f' after: {said[-200:]}' if said else ''}"


def _is_truncated(message: Message) -> bool:
    return any(found.code == "stream_truncated" for found in message.diagnostics)


def _has_markup_call(message: Message) -> bool:
    return any(found.code == "tool_call_in_text" for found in message.diagnostics)
