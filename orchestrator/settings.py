"""All settings of the service, from a TOML file and `POCKETBUILD_*` variables.

Order, later wins: defaults, the file, the environment, the command line. A nested setting is
written `[phones]` in TOML and with two underscores in a variable: `POCKETBUILD_LIMITS__UPLOAD_BYTES`.
"""

import difflib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, model_validator
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from orchestrator.errors import SettingsFault
from orchestrator.named_secrets import SecretSource

if TYPE_CHECKING:
    from agent.approval import Rule

PREFIX = "POCKETBUILD_"
OTHER_PREFIXES = ("POCKETBUILD_BOX_", "POCKETBUILD_REQUIRE_BOX")
"""Variables of the phone in a box and of the tests, which are no settings of the service."""

RouteName = Literal["run_as", "provider", "termux", "shell_dir", "su"]
"""The names that `builder_bridge.routes.probe` knows, as a type, without loading what speaks to phones."""


def default_data_dir() -> Path:
    """Say where data lies when no setting names a folder: the user's own, by the XDG rules."""
    root = os.environ.get("XDG_DATA_HOME", "")
    return (Path(root) if root else Path.home() / ".local/share") / "pocketbuild"


def default_config_file() -> Path:
    """Say where settings lie when no option names a file."""
    root = os.environ.get("XDG_CONFIG_HOME", "")
    return (Path(root) if root else Path.home() / ".config") / "pocketbuild/config.toml"


