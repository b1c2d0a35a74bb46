"""Providers from a settings file: new ones, and changed fields of known ones, without code."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from agent.budget import Price
from agent.errors import SettingsFault
from agent.message import Dialect
from agent.providers.catalogue import KNOWN, Catalogue
from agent.providers.provider import Auth, Effort, Endpoint, ErrorCodes, ModelRule, Provider
from agent.providers.vendors import ANTHROPIC_VERSION, OPENAI_CODES


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class EndpointSettings(_Strict):
    """One address of a provider."""

    dialect: Dialect
    base_url: str = Field(pattern=r"^https?://")
    auth: Auth = Auth.BEARER
    headers: dict[str, str] = {}


class EffortSettings(_Strict):
    """How a model is asked to think more or less."""

    words: tuple[str, ...]
    default: str | None = None
    body_field: str | None = None
    body: dict[str, Any] = {}


class PriceSettings(_Strict):
    """US dollars per million tokens."""

    input: float = Field(ge=0)
    output: float = Field(ge=0)
    cached_input: float | None = Field(default=None, ge=0)


class ModelSettings(_Strict):
    """What is known of the models whose id matches `pattern`."""

    pattern: str
    prefers: Dialect | None = None
    on: Dialect | None = None
    effort: EffortSettings | None = None
    body: dict[str, Any] = {}
    context_tokens: int | None = Field(default=None, gt=0)
    max_output_tokens: int | None = Field(default=None, gt=0)
    price: PriceSettings | None = None
    echo_reasoning: str | None = None
    echo_empty: bool = False


class ErrorSettings(_Strict):
    """The provider's codes by what they mean."""

    transient: frozenset[str] = frozenset()
    exhausted: frozenset[str] = frozenset()
    key: frozenset[str] = frozenset()
    overload_wait_s: float | None = None


class ProviderSettings(_Strict):
    """The table `[providers.NAME]`; what is left out stays as the known provider has it.

    `base_url` with `dialect` is short for a single endpoint. Model rules of the settings go before
    the known ones, so they win.
    """

    title: str | None = None
    base_url: str | None = Field(default=None, pattern=r"^https?://")
    dialect: Dialect | None = None
    auth: Auth | None = None
    endpoints: tuple[EndpointSettings, ...] | None = None
    key_env: tuple[str, ...] | None = None
    key_file: str | None = None
    key_command: tuple[str, ...] | None = None
    key_optional: bool | None = None
    models: tuple[ModelSettings, ...] = ()
    body: dict[str, Any] | None = None
    tool_choices: frozenset[str] | None = None
    max_tools: int | None = Field(default=None, gt=0)
    idle_timeout_s: float | None = Field(default=None, gt=0)
    dropped_fields: frozenset[str] | None = None
    max_tokens_field: str | None = None
    call_id_chars: int | None = Field(default=None, gt=0)
    errors: ErrorSettings | None = None
    note: str | None = None


_TABLES: TypeAdapter[dict[str, ProviderSettings]] = TypeAdapter(dict[str, ProviderSettings])
_PLAIN_FIELDS = (
    "title", "key_env", "key_file", "key_command", "key_optional", "body", "tool_choices", "max_tools",
    "idle_timeout_s", "dropped_fields", "max_tokens_field", "call_id_chars", "note",
)  # fmt: skip


def with_settings(tables: Mapping[str, Any], known: Catalogue = KNOWN) -> Catalogue:
    """Give the known providers with those of the settings added or laid over them.

    `tables` is what stands under `providers` in a settings file. Raises `SettingsFault` that names the
    entry and what is wrong with it.
    """
    try:
        parsed = _TABLES.validate_python(dict(tables))
    except ValidationError as fault:
        first = fault.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise SettingsFault(f"settings of provider {place}: {first['msg'].lower()}") from fault
    return known | {name.lower(): _merge(name.lower(), entry, known) for name, entry in parsed.items()}


def _merge(name: str, entry: ProviderSettings, known: Catalogue) -> Provider:
    endpoints = _endpoints(name, entry)
    old = known.get(name)
    if old is None:
        if not endpoints:
            raise SettingsFault(f"settings of provider {name}: a new provider needs base_url and dialect")
        old = Provider(name, name, endpoints, key_optional=not entry.key_env, errors=OPENAI_CODES)
    changed: dict[str, Any] = {
        field: value for field in _PLAIN_FIELDS if (value := getattr(entry, field)) is not None
    }
    if endpoints:
        changed["endpoints"] = endpoints
    if entry.errors:
        changed["errors"] = ErrorCodes(**entry.errors.model_dump())
    changed["models"] = (*map(_rule, entry.models), *old.models)
    return replace(old, **changed)


def _endpoints(name: str, entry: ProviderSettings) -> tuple[Endpoint, ...]:
    listed = entry.endpoints or ()
    if entry.base_url:
        if listed or entry.dialect is None:
            raise SettingsFault(
                f"settings of provider {name}: base_url wants dialect, and no endpoints beside it"
            )
        auth = entry.auth or Auth.BEARER
        listed = (EndpointSettings(dialect=entry.dialect, base_url=entry.base_url, auth=auth),)
    return tuple(
        Endpoint(
            given.dialect,
            given.base_url,
            given.auth,
            tuple(given.headers.items()) or (ANTHROPIC_VERSION if given.dialect is Dialect.ANTHROPIC else ()),
        )
        for given in listed
    )


def _rule(given: ModelSettings) -> ModelRule:
    plain = given.model_dump(exclude={"effort", "price", "pattern"})
    return ModelRule(
        pattern=given.pattern.lower(),
        effort=Effort(**given.effort.model_dump()) if given.effort else None,
        price=Price(**given.price.model_dump()) if given.price else None,
        **plain,
    )
