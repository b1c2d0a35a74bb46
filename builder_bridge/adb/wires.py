"""Wires that carry ADB's bytes, and sockets as wires.

A wire raises `OSError` when it breaks (TLS faults are `OSError`s too) and gives no bytes at its
end. It is used by one reader and one writer at a time.
"""

import errno
import socket
from collections import deque
from collections.abc import Sequence
from itertools import islice
from typing import Protocol

import anyio
import anyio.lowlevel

from builder_bridge.adb.packets import Buffer, skip_bytes
from builder_bridge.errors import PhoneRefused, PhoneUnavailable, PhoneUnreachable

SMALL_READ_BYTES, LARGE_READ_BYTES = 64 << 10, 1 << 20
"""Bulk is read in large portions; for an answer of a few bytes as much memory would be a waste."""
MAX_BUFFERS = 512
"""The kernel takes at most 1,024 buffers in one call."""
KEEPALIVE_IDLE_S, KEEPALIVE_INTERVAL_S, KEEPALIVE_PROBES = 20, 5, 6


class Wire(Protocol):
    """A byte pipe to adbd."""

    name: str
    """Names the far end in messages."""

    async def receive(self) -> Buffer:
        """Give the next bytes; none at the end."""

    def send_now(self, buffers: Sequence[Buffer]) -> Sequence[Buffer]:
        """Send what can go without waiting, perhaps nothing, and give the rest."""

    async def send(self, buffers: Sequence[Buffer]) -> None:
        """Send all the bytes."""

    async def close(self) -> None:
        """Let go of the far end."""


class SocketWire:
    """A TCP connection (or any stream socket) as a wire, with no copy on the way."""

    def __init__(self, connected: socket.socket, name: str) -> None:
        self._socket = connected
        self._read_bytes = LARGE_READ_BYTES
        self.name = name

    async def receive(self) -> Buffer:
        """Give the next bytes; none at the end."""
        has_waited = False
        while True:
            try:
                data = self._socket.recv(self._read_bytes)
            except BlockingIOError:
                await anyio.wait_readable(self._socket)
                has_waited = True
            else:
                break
        if not has_waited:  # a line that is never empty must let others work too
            await anyio.lowlevel.checkpoint()
        self._read_bytes = SMALL_READ_BYTES if len(data) < SMALL_READ_BYTES else LARGE_READ_BYTES
        return data

    def send_now(self, buffers: Sequence[Buffer]) -> Sequence[Buffer]:
        """Send as much as the kernel takes, and give the rest."""
        unsent = deque(memoryview(buffer) for buffer in buffers)
        while unsent:
            try:
                sent = self._socket.sendmsg(islice(unsent, MAX_BUFFERS))
            except BlockingIOError:
                break
            skip_bytes(unsent, sent)
        return unsent

    async def send(self, buffers: Sequence[Buffer]) -> None:
        """Send all the bytes, going on where the kernel took only some."""
        while buffers := self.send_now(buffers):
            await anyio.wait_writable(self._socket)

    async def close(self) -> None:
        """Close the socket."""
        anyio.notify_closing(self._socket)
        self._socket.close()


async def open_tcp(host: str, port: int, timeout_s: float) -> SocketWire:
    """Connect to adbd. Raises `PhoneUnreachable`, `PhoneRefused`; several addresses are tried in turn."""
    name = f"{host}:{port}"
    failure: OSError | None = None
    try:
        with anyio.fail_after(timeout_s):
            for family, kind, protocol, _, address in await anyio.getaddrinfo(
                host, port, type=socket.SOCK_STREAM
            ):
                try:
                    return SocketWire(await _connect(family, kind, protocol, address), name)
                except OSError as error:
                    failure = error
    except TimeoutError:
        raise PhoneUnreachable(f"{name} did not answer within {timeout_s:g} s.") from None
    except OSError as error:
        failure = error
    if failure is not None and failure.errno == errno.ECONNREFUSED:
        raise PhoneRefused(f"{name} refused the connection: no adbd listens there.") from failure
    if failure is not None and failure.errno in (errno.EMFILE, errno.ENFILE):
        raise PhoneUnavailable(f"This host has no socket left to reach {name}: {failure}.") from failure
    raise PhoneUnreachable(f"There is no way to {name}: {failure or 'no such host'}.") from failure


async def open_unix(path: str) -> SocketWire:
    """Connect to a Unix socket; a leading NUL names an abstract one. Raises `OSError`."""
    opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        opened.setblocking(False)
        opened.connect(path)
    except BaseException:
        opened.close()
        raise
    return SocketWire(opened, path.replace("\0", "@"))


async def _connect(family: int, kind: int, protocol: int, address: object) -> socket.socket:
    opened = socket.socket(family, kind, protocol)
    try:
        opened.setblocking(False)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, KEEPALIVE_IDLE_S)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, KEEPALIVE_PROBES)
        if opened.connect_ex(address) not in (0, errno.EINPROGRESS):  # type: ignore[arg-type]
            opened.connect(address)  # type: ignore[arg-type]  # raises the fault by its own class
        await anyio.wait_writable(opened)
        if code := opened.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            raise OSError(code, errno.errorcode.get(code, str(code)))
    except BaseException:
        opened.close()
        raise
    return opened
