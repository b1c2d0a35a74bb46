"""Phones that a running adb server holds, reached by its "smart socket" protocol.

A request is its length in four hex digits and its text; the answer begins with OKAY or FAIL. The
server is only ever asked: none is started, restarted or killed here, since adb versions that kill
each other's server are a known plague. Where it listens comes from `ADB_SERVER_SOCKET`,
`ANDROID_ADB_SERVER_ADDRESS` and `ANDROID_ADB_SERVER_PORT`, as for adb itself.
Source: AOSP `packages/modules/adb/SERVICES.TXT` and `OVERVIEW.TXT`, and adb 36.
"""

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from builder_bridge.adb.events import FEATURES, Banner
from builder_bridge.adb.link import AdbStream
from builder_bridge.adb.packets import Buffer
from builder_bridge.adb.protocol import WINDOW_BYTES
from builder_bridge.adb.wires import Wire, open_tcp, open_unix
from builder_bridge.errors import (
    PhoneLost,
    PhoneOffline,
    PhoneUnauthorized,
    PhoneUnavailable,
    ProtocolFault,
    ServiceRefused,
    StreamEnded,
)

DEFAULT_PORT = 5037
CONNECT_TIMEOUT_S = 5.0
_TRANSPORT = "host:transport:"


@dataclass(frozen=True, slots=True)
class ServedPhone:
    """A phone as the adb server sees it; `state` is `device`, `unauthorized`, `offline`, …"""

    serial: str
    state: str
    properties: dict[str, str]


def server_address(environment: Mapping[str, str]) -> str:
    """Tell where the adb server listens: `tcp:HOST:PORT`, `localfilesystem:PATH`, `localabstract:NAME`."""
    if address := environment.get("ADB_SERVER_SOCKET"):
        kind, _, rest = address.partition(":")
        return f"tcp:127.0.0.1:{rest}" if kind == "tcp" and rest.isdecimal() else address
    host = environment.get("ANDROID_ADB_SERVER_ADDRESS", "127.0.0.1")
    return f"tcp:{host}:{environment.get('ANDROID_ADB_SERVER_PORT', DEFAULT_PORT)}"


def parse_phones(listing: str) -> list[ServedPhone]:
    """Read the answer to `host:devices-l`; lines that are none of it are dropped."""
    phones = list[ServedPhone]()
    for line in listing.splitlines():
        serial, _, rest = line.partition(" ")
        words = [word.partition(":") for word in rest.split()]
        state = " ".join(name for name, colon, _ in words if not colon)
        if serial and state:
            phones.append(ServedPhone(serial, state, {name: value for name, colon, value in words if colon}))
    return phones


def refusal(serial: str, reason: str) -> PhoneUnavailable:
    """Turn the server's FAIL about a phone into the state of the phone that it means."""
    told = f"The adb server says: {reason}"
    if "unauthorized" in reason or "authorizing" in reason:
        return PhoneUnauthorized(told, serial=serial)
    if "offline" in reason:
        hint = f"Run `adb disconnect {serial}`, then connect again; a USB cable may need replugging."
        return PhoneOffline(told, serial=serial, hint=hint)
    return PhoneUnavailable(told, serial=serial)


async def list_served() -> list[ServedPhone]:
    """Ask the adb server for its phones. Raises `PhoneUnavailable` where none runs."""
    return parse_phones(await _ask("host:devices-l"))


@asynccontextmanager
async def connect_served(serial: str) -> AsyncIterator["ServerConnection"]:
    """Reach a phone through the running adb server, which does the talking with its own key.

    Raises the `PhoneUnavailable` that fits. All that a server later tells of a phone that is gone
    is the end of its streams.
    """
    try:
        features = frozenset((await _ask(f"host-serial:{serial}:features")).split(","))
    except _Refused as refused:
        raise refusal(serial, str(refused)) from None
    phones = {phone.serial: phone.properties for phone in await list_served()}
    yield ServerConnection(serial, Banner("device", phones.get(serial, {}), features))


