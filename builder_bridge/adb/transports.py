"""Ways to a phone behind one door: `connect` gives an `AdbConnection`, whatever lies between.

    HOST:PORT, tcp:HOST:PORT  adbd over TCP; goes on inside TLS where the phone asks for it
    usb:SERIAL, usb           a cable held by ourselves; alone, the only one
    server:SERIAL, server     a running adb server's phone; alone, its only one
    SERIAL                    the adb server's phone of that serial number, else the cable's, else
                              the one that was reached before, where it was found then, else the one
                              that announces itself on the network by that serial number
    nothing                   $ANDROID_SERIAL, else the only phone at the adb server or on USB, else
                              the only one that was reached before

Plain adb-shell is within reach too: `connect_over` takes any of its transports.
"""

import ipaddress
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial

import anyio

from builder_bridge.adb.blocking_wire import list_usb, open_usb
from builder_bridge.adb.connection import PING_INTERVAL_S, WireConnection
from builder_bridge.adb.discovery import find_once
from builder_bridge.adb.greeting import Greeter
from builder_bridge.adb.keys import AdbKey, load_keys
from builder_bridge.adb.known_phones import KnownPhone, load_known_phones, remember_phone
from builder_bridge.adb.link import AdbConnection
from builder_bridge.adb.protocol import AdbProtocol
from builder_bridge.adb.server import connect_served, list_served
from builder_bridge.adb.shell import run
from builder_bridge.adb.waiting import beside
from builder_bridge.adb.wires import Wire, open_tcp
from builder_bridge.errors import PhoneChanged, PhoneNotPaired, PhoneUnauthorized, PhoneUnavailable

CONNECT_TIMEOUT_S = 10.0
DIALOG_TIMEOUT_S = 60.0
ANNOUNCED_TIMEOUT_S = 4.0
"""Where a phone only seems to be, it has less time to answer."""

Find = Callable[[str], Awaitable[Sequence[str]]]
"""Tells at which HOST:PORTs a phone of a serial number announces itself, after a short wait at most."""


@asynccontextmanager
async def connect(
    address: str | None = None,
    *,
    keys: Sequence[AdbKey] | None = None,
    timeout_s: float = CONNECT_TIMEOUT_S,
    dialog_timeout_s: float = DIALOG_TIMEOUT_S,
    ping_interval_s: float = PING_INTERVAL_S,
    on_dialog: Callable[[str], None] = lambda sentence: None,
    find: Find = find_once,
) -> AsyncIterator[AdbConnection]:
    """Connect to a phone and let go of it at the end.

    `keys` are offered to a phone that asks for one; by default `load_keys()`. `on_dialog` hears
    what the phone's owner is being asked, who has `dialog_timeout_s` to answer; with 0 nobody is
    asked. Raises the `PhoneUnavailable` that fits. A connection that dies later raises `PhoneLost`
    in all that is under way, after three pings missed at the latest.

    A phone named by its serial number is looked for on the network by `find` only when it does not
    answer where it was before; whoever answers there must have that serial number.
    """
    way = await _find(address, find)
    if way.kind == "server":
        async with connect_served(way.place) as served:
            yield served
            return
    if keys is None:
        keys = await anyio.to_thread.run_sync(load_keys)
    over = partial(
        connect_over, dialog_timeout_s=dialog_timeout_s, ping_interval_s=ping_interval_s, on_dialog=on_dialog
    )
    async with AsyncExitStack() as stack:
        yield await _enter_somewhere(stack, way, keys, over, timeout_s, find)


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


_Over = Callable[[Wire, Sequence[AdbKey], float], AbstractAsyncContextManager[AdbConnection]]


