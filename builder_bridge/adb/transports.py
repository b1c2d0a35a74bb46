"""Ways to a phone behind one door: `connect` gives an `AdbConnection`, whatever lies between.

    HOST:PORT, tcp:HOST:PORT  adbd over TCP; goes on inside TLS where the phone asks for it
    usb:SERIAL, usb           a cable held by ourselves; alone, the only one
    server:SERIAL, server     a running adb server's phone; alone, its only one
    SERIAL                    the adb server's phone of that serial number, else the cable's, else
                              the one that was reached before, where it was found then
    nothing                   $ANDROID_SERIAL, else the only phone at the adb server or on USB, else
                              the only one that was reached before

Plain adb-shell is within reach too: `connect_over` takes any of its transports.
"""

import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import anyio

from builder_bridge.adb.blocking_wire import list_usb, open_usb
from builder_bridge.adb.connection import PING_INTERVAL_S, WireConnection
from builder_bridge.adb.greeting import Greeter
from builder_bridge.adb.keys import AdbKey, load_keys
from builder_bridge.adb.known_phones import load_known_phones
from builder_bridge.adb.link import AdbConnection
from builder_bridge.adb.protocol import AdbProtocol
from builder_bridge.adb.server import connect_served, list_served
from builder_bridge.adb.shell import run
from builder_bridge.adb.waiting import beside
from builder_bridge.adb.wires import Wire, open_tcp
from builder_bridge.errors import PhoneChanged, PhoneNotPaired, PhoneUnavailable

CONNECT_TIMEOUT_S = 10.0
DIALOG_TIMEOUT_S = 60.0


@asynccontextmanager
async def connect(
    address: str | None = None,
    *,
    keys: Sequence[AdbKey] | None = None,
    timeout_s: float = CONNECT_TIMEOUT_S,
    dialog_timeout_s: float = DIALOG_TIMEOUT_S,
    ping_interval_s: float = PING_INTERVAL_S,
    on_dialog: Callable[[str], None] = lambda sentence: None,
) -> AsyncIterator[AdbConnection]:
    """Connect to a phone and let go of it at the end.

    `keys` are offered to a phone that asks for one; by default `load_keys()`. `on_dialog` hears
    what the phone's owner is being asked, who has `dialog_timeout_s` to answer; with 0 nobody is
    asked. Raises the `PhoneUnavailable` that fits. A connection that dies later raises `PhoneLost`
    in all that is under way, after three pings missed at the latest.
    """
    way = await _find(address)
    if way.kind == "server":
        async with connect_served(way.place) as served:
            yield served
            return
    if keys is None:
        keys = await anyio.to_thread.run_sync(load_keys)
    async with AsyncExitStack() as stack:
        # TLS takes one key for each connection, so a phone that refuses it is asked anew with the next.
        for number in range(max(1, len(keys))):
            over = connect_over(
                await _open_wire(way, timeout_s),
                keys[number:],
                timeout_s,
                dialog_timeout_s,
                ping_interval_s,
                on_dialog,
            )
            try:
                adb = await stack.enter_async_context(over)
                break
            except PhoneNotPaired:
                if number + 1 >= len(keys):
                    raise
        if way.expected_serial not in (None, adb.serial):
            raise PhoneChanged(
                f"{way.place} was {way.expected_serial}; now {adb.serial} answers there.", serial=adb.serial
            )
        yield adb


@asynccontextmanager
async def connect_over(
    wire: Wire,
    keys: Sequence[AdbKey],
    timeout_s: float = CONNECT_TIMEOUT_S,
    dialog_timeout_s: float = DIALOG_TIMEOUT_S,
    ping_interval_s: float = PING_INTERVAL_S,
    on_dialog: Callable[[str], None] = lambda sentence: None,
) -> AsyncIterator[AdbConnection]:
    """Greet over an open wire and speak ADB on it; the wire is closed at the end. As `connect`."""
    try:
        protocol = AdbProtocol()
        greeting = await Greeter(wire, protocol, keys, on_dialog).greet(timeout_s, dialog_timeout_s)
        connection = WireConnection(protocol, greeting)
        async with beside(connection.read, connection.write_out, lambda: connection.watch(ping_interval_s)):
            connection.serial = await _read_serial(connection) or wire.name
            yield connection
    finally:
        with anyio.CancelScope(shield=True):
            await wire.close()


async def _open_wire(way: "_Way", timeout_s: float) -> Wire:
    if way.kind == "usb":
        return await open_usb(way.place or None, timeout_s)
    host, _, port = way.place.rpartition(":")
    return await open_tcp(host.strip("[]"), int(port), timeout_s)


@dataclass(frozen=True, slots=True)
class _Way:
    """`kind` is tcp, usb or server; `place` HOST:PORT or a serial number."""

    kind: str
    place: str
    expected_serial: str | None = None


async def _find(address: str | None) -> _Way:
    address = address or os.environ.get("ANDROID_SERIAL") or ""
    kind, _, rest = address.partition(":")
    match kind:
        case "usb":
            return _Way(kind, rest)
        case "server":
            return _Way(kind, rest or await _only_served())
        case "tcp":
            address = rest
    if address.rpartition(":")[2].isdecimal() and ":" in address:
        return _Way("tcp", address)
    return await _find_serial(address)


async def _find_serial(serial: str) -> _Way:
    try:
        served = [phone.serial for phone in await list_served()]
    except PhoneUnavailable:
        served = []
    cabled = [] if served else await anyio.to_thread.run_sync(list_usb)
    found = [_Way("server", name) for name in served] + [_Way("usb", name) for name in cabled]
    fitting = [way for way in found if serial in ("", way.place)]
    if len(fitting) == 1:
        return fitting[0]
    known = await anyio.to_thread.run_sync(load_known_phones)
    if not serial and not found and len(known) == 1:
        serial = next(iter(known))
    if serial in known:
        return _Way("tcp", known[serial].address, serial)
    there = ", ".join(f"{way.kind}:{way.place}" for way in found) or "none"
    wanted = f"No phone {serial}" if serial else "No phone" if not found else "More than one phone"
    before = f" Reached before: {', '.join(known)}." if known else ""
    raise PhoneUnavailable(
        f"{wanted} was found at an adb server or on USB. There: {there}.{before}",
        hint="Name one by HOST:PORT, serial number or ANDROID_SERIAL; `pocketbuild phone list` shows all.",
    )


async def _only_served() -> str:
    served = [phone.serial for phone in await list_served()]
    if len(served) == 1:
        return served[0]
    raise PhoneUnavailable(f"The adb server holds {len(served)} phones: {', '.join(served) or 'none'}.")


async def _read_serial(connection: AdbConnection) -> str:
    if "shell_v2" not in connection.features:
        return ""
    return (await run(connection, "getprop ro.serialno")).stdout.decode("utf-8", "replace").strip()
