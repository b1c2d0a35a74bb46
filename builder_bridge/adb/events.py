"""What a phone's packets mean: the values that `AdbProtocol.feed` gives."""

from dataclasses import dataclass

FEATURES = (
    "shell_v2",
    "cmd",
    "stat_v2",
    "ls_v2",
    "fixed_push_mkdir",
    "sendrecv_v2",
    "sendrecv_v2_brotli",
    "sendrecv_v2_lz4",
    "sendrecv_v2_zstd",
    "delayed_ack",
)
"""What this host understands; only what both sides name is in force."""


@dataclass(frozen=True, slots=True)
class Banner:
    """How a phone introduces itself: its state (`device`, `recovery`, …), properties, features."""

    state: str
    properties: dict[str, str]
    features: frozenset[str]


@dataclass(frozen=True, slots=True)
class Connected:
    """The phone has let us in."""

    banner: Banner


@dataclass(frozen=True, slots=True)
class AuthWanted:
    """The phone asks for the token's signature; again, when it did not know the last key."""

    token: bytes


@dataclass(frozen=True, slots=True)
class TlsWanted:
    """The phone goes on only inside TLS: call `begin_tls`, send, then shake hands."""


@dataclass(frozen=True, slots=True)
class StreamOpened:
    """The phone has taken the service."""

    stream_id: int


@dataclass(frozen=True, slots=True)
class StreamData:
    """Bytes of a stream, in order; a view into what was fed. Give them back by `consume`."""

    stream_id: int
    data: memoryview


@dataclass(frozen=True, slots=True)
class StreamWritable:
    """The phone has granted credit."""

    stream_id: int


@dataclass(frozen=True, slots=True)
class StreamClosed:
    """The phone has ended the stream, or refused it if it was never opened."""

    stream_id: int


Event = Connected | AuthWanted | TlsWanted | StreamOpened | StreamData | StreamWritable | StreamClosed


def parse_banner(data: bytes) -> Banner:
    """Read `device::ro.product.model=X;features=a,b`; unknown properties are kept, junk is dropped."""
    state, _, rest = data.rstrip(b"\0").decode("utf-8", "replace").partition(":")
    pairs = (item.partition("=") for item in rest.partition(":")[2].split(";"))
    properties = {name: value for name, is_pair, value in pairs if is_pair}
    features = frozenset(filter(None, properties.pop("features", "").split(",")))
    return Banner(state, properties, features)
