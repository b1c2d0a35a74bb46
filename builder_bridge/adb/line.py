"""How fast the line to a phone is."""

import os

import anyio

from builder_bridge.adb.link import AdbConnection
from builder_bridge.errors import ServiceRefused

PROBE_BYTES = 1 << 20


async def line_speed(adb: AdbConnection) -> float:
    """Give bytes per second towards the phone, measured once for each connection.

    A mebibyte goes into adbd's own `sink:`, which throws it away. An adbd that has none counts as
    infinitely fast, so that nothing is compressed for it.
    """
    if adb.line_bytes_per_s is None:
        adb.line_bytes_per_s = await _measure(adb)
    return adb.line_bytes_per_s


async def _measure(adb: AdbConnection) -> float:
    noise = os.urandom(PROBE_BYTES)
    asked = anyio.current_time()
    try:
        stream = await adb.open(f"sink:{PROBE_BYTES}")
    except ServiceRefused:
        return float("inf")
    opened = anyio.current_time()
    await stream.send(noise)
    while await stream.receive():
        pass
    await stream.close()
    took_s = anyio.current_time() - opened
    round_trip_s = opened - asked
    return PROBE_BYTES / max(took_s - round_trip_s, took_s / 10, 1e-6)
