"""A TCP proxy that does to a connection what cables, phones and networks do.

    async with open_chaos("127.0.0.1", box.port, Faults(latency_s=0.1)) as chaos:
        async with connect(chaos.address) as adb: ...
        chaos.cut()                      # now, for all connections; new ones work again
        chaos.faults = Faults(segment_bytes=1)   # from the next connection on

`up` is towards the phone, `down` towards this host.
"""

import math
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

import anyio
from anyio.abc import ByteStream, SocketAttribute, SocketStream

from builder_bridge.adb.waiting import beside

READ_BYTES = 64 << 10


@dataclass(frozen=True)
class Faults:
    """What happens to a connection; by default nothing.

    `cut_*_after` ends it once so many bytes have gone that way: by RST, or by FIN `with_fin`.
    `stall_*` is (bytes, seconds): a pause after so many bytes. `silent_*_after` lets nothing more
    through, without any sign. `segment_bytes` cuts what is sent; `bytes_per_s` slows each way.
    """

    cut_up_after: float = math.inf
    cut_down_after: float = math.inf
    with_fin: bool = False
    latency_s: float = 0.0
    segment_bytes: int = READ_BYTES
    stall_up: tuple[int, float] | None = None
    stall_down: tuple[int, float] | None = None
    silent_up_after: float = math.inf
    silent_down_after: float = math.inf
    bytes_per_s: float = math.inf


class _Cut(Exception):
    pass


@dataclass
class _Pair:
    """One connection through the proxy."""

    client: SocketStream
    phone: SocketStream
    faults: Faults
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    with_fin: bool = False
    is_silent: bool = False


@dataclass
class Chaos:
    """A running proxy; see the module's text. `up_bytes` and `down_bytes` count what came through."""

    target: tuple[str, int]
    faults: Faults
    port: int = 0
    up_bytes: int = 0
    down_bytes: int = 0
    connections: int = 0
    is_refusing: bool = False
    _pairs: list[_Pair] = field(default_factory=list)

    @property
    def address(self) -> str:
        """Where to connect instead of the phone."""
        return f"127.0.0.1:{self.port}"

    def cut(self, *, with_fin: bool = False) -> None:
        """End all connections now."""
        for pair in self._pairs:
            pair.with_fin = with_fin
            pair.scope.cancel()

    def go_silent(self) -> None:
        """Let nothing more through on the connections there are, without any sign."""
        for pair in self._pairs:
            pair.is_silent = True

    async def serve(self, client: SocketStream) -> None:
        """Carry one connection until it ends or is cut."""
        async with client:
            if self.is_refusing:
                _set_reset(client)
                return
            self.connections += 1
            try:
                phone = await anyio.connect_tcp(*self.target)
            except OSError:
                _set_reset(client)
                return
            async with phone:
                pair = _Pair(client, phone, self.faults, with_fin=self.faults.with_fin)
                self._pairs.append(pair)
                try:
                    await self._carry(pair)
                finally:
                    self._pairs.remove(pair)
                    if not pair.with_fin:
                        _set_reset(client)
                        _set_reset(phone)

    async def _carry(self, pair: _Pair) -> None:
        with pair.scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._carry_one_way, pair, True)
                tasks.start_soon(self._carry_one_way, pair, False)

    async def _carry_one_way(self, pair: _Pair, is_up: bool) -> None:
        source, sink = (pair.client, pair.phone) if is_up else (pair.phone, pair.client)
        send, receive = anyio.create_memory_object_stream[tuple[float, bytes]](4096)
        with send, receive:
            try:
                async with anyio.create_task_group() as both:
                    both.start_soon(self._read, source, send, pair)
                    await self._write(receive, sink, pair, is_up)
            except* (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
                pass
            except* _Cut:
                pass
            else:
                pair.with_fin = True
        pair.scope.cancel()

    async def _read(self, source: ByteStream, send: anyio.abc.ObjectSendStream, pair: _Pair) -> None:
        async for data in source:
            await send.send((anyio.current_time() + pair.faults.latency_s, data))
        await send.aclose()

    async def _write(
        self, receive: anyio.abc.ObjectReceiveStream, sink: ByteStream, pair: _Pair, is_up: bool
    ) -> None:
        faults = pair.faults
        limit = faults.cut_up_after if is_up else faults.cut_down_after
        silence = faults.silent_up_after if is_up else faults.silent_down_after
        stall = faults.stall_up if is_up else faults.stall_down
        done = 0
        async for due, data in receive:
            await anyio.sleep_until(due)
            for start in range(0, len(data), faults.segment_bytes):
                segment = data[start : start + faults.segment_bytes]
                segment = segment[: int(min(limit - done, silence - done, len(segment)))]
                if pair.is_silent:
                    await anyio.sleep_forever()
                await sink.send(segment)
                done += len(segment)
                self._count(len(segment), is_up)
                if done >= limit:
                    raise _Cut
                if done >= silence:
                    await anyio.sleep_forever()
                if stall and done >= stall[0]:
                    await anyio.sleep(stall[1])
                    stall = None
                if faults.bytes_per_s < math.inf:
                    await anyio.sleep(len(segment) / faults.bytes_per_s)

    def _count(self, size_bytes: int, is_up: bool) -> None:
        self.up_bytes += size_bytes if is_up else 0
        self.down_bytes += 0 if is_up else size_bytes


@asynccontextmanager
async def open_chaos(host: str, port: int, faults: Faults = Faults()) -> AsyncIterator[Chaos]:
    """Stand between a client and `host:port` on a free port of loopback."""
    chaos = Chaos((host, port), faults)
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        chaos.port = listener.extra(SocketAttribute.local_port)
        async with beside(partial(listener.serve, chaos.serve)):
            yield chaos


def _set_reset(stream: SocketStream) -> None:
    """Let closing be a RST instead of a FIN."""
    raw = stream.extra(SocketAttribute.raw_socket)
    if raw.fileno() >= 0:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
