"""What a connection to a phone offers, whatever carries it."""

from typing import Protocol

from builder_bridge.adb.events import Banner
from builder_bridge.adb.packets import Buffer
from builder_bridge.adb.protocol import WINDOW_BYTES


class AdbStream(Protocol):
    """Bytes to and from one service on the phone."""

    async def receive(self) -> Buffer:
        """Give the next bytes, at least one; none at all means the phone ended the stream."""

    async def send(self, *buffers: Buffer) -> None:
        """Queue all bytes, waiting for credit. They are not copied: never change them afterwards."""

    async def close(self) -> None:
        """End the stream; harmless when it has ended."""


class AdbConnection(Protocol):
    """A phone that answers. All faults are of the tree in `builder_bridge.errors`."""

    key_fingerprint: str | None
    """Which of our keys the phone let in; None where it asked for none or an adb server has its own."""
    line_bytes_per_s: float | None
    """The line's speed towards the phone, once something has measured it."""

    @property
    def serial(self) -> str:
        """The phone's own serial number: its identity, whatever address it has today."""

    @property
    def banner(self) -> Banner:
        """How the phone introduced itself."""

    @property
    def features(self) -> frozenset[str]:
        """What both sides can do, such as `shell_v2` or `sendrecv_v2_zstd`."""

    @property
    def has_windows(self) -> bool:
        """Whether a stream may have more than one packet under way (`delayed_ack`)."""

    async def open(self, service: str, *, window_bytes: int = WINDOW_BYTES) -> AdbStream:
        """Open a stream to a service, such as `sync:`; raises `ServiceRefused`, `PhoneLost`."""
