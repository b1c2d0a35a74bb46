"""Ways to a phone behind one door: `connect` gives an `AdbConnection`, whatever lies between.

127.0.0.1:5555, tcp:HOST:PORT   adbd over TCP; goes on inside TLS where the phone asks for it
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import anyio

from builder_bridge.adb.beside import beside
from builder_bridge.adb.connection import PING_INTERVAL_S, AdbConnection, WireConnection
from builder_bridge.adb.greeting import Greeter
from builder_bridge.adb.keys import AdbKey, load_keys
from builder_bridge.adb.protocol import AdbProtocol
from builder_bridge.adb.shell import run
from builder_bridge.adb.wires import Wire, open_tcp
from builder_bridge.errors import PhoneUnavailable

CONNECT_TIMEOUT_S = 10.0
DIALOG_TIMEOUT_S = 60.0


@asynccontextmanager
async def connect(
    address: str,
    *,
    keys: Sequence[AdbKey] | None = None,
    timeout_s: float = CONNECT_TIMEOUT_S,
    dialog_timeout_s: float = DIALOG_TIMEOUT_S,
    ping_interval_s: float = PING_INTERVAL_S,
    on_dialog: Callable[[str], None] = lambda sentence: None,
) -> AsyncIterator[AdbConnection]:
    """Connect to a phone and let go of it at the end.

    `keys` are offered to a phone that asks for one; by default `load_keys()`. `on_dialog` hears
    what the phone's owner is being asked. Raises the `PhoneUnavailable` that fits. A connection
    that dies later raises `PhoneLost` in whatever is under way.
    """
    if keys is None:
        keys = await anyio.to_thread.run_sync(load_keys)
    wire = await open_wire(address, timeout_s)
    try:
        protocol = AdbProtocol()
        greeting = await Greeter(wire, protocol, keys, on_dialog).greet(timeout_s, dialog_timeout_s)
        connection = WireConnection(wire, protocol, greeting.banner, address)
        async with beside(connection.read, connection.write_out, lambda: connection.watch(ping_interval_s)):
            connection.serial = await _read_serial(connection) or address
            yield connection
    finally:
        with anyio.CancelScope(shield=True):
            await wire.close()


async def open_wire(address: str, timeout_s: float) -> Wire:
    """Open the wire that an address names, not yet greeted. Raises `PhoneUnavailable`."""
    host, _, port = address.removeprefix("tcp:").rpartition(":")
    if not host or not port.isdecimal():
        raise PhoneUnavailable(f"{address!r} is no address of a phone.", hint="Write HOST:PORT.")
    return await open_tcp(host.strip("[]"), int(port), timeout_s)


async def _read_serial(connection: AdbConnection) -> str:
    if "shell_v2" not in connection.features:
        return ""
    return (await run(connection, "getprop ro.serialno")).stdout.decode("utf-8", "replace").strip()
