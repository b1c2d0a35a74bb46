"""TLS inside a wire: what wireless debugging speaks after A_STLS."""

import ssl
from collections.abc import Sequence

from builder_bridge.adb.packets import Buffer
from builder_bridge.adb.wires import Wire

RECORD_BYTES = 16 << 10
PORTION_BYTES = 256 << 10


class TlsWire:
    """A `Wire` in another wire.

    OpenSSL works in memory here and the wire below moves large portions; left to itself it would
    ask the socket twice for each record of 16 KiB.
    """

    def __init__(self, below: Wire, context: ssl.SSLContext) -> None:
        self._below = below
        self._arrived = ssl.MemoryBIO()
        self._leaving = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._arrived, self._leaving)
        self.name = below.name

    async def shake_hands(self) -> None:
        """Agree on keys, as the client. Raises `ssl.SSLError`."""
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                await self._send_waiting()
                if not await self._take_arrivals():
                    raise ConnectionResetError("the connection ended during the TLS handshake") from None
            else:
                return await self._send_waiting()

    async def receive(self) -> Buffer:
        """Give the next bytes; none at the end. Raises `ssl.SSLError` where the phone refuses us."""
        while True:
            if data := self._read_records():
                return data
            if not await self._take_arrivals():
                return b""

    def send_now(self, buffers: Sequence[Buffer]) -> Sequence[Buffer]:
        """Send nothing: what is encrypted must go, so it is encrypted when it can."""
        return buffers

    async def send(self, buffers: Sequence[Buffer]) -> None:
        """Encrypt and send all the bytes."""
        content = memoryview(b"".join(buffers))
        while content:
            content = content[self._tls.write(content) :]
            if self._leaving.pending >= PORTION_BYTES or not content:
                await self._send_waiting()

    async def close(self) -> None:
        """Close the wire below; adb says no farewell in TLS."""
        await self._below.close()

    def _read_records(self) -> bytes:
        parts = list[bytes]()
        try:
            while part := self._tls.read(RECORD_BYTES):
                parts.append(part)
        except (ssl.SSLWantReadError, ssl.SSLZeroReturnError):
            pass
        return b"".join(parts)

    async def _take_arrivals(self) -> bool:
        data = await self._below.receive()
        self._arrived.write(data)
        return bool(data)

    async def _send_waiting(self) -> None:
        if waiting := self._leaving.read():
            await self._below.send([waiting])
