"""Find a provider by name, and settle how one of its models is to be asked."""

from dataclasses import dataclass
from fnmatch import fnmatchcase

from agent.budget import Price
from agent.errors import SettingsFault
from agent.message import Dialect, JsonObject
from agent.providers.gateways import GATEWAYS
from agent.providers.provider import Auth, Effort, Endpoint, ModelRule, Provider
from agent.providers.vendors import ANTHROPIC_VERSION, OPENAI_CODES, VENDORS

Catalogue = dict[str, Provider]
"""Providers by name."""

KNOWN: Catalogue = {provider.name: provider for provider in (*VENDORS, *GATEWAYS)}
"""What is known without settings."""

_LADDER = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_USUAL_CONTEXT_TOKENS = 128_000


@dataclass(frozen=True, slots=True)
class Choice:
    """A model of a provider at one endpoint, with all that its requests need.

    `effort_word` is in the provider's own vocabulary, None where none is to be sent. `body` holds the
    fields to add to each request, the effort's included where it has a field of its own.
    """

    provider: Provider
    endpoint: Endpoint
    model: str
    body: JsonObject
    effort_word: str | None = None
    context_tokens: int = _USUAL_CONTEXT_TOKENS
    max_output_tokens: int | None = None
    price: Price | None = None
    echo_reasoning: str | None = None
    echo_empty: bool = False

    @property
    def dialect(self) -> Dialect:
        """The dialect of the chosen endpoint."""
        return self.endpoint.dialect

    @property
    def url(self) -> str:
        """The address that requests are posted to."""
        return self.endpoint.url(self.model)


def find(name: str, catalogue: Catalogue) -> Provider:
    """Give the provider of that name; raises `SettingsFault` with the names there are."""
    provider = catalogue.get(name.lower())
    if provider is None:
        raise SettingsFault(f"no provider is called {name!r}; known are {', '.join(sorted(catalogue))}")
    return provider


def custom(base_url: str, dialect: Dialect, key_env: tuple[str, ...] = ()) -> Provider:
    """Give a provider for any address; without a key variable it is asked without a key."""
    headers = ANTHROPIC_VERSION if dialect is Dialect.ANTHROPIC else ()
    auth = Auth.X_GOOG_API_KEY if dialect is Dialect.GEMINI else Auth.BEARER
    endpoint = Endpoint(dialect, base_url, auth, headers)
    return Provider(
        "custom",
        base_url,
        (endpoint,),
        key_env,
        key_optional=True,
        idle_timeout_s=300.0,
        errors=OPENAI_CODES,
    )


def choose(
    provider: Provider, model: str, *, dialect: Dialect | None = None, effort: str | None = None
) -> Choice:
    """Settle endpoint, effort word and body fields for a model.

    The dialect asked for wins, then the one that the model's rule prefers, then the provider's first.
    Of several rules that match, each field is taken from the first that has it. An effort word that
    the model does not take becomes the nearest that it takes, the weaker of two; where nothing is known of
    the model's words it is sent as it is.
    """
    named = [rule for rule in provider.models if fnmatchcase(model.lower(), rule.pattern)]
    wanted = dialect or next((rule.prefers for rule in named if rule.prefers), None)
    endpoint = _endpoint(provider, wanted)
    rules = [rule for rule in named if rule.on in (None, endpoint.dialect)]
    asking = next((rule.effort for rule in rules if rule.effort), None)
    word = _word(effort, asking)
    echo = next((rule for rule in rules if rule.echo_reasoning), None)
    return Choice(
        provider=provider,
        endpoint=endpoint,
        model=model,
        body=_body(provider, rules, asking, word),
        effort_word=None if asking and asking.body_field else word,
        context_tokens=next((r.context_tokens for r in rules if r.context_tokens), _USUAL_CONTEXT_TOKENS),
        max_output_tokens=next((r.max_output_tokens for r in rules if r.max_output_tokens), None),
        price=next((rule.price for rule in rules if rule.price), None),
        echo_reasoning=echo.echo_reasoning if echo else None,
        echo_empty=bool(echo and echo.echo_empty),
    )


def _word(wanted: str | None, asking: Effort | None) -> str | None:
    if asking is None:
        return wanted
    if not asking.words:
        return None
    return nearest(wanted, asking.words) if wanted else asking.default


def _endpoint(provider: Provider, dialect: Dialect | None) -> Endpoint:
    if dialect is None:
        return provider.endpoints[0]
    for endpoint in provider.endpoints:
        if endpoint.dialect is dialect:
            return endpoint
    spoken = ", ".join(endpoint.dialect for endpoint in provider.endpoints)
    raise SettingsFault(f"{provider.name} does not speak {dialect}; it speaks {spoken}")


def _body(provider: Provider, rules: list[ModelRule], asking: Effort | None, word: str | None) -> JsonObject:
    body: JsonObject = dict(provider.body)
    for rule in reversed(rules):
        body |= rule.body
    if asking and word:
        body |= asking.body
        if asking.body_field:
            outer, _, inner = asking.body_field.partition(".")
            body[outer] = {inner: word} if inner else word
    return body


def nearest(wanted: str, words: tuple[str, ...]) -> str:
    """Give the accepted word that is nearest to the wanted one on the ladder from none to max."""
    on_ladder = [word for word in words if word in _LADDER]
    if wanted in words:
        return wanted
    if wanted not in _LADDER or not on_ladder:
        raise SettingsFault(f"effort {wanted!r} is none of {', '.join(words)}")
    place = _LADDER.index(wanted)
    return min(on_ladder, key=lambda word: abs(_LADDER.index(word) - place))