async def _enter_somewhere(
    stack: AsyncExitStack, way: "_Way", keys: Sequence[AdbKey], over: _Over, timeout_s: float, find: Find
) -> AdbConnection:
    """Connect by a way, else to where the phone announces itself; gives what tells most if all fail."""
    faults = list[PhoneUnavailable]()
    async for place in _places(way, find):
        is_announced = place.is_announced
        try:
            limit_s = min(timeout_s, ANNOUNCED_TIMEOUT_S) if is_announced else timeout_s
            async with AsyncExitStack() as attempt:
                adb = await _enter(attempt, place, keys, over, limit_s)
                stack.push_async_exit(attempt.pop_all())
        except PhoneUnavailable as fault:
            faults.append(fault)
            continue
        if is_announced:
            model = adb.banner.properties.get("ro.product.model", "")
            found = KnownPhone(
                serial=adb.serial, address=place.place, key_fingerprint=adb.key_fingerprint, model=model
            )
            await anyio.to_thread.run_sync(remember_phone, found)
        return adb
    telling: tuple[type[PhoneUnavailable], ...] = (PhoneUnauthorized, PhoneChanged, PhoneUnavailable)
    raise min(faults, key=lambda fault: [isinstance(fault, kind) for kind in telling].index(True))


async def _enter(
    stack: AsyncExitStack, way: "_Way", keys: Sequence[AdbKey], over: _Over, timeout_s: float
) -> AdbConnection:
    # TLS takes one key for each connection, so a phone that refuses it is asked anew with the next.
    for number in range(max(1, len(keys))):
        wire = await _open_wire(way, timeout_s)
        try:
            adb = await stack.enter_async_context(over(wire, keys[number:], timeout_s))
            break
        except PhoneNotPaired:
            if number + 1 >= len(keys):
                raise
    if way.expected_serial not in (None, adb.serial):
        raise PhoneChanged(
            f"{way.place} was {way.expected_serial}; now {adb.serial} answers there.", serial=adb.serial
        )
    if way.is_announced and way.asked_for_key and adb.key_fingerprint is None:
        raise PhoneChanged(
            f"{way.place} calls itself {adb.serial}, but asks for no key, as that phone did.",
            serial=adb.serial,
        )
    return adb


async def _places(way: "_Way", find: Find) -> AsyncIterator["_Way"]:
    """Give a way, then, for a phone that is named by its serial number, where it announces itself."""
    yield way
    if way.expected_serial is None:
        return
    others: Sequence[str] = way.others
    if not (others or way.is_announced or way.is_loopback):
        others = await find(way.expected_serial)
    for place in others:
        if place != way.place:
            yield replace(way, place=place, is_announced=True)


async def _open_wire(way: "_Way", timeout_s: float) -> Wire:
    if way.kind == "usb":
        return await open_usb(way.place or None, timeout_s)
    host, _, port = way.place.rpartition(":")
    return await open_tcp(host.strip("[]"), int(port), timeout_s)


@dataclass(frozen=True, slots=True)
class _Way:
    """`kind` is tcp, usb or server; `place` HOST:PORT or a serial number.

    `others` are where the phone announces itself, as far as that is known already.
    """

    kind: str
    place: str
    expected_serial: str | None = None
    asked_for_key: bool = False
    is_announced: bool = False
    others: tuple[str, ...] = ()

    @property
    def is_loopback(self) -> bool:
        """Whether the place is on this host, where nothing announces itself."""
        host = self.place.rpartition(":")[0].strip("[]")
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return host == "localhost"


async def _find(address: str | None, find: Find) -> _Way:
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
    return await _find_serial(address, find)


async def _find_serial(serial: str, find: Find) -> _Way:
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
        phone = known[serial]
        return _Way("tcp", phone.address, serial, asked_for_key=phone.key_fingerprint is not None)
    if serial and (places := await find(serial)):
        return _Way("tcp", places[0], serial, is_announced=True, others=tuple(places[1:]))
    there = ", ".join(f"{way.kind}:{way.place}" for way in found) or "none"
    wanted = f"No phone {serial}" if serial else "No phone" if not found else "More than one phone"
    where = "at an adb server, on USB or on the network" if serial else "at an adb server or on USB"
    before = f" Reached before: {', '.join(known)}." if known else ""
    raise PhoneUnavailable(
        f"{wanted} was found {where}. There: {there}.{before}",
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
