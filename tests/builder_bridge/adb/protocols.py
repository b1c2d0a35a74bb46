"""A protocol that has been greeted, for the tests of what it does with packets."""

import struct

from builder_bridge.adb.events import (
    Event,
)
from builder_bridge.adb.protocol import AdbProtocol
from tests.fakes_adb import MODERN, packet

WITHOUT_SUM, WITH_SUM = 0x01000001, 0x01000000


def greeting(
    features: str = MODERN,
    *,
    version: int = WITHOUT_SUM,
    max_payload_bytes: int = 1 << 20,
    state: str = "device",
) -> bytes:
    banner = f"{state}::ro.product.model=Pixel 7;features={features}".encode()
    return packet(b"CNXN", version, max_payload_bytes, banner)


def connected(features: str = MODERN, **kind: int) -> AdbProtocol:
    protocol = AdbProtocol()
    protocol.greet()
    feed(protocol, greeting(features, **kind))
    protocol.take_output()
    return protocol


def feed(protocol: AdbProtocol, data: bytes) -> list[Event]:
    return list(protocol.feed(data))


def opened(protocol: AdbProtocol, *, remote_id: int = 77, credit: int = 1 << 20) -> int:
    stream_id = protocol.open("sync:")
    window = struct.pack("<i", credit) if "delayed_ack" in protocol.features else b""
    feed(protocol, packet(b"OKAY", remote_id, stream_id, window))
    protocol.take_output()
    return stream_id


def output(protocol: AdbProtocol) -> bytes:
    return b"".join(protocol.take_output())
