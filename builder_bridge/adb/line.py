"""How fast the line to a phone is, and how long."""

import os
from contextlib import suppress

import anyio

from builder_bridge.adb.link import AdbConnection
from builder_bridge.errors import ServiceRefused

PROBE_BYTES = 1 << 20
NO_SERVICE = "pocketbuild-ping:"
"""No adbd knows it, so each refuses it at once."""


async def line_speed(adb: AdbConnection) -> float:
    """Give bytes per second towards the phone, measured once for each connection.

    A mebibyte goes into adbd's own `sink:`, which throws it away. An adbd that has none counts as
    infinitely fast, so that nothing is compressed for it.
    """
    if adb.line_bytes_per_s is None:
        adb.line_bytes_per_s = await _measure(adb)
    return adb.line_bytes_per_s


async def round_trip_s(adb: AdbConnection) -> float:
    """Measure how long the phone takes to answer, the shorter of two tries."""
    took_s = []
    for _ in range(2):
        asked = anyio.current_time()
        with suppress(ServiceRefused):
            await (await adb.open(NO_SERVICE)).close()
        took_s.append(anyio.current_time() - asked)
    return min(took_s)


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
