"""What is known of a model provider, as values: addresses, keys, effort words, limits, error codes."""

from dataclasses import dataclass, field
from enum import StrEnum

from agent.budget import Price
from agent.message import Dialect, JsonObject


class Auth(StrEnum):
    """How a key stands in the request's head."""

    BEARER = "bearer"
    X_API_KEY = "x-api-key"
    X_GOOG_API_KEY = "x-goog-api-key"
    API_KEY = "api-key"
    NONE = "none"


_PATHS = {
    Dialect.OPENAI_CHAT: "/chat/completions",
    Dialect.OPENAI_RESPONSES: "/responses",
    Dialect.ANTHROPIC: "/messages",
    Dialect.GEMINI: "/models/{model}:streamGenerateContent?alt=sse",
}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One address of a provider; the dialect's usual path is appended to `base_url`."""

    dialect: Dialect
    base_url: str
    auth: Auth = Auth.BEARER
    headers: tuple[tuple[str, str], ...] = ()

    def url(self, model: str) -> str:
        """Give the address that a request for `model` is posted to."""
        return self.base_url.rstrip("/") + _PATHS[self.dialect].replace("{model}", model)


@dataclass(frozen=True, slots=True)
class Effort:
    """How a model is asked to think more or less, on one endpoint.

    `words` are the accepted words, weakest first; none at all means that no word is ever sent. The
    word goes where the dialect has its place, or to the dotted `body_field`. `body` goes along with
    any word.
    """

    words: tuple[str, ...]
    default: str | None = None
    body_field: str | None = None
    body: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ModelRule:
    """What is known of the models whose id matches `pattern` (shell wildcards, case ignored).

    `prefers` names the endpoint that serves the model best where it is not the provider's first; `on`
    limits the rule to the endpoint of one dialect. `body` goes into each request.
    `echo_reasoning` is the message field in which thinking must come back on the chat dialect;
    `echo_empty` says that the field must be there even where the model did not think.
    """

    pattern: str
    prefers: Dialect | None = None
    on: Dialect | None = None
    effort: Effort | None = None
    body: JsonObject = field(default_factory=dict)
    context_tokens: int | None = None
    max_output_tokens: int | None = None
    price: Price | None = None
    echo_reasoning: str | None = None
    echo_empty: bool = False


@dataclass(frozen=True, slots=True)
class ErrorCodes:
    """A provider's own words and numbers for why it did not answer.

    `transient` errors pass by waiting, `exhausted` ones when a plan's window resets or money is
    added, `key` ones mean another key or right. What is in none is judged by the HTTP status.
    """

    transient: frozenset[str] = frozenset()
    exhausted: frozenset[str] = frozenset()
    key: frozenset[str] = frozenset()
    overload_wait_s: float | None = None


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider as its catalogue entry describes it.

    `key_env` are the environment variables that may hold the key, first wins. `idle_timeout_s` is the
    longest silence during a response: providers that send all arguments in one late piece need a long
    one. `tool_choices` are the words it takes besides `auto`. `dropped_fields` are body fields that it
    refuses. `call_id_chars` is the exact length of call ids where the provider is strict about it.
    """

    name: str
    title: str
    endpoints: tuple[Endpoint, ...]
    key_env: tuple[str, ...] = ()
    key_optional: bool = False
    models: tuple[ModelRule, ...] = ()
    body: JsonObject = field(default_factory=dict)
    tool_choices: frozenset[str] = frozenset({"required", "none"})
    max_tools: int = 128
    idle_timeout_s: float = 180.0
    dropped_fields: frozenset[str] = frozenset()
    max_tokens_field: str = "max_tokens"
    call_id_chars: int | None = None
    errors: ErrorCodes = ErrorCodes()
    key_command: tuple[str, ...] = ()
    key_file: str | None = None
    is_scripted: bool = False
    note: str = ""
