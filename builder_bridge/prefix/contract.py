"""The contract of a prefix: what `pb info` says it is, can and has, asked before any byte moves."""

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from builder_bridge.handoff import Size


def _as_text(value: object) -> object:
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _as_list(value: object) -> object:
    return [] if value is None else value if isinstance(value, list) else [value]


Text = Annotated[str | None, BeforeValidator(_as_text)]
Texts = Annotated[list[Annotated[str, BeforeValidator(_as_text)]], BeforeValidator(_as_list)]


class _Document(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class ProbeDocument(_Document):
    """What the runner says of itself: as whom it runs, where, and which version it is."""

    pb: Literal[1]
    version: str = ""
    uid: int
    domain: str = ""
    boot_id: str = ""
    dir: str


class PrefixContract(_Document):
    """What the prefix holds, from its `etc/prefix.json`; versions as text, None where it has none."""

    id: Text = None
    jdk: Text = None
    gradle: Text = None
    agp: Texts = []
    kotlin: Texts = []
    platforms: Texts = []
    build_tools: Texts = []
    aapt2: Text = None
    d8: Text = None
    apksigner: Text = None
    abi: Text = None
    ndk: Text = None
    cmake: Text = None
    node: Text = None
    git: Text = None
    gradle_native: bool = True
    repository: Texts = []


class DeviceFacts(_Document):
    """The phone as it is now; memory and storage in KiB."""

    api: int = 0
    abi: str = ""
    model: str = ""
    timezone: str = ""
    page_size: int = 0
    cores: int = Field(default=1, ge=1)
    memory_kb: Size = 0
    memory_available_kb: Size = 0
    storage_free_kb: Size = 0


class Contract(ProbeDocument):
    """All of it. `checks` are what the runner tried: writing, running, linking, locking…"""

    checks: dict[str, bool] = {}
    device: DeviceFacts = DeviceFacts()
    gradle_args: list[str] = []
    prefix: PrefixContract = PrefixContract()