class ServerConnection:
    """An `AdbConnection` whose every stream is a connection to the adb server."""

    def __init__(self, serial: str, banner: Banner) -> None:
        self._transport = _TRANSPORT + serial
        self.serial = serial
        self.banner = banner
        self.features = banner.features & set(FEATURES)
        self.key_fingerprint: str | None = None
        self.line_bytes_per_s: float | None = None
        # A server tells of `delayed_ack` where the phone has it, but uses it only by a switch of its own.
        self.has_windows = False

    async def open(self, service: str, *, window_bytes: int = WINDOW_BYTES) -> AdbStream:
        """Open a stream; the windows are between server and phone, so `window_bytes` changes nothing."""
        try:
            return await _open_stream(self._transport, service)
        except _Refused as refused:
            if refused.request == self._transport:
                raise PhoneLost(f"The adb server lost the phone: {refused}", serial=self.serial) from None
            name = service.partition(":")[0]
            raise ServiceRefused(f"The phone refused {name}: {refused}.", serial=self.serial) from None


class _Refused(Exception):
    """The server refused a request; the text is its reason."""

    def __init__(self, request: str, reason: str) -> None:
        super().__init__(reason)
        self.request = request


class _ServerStream:
    """A connection to the server: first requests, then the bytes of the service that was asked for."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._unread: Buffer = b""

    async def request(self, text: str) -> None:
        """Ask and wait for OKAY. Raises `_Refused`, or the faults of the connection."""
        encoded = text.encode()
        await self.send(b"%04x" % len(encoded), encoded)
        status = await self._take(4)
        if status == b"FAIL":
            raise _Refused(text, await self.take_text())
        if status != b"OKAY":
            raise ProtocolFault(f"{self._wire.name} is no adb server: it answered {status!r}.")

    async def take_text(self) -> str:
        """Take a text with its length before it."""
        digits = await self._take(4)
        try:
            size_bytes = int(digits, 16)
        except ValueError:
            raise ProtocolFault(f"{self._wire.name} is no adb server: {digits!r} is no length.") from None
        return (await self._take(size_bytes)).decode("utf-8", "replace")

    async def receive(self) -> Buffer:
        """Give the next bytes; none at the end."""
        if self._unread:
            unread, self._unread = self._unread, b""
            return unread
        try:
            return await self._wire.receive()
        except OSError as error:
            raise PhoneLost(f"{self._wire.name} was lost: {error.strerror or error}.") from error

    async def send(self, *buffers: Buffer) -> None:
        """Send all the bytes."""
        try:
            await self._wire.send(list(buffers))
        except OSError as error:
            raise StreamEnded(f"The adb server ended the stream: {error.strerror or error}.") from error

    async def close(self) -> None:
        """Close the connection, which ends the service."""
        await self._wire.close()

    async def _take(self, size_bytes: int) -> bytes:
        taken = bytearray()
        while len(taken) < size_bytes:
            data = memoryview(await self.receive())
            if not data:
                raise ProtocolFault(f"{self._wire.name} ended in the middle of an answer.")
            wanted = size_bytes - len(taken)
            taken += data[:wanted]
            self._unread = data[wanted:]
        return bytes(taken)


async def _ask(request: str) -> str:
    stream = await _open_stream(request)
    try:
        return await stream.take_text()
    finally:
        await stream.close()


async def _open_stream(*requests: str) -> _ServerStream:
    stream = _ServerStream(await _open_wire(server_address(os.environ)))
    try:
        for request in requests:
            await stream.request(request)
    except BaseException:
        await stream.close()
        raise
    return stream


async def _open_wire(address: str) -> Wire:
    kind, _, rest = address.partition(":")
    try:
        match kind:
            case "tcp":
                host, _, port = rest.rpartition(":")
                return await open_tcp(host.strip("[]"), int(port), CONNECT_TIMEOUT_S)
            case "localfilesystem" | "local":
                return await open_unix(rest)
            case "localabstract":
                return await open_unix(f"\0{rest}")
            case _:
                raise ValueError(f"{kind!r} is no kind of socket that is known here")
    except ValueError as error:
        raise PhoneUnavailable(f"ADB_SERVER_SOCKET={address} cannot be used: {error}.") from error
    except (PhoneUnavailable, OSError) as error:
        raise PhoneUnavailable(
            f"No adb server answers on {address}.",
            hint="Start one with `adb start-server`, or name the phone by HOST:PORT.",
        ) from error
