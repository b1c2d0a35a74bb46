"""Values of a conversation with a model: messages, tool calls, requests.

A message has no id; storage gives ids. Opaque provider data (signatures, encrypted reasoning, blocks
of tools that the provider runs itself) rides untouched in `provider_data` under the name of its
dialect, and goes back only to that dialect. It is bound to the model that made it, too: drop it with
`Message.without_provider_data` when the conversation goes on with another model.
"""

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

JsonObject = dict[str, Any]
"""A parsed JSON object from a stranger; only the code that checks it gives its parts types."""


class Dialect(StrEnum):
    """A wire protocol that providers speak."""

    OPENAI_CHAT = "openai-chat"
    OPENAI_RESPONSES = "openai-responses"
    ANTHROPIC = "anthropic"
    GEMINI = "gemini"


class FinishReason(StrEnum):
    """Why a response ended, in one vocabulary for all providers."""

    STOP = "stop"
    TOOL_CALLS = "tool_calls"
    LENGTH = "length"
    CONTENT_FILTER = "content_filter"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """Something odd about a response: its code, where in the body it arose, and what it was."""

    code: str
    detail: str
    offset_bytes: int


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one response: the whole billed prompt with its cached part, and all output."""

    input_tokens: int
    output_tokens: int
    cached_input_tokens: int = 0
    reasoning_tokens: int = 0


@dataclass(frozen=True, slots=True)
class TextPart:
    """Visible text."""

    text: str
    provider_data: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class ReasoningPart:
    """Thinking text; its signature or encrypted form lies in `provider_data`."""

    text: str
    provider_data: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that the model announced.

    `id` is unique within its message and never empty; `raw_id` is what the provider sent, None
    where it sent none. A call with a `fault` must not run: the fault says, in words for the
    model, what was wrong and what to send again. `raw_arguments` is the text as it was streamed.
    """

    id: str
    name: str
    arguments: JsonObject
    fault: str | None = None
    raw_id: str | None = None
    raw_arguments: str = ""
    provider_data: JsonObject | None = None

    @property
    def is_executable(self) -> bool:
        """Whether the call was rebuilt without doubt."""
        return self.fault is None


Part = TextPart | ReasoningPart | ToolCall


@dataclass(frozen=True, slots=True)
class Message:
    """One normalized response of a model, its parts in the order in which they began.

    `finish_reason` is None where the stream ended without one.
    """

    parts: tuple[Part, ...] = ()
    finish_reason: FinishReason | None = None
    usage: Usage | None = None
    diagnostics: tuple[Diagnostic, ...] = ()
    provider_data: JsonObject | None = None

    @property
    def text(self) -> str:
        """All visible text, joined with nothing between."""
        return "".join(part.text for part in self.parts if isinstance(part, TextPart))

    @property
    def reasoning(self) -> str:
        """All thinking text, joined with nothing between."""
        return "".join(part.text for part in self.parts if isinstance(part, ReasoningPart))

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """All announced calls in order of first appearance, executable or not."""
        return tuple(part for part in self.parts if isinstance(part, ToolCall))

    def without_provider_data(self) -> "Message":
        """Give the same message for another model: no signatures, no opaque parts."""
        bare = (replace(part, provider_data=None) for part in self.parts)
        kept = tuple(part for part in bare if isinstance(part, ToolCall) or part.text)
        return replace(self, parts=kept, provider_data=None)


@dataclass(frozen=True, slots=True)
class UserMessage:
    """What a person, or the loop on a person's behalf, says to the model."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The answer to one announced call; `call_id` and `name` are the call's."""

    call_id: str
    name: str
    content: str
    is_error: bool = False


ConversationItem = UserMessage | Message | ToolResult


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """What the model is told of a tool: name, purpose, and its arguments as JSON Schema."""

    name: str
    description: str
    parameters: JsonObject


@dataclass(frozen=True, slots=True)
class Request:
    """One request to a model, before a dialect encodes it.

    `effort` is the provider's own word or None, put where the dialect has its place for it.
    `tool_choice` is `auto`, `required`, `none` or the name of one tool. `cache_ttl_s` asks, where the
    dialect has marks for it, that the prompt be kept that long by the provider. `extra` holds body
    fields that the provider's catalogue entry adds; objects are merged into those of the same name,
    and what stands in `dropped_fields` is left out at last.

    The rest is about what the provider wants back: `echo_reasoning` names the chat field in which
    thinking returns where the message itself does not tell, `echo_empty` wants that field even where
    there was none, and `call_id_chars` is the exact length of call ids (letters and digits only).
    """

    model: str
    system: str
    items: tuple[ConversationItem, ...]
    tools: tuple[ToolSpec, ...] = ()
    max_output_tokens: int | None = None
    effort: str | None = None
    tool_choice: str = "auto"
    extra: JsonObject = field(default_factory=dict)
    cache_ttl_s: int | None = None
    max_tokens_field: str = "max_tokens"
    dropped_fields: frozenset[str] = frozenset()
    echo_reasoning: str | None = None
    echo_empty: bool = False
    call_id_chars: int | None = None