class _Group(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PhoneSettings(_Group):
    """A phone that this host builds on; `address` is `HOST:PORT` or a serial."""

    address: str
    pool: str | None = "default"
    route: RouteName | None = None


class Limits(_Group):
    """How much strangers may send and keep."""

    body_bytes: int = Field(default=4 * 2**20, gt=0)
    upload_bytes: int = Field(default=2 * 2**30, gt=0)
    upload_idle_s: float = Field(default=30.0, gt=0)
    unpacked_bytes: int = Field(default=8 * 2**30, gt=0)
    files: int = Field(default=100_000, gt=0)
    queued_per_owner: int = Field(default=100, gt=0)
    artifact_bytes: int = Field(default=4 * 2**30, gt=0)
    deadline_s: float = Field(default=6 * 3600.0, gt=0)


class Retention(_Group):
    """How long ended builds, and runs of the agent (`agent_…`), are kept; None is no limit."""

    max_age_days: float | None = Field(default=30.0, gt=0)
    max_bytes: int | None = Field(default=20 * 2**30, gt=0)
    agent_max_age_days: float | None = Field(default=30.0, gt=0)
    agent_max_bytes: int | None = Field(default=4 * 2**30, gt=0)
    every_s: float = Field(default=3600.0, gt=0)


class Lab(_Group):
    """Several hosts on one Postgres: who this host is, and what happens to builds of a lost one."""

    host_id: str = Field(default="local", pattern=r"^[a-z0-9-]{1,32}$")
    url: str | None = None
    lost_host: Literal["wait", "reassign"] = "wait"
    heartbeat_s: float = Field(default=5.0, gt=0)
    lost_after_s: float = Field(default=30.0, gt=0)


class PhoneCare(_Group):
    """When a phone is left alone, and how long a vanished one is waited for."""

    probe_every_s: float = Field(default=30.0, gt=0)
    health_every_s: float = Field(default=60.0, gt=0)
    gone_after_s: float = Field(default=900.0, gt=0)
    reconnect_max_s: float = Field(default=10.0, gt=0)
    min_battery_percent: int = Field(default=15, ge=0, le=100)
    max_heat_celsius: float = 45.0
    max_thermal_status: int = Field(default=2, ge=0, le=6)
    min_free_bytes: int = Field(default=512 * 2**20, ge=0)


class Webhooks(_Group):
    """Where ends of builds are told by POST, signed as Standard Webhooks say."""

    urls: tuple[str, ...] = ()
    secret: SecretStr | None = None
    allow_private: bool = False

    @model_validator(mode="after")
    def _are_signed(self) -> Self:
        if self.urls and not (self.secret and self.secret.get_secret_value()):
            raise ValueError("urls want a secret, or no receiver could tell who sent what it hears")
        return self


class ApprovalRule(_Group):
    """A verdict on an agent's calls whose tool and arguments match, with shell wildcards."""

    verdict: Literal["allow", "ask", "deny"]
    tool: str
    arguments: dict[str, str] = {}


class AgentSettings(_Group):
    """Who answers an agent, what it may spend, and which of its calls need a person."""

    provider: str | None = None
    model: str | None = None
    effort: str | None = None
    key_env: tuple[str, ...] = ()
    turns: int | None = Field(default=100, gt=0)
    tokens: int | None = Field(default=None, gt=0)
    money: float | None = Field(default=None, gt=0)
    builds: int | None = Field(default=30, gt=0)
    wall_s: float | None = Field(default=None, gt=0)
    phone_s: float | None = Field(default=None, gt=0)
    web: bool = False
    author_name: str = "Pocketbuild agent"
    author_email: str = "agent@pocketbuild.invalid"
    rules: tuple[ApprovalRule, ...] = ()

    def budget(self) -> dict[str, int | float | None]:
        """Give the limits by the names of the agent's `Budget`."""
        names = ("turns", "tokens", "money", "builds", "wall_s", "phone_s")
        return {name: getattr(self, name) for name in names}

    def approval_rules(self) -> "tuple[Rule, ...]":
        """Give the rules as the agent's gate takes them."""
        from agent.approval import Rule, Verdict

        return tuple(Rule(Verdict(rule.verdict), rule.tool, dict(rule.arguments)) for rule in self.rules)


class Settings(BaseSettings):
    """Everything that can be set; an unknown name is an error."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_nested_delimiter="__", extra="forbid", frozen=True, validate_default=True
    )

    data_dir: Path = Field(default_factory=default_data_dir)
    bind: str = "127.0.0.1"
    port: int = Field(default=8765, ge=0, le=65535)
    host_names: tuple[str, ...] = ()
    require_token: bool | None = None
    service_url: str | None = None
    token: SecretStr | None = None
    database_url: SecretStr | None = None
    artifacts_url: str | None = None
    workspace_roots: tuple[Path, ...] = ()
    repositories: tuple[str, ...] = ()
    phones: tuple[PhoneSettings, ...] = ()
    dispatch_poll_s: float = Field(default=1.0, gt=0)
    log_format: Literal["json", "console"] = "console"
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    telemetry: bool = False
    limits: Limits = Limits()
    retention: Retention = Retention()
    lab: Lab = Lab()
    care: PhoneCare = PhoneCare()
    webhooks: Webhooks = Webhooks()
    agent: AgentSettings = AgentSettings()
    providers: dict[str, Any] = {}
    secrets: dict[str, SecretSource] = {}
    mcp: dict[str, Any] = {}

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the service."""
        return self.bind in {"127.0.0.1", "::1", "localhost"} or self.bind.startswith("127.")

    @property
    def wants_token(self) -> bool:
        """Whether a request without a token is refused; a public bind always wants one."""
        return not self.is_loopback if self.require_token is None else self.require_token

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Take values only as handed in: `load_settings` reads the sources and remembers which won."""
        return (init_settings,)


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """Effective settings and where each one that is not a default came from, by dotted name."""

    settings: Settings
    sources: dict[str, str]


def load_settings(config_file: Path | None = None, **chosen: Any) -> LoadedSettings:
    """Read the file and the environment, lay `chosen` on top, and check the whole.

    Raises `SettingsFault` that names the setting, its source and, for an unknown name, the nearest
    known one. A `config_file` that is named must exist; the default one need not.
    """
    path = config_file or Path(os.environ.get(PREFIX + "CONFIG", "") or default_config_file())
    if config_file is not None and not config_file.is_file():
        raise SettingsFault(f"there is no settings file {config_file}")
    _refuse_unknown_variables(os.environ)
    merged: dict[str, Any] = {}
    sources: dict[str, str] = {}
    try:
        layers = [
            (str(path), TomlConfigSettingsSource(Settings, toml_file=path)()),
            ("environment", EnvSettingsSource(Settings, case_sensitive=False)()),
            ("command line", {name: value for name, value in chosen.items() if value is not None}),
        ]
    except (ValueError, OSError) as fault:
        raise SettingsFault(f"the settings in {path} or the environment cannot be read: {fault}") from fault
    for source, values in layers:
        _lay_over(merged, values, source, sources)
    try:
        return LoadedSettings(Settings(**merged), sources)
    except ValidationError as fault:
        raise SettingsFault(_explain(fault, sources)) from fault


def nearest(name: str, known: list[str]) -> str:
    """Give ` (did you mean …?)` for a misspelt name, or nothing where none is near."""
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f" (did you mean {close[0]}?)" if close else ""


def _lay_over(
    under: dict[str, Any], over: Mapping[str, Any], source: str, sources: dict[str, str], prefix: str = ""
) -> None:
    for name, value in over.items():
        if isinstance(value, Mapping):
            inner = under.setdefault(name, {})
            if isinstance(inner, dict):
                _lay_over(inner, value, source, sources, f"{prefix}{name}.")
                continue
        under[name] = value
        sources[prefix + name] = source


def _names_of(model: type[BaseModel], location: tuple[int | str, ...]) -> list[str]:
    for step in location:
        field = model.model_fields.get(str(step))
        candidates = [] if field is None else [field.annotation, *get_args(field.annotation)]
        groups = [c for c in candidates if isinstance(c, type) and issubclass(c, BaseModel)]
        model = groups[0] if groups else model
    return list(model.model_fields)


def _explain(fault: ValidationError, sources: Mapping[str, str]) -> str:
    lines = []
    for error in fault.errors(include_url=False, include_input=False):
        location = error["loc"]
        name = ".".join(str(step) for step in location)
        source = sources.get(name) or sources.get(str(location[0]) if location else "", "the settings")
        if error["type"] == "extra_forbidden":
            near = nearest(str(location[-1]), _names_of(Settings, location[:-1]))
            lines.append(f"unknown setting {name} in {source}{near}")
        else:
            lines.append(f"setting {name} in {source}: {error['msg']}")
    return "; ".join(lines)


def _refuse_unknown_variables(environment: Mapping[str, str]) -> None:
    known = [PREFIX + name.upper() for name in Settings.model_fields] + [PREFIX + "CONFIG"]
    for variable in environment:
        name = variable.upper().partition("__")[0]
        if name.startswith(OTHER_PREFIXES):
            continue
        if name.startswith(PREFIX) and name not in known:
            raise SettingsFault(f"unknown variable {variable} in the environment{nearest(name, known)}")
