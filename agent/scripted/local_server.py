"""A small HTTP/1.1 server on a port of this host, for providers that follow a script."""

import json
from abc import ABC, abstractmethod
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

import anyio
import h11
from anyio.abc import SocketAttribute, SocketStream

from agent.message import JsonObject


class LocalServer(ABC):
    """Serves on a free port of 127.0.0.1 while its block lasts; every answer says that it is scripted.

    What it answers is up to who inherits from it.
    """

    def __init__(self) -> None:
        self._stack = AsyncExitStack()
        self.port = 0

    async def __aenter__(self) -> Self:
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
        self.port = listener.extra(SocketAttribute.local_port)  # noqa: S610  no SQL here
        await self._stack.enter_async_context(listener)
        tasks = await self._stack.enter_async_context(anyio.create_task_group())
        self._stack.callback(tasks.cancel_scope.cancel)
        tasks.start_soon(listener.serve, self._serve)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    @property
    def base_url(self) -> str:
        """The address that dialects append their paths to."""
        return f"http://127.0.0.1:{self.port}/v1"

    @abstractmethod
    async def answer(self, peer: "Peer", target: str, body: bytes) -> None:
        """Answer one request, given its target and body."""

    async def _serve(self, stream: SocketStream) -> None:
        async with stream:
            peer = Peer(stream)
            try:
                while (request := await peer.receive()) is not None:
                    await self.answer(peer, *request)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError, h11.RemoteProtocolError):
                return


class Peer:
    """One client's connection, seen as HTTP."""

    def __init__(self, stream: SocketStream) -> None:
        self._stream = stream
        self._http = h11.Connection(h11.SERVER)

    async def receive(self) -> tuple[str, bytes] | None:
        """Give target and body of the next request, None once the client has gone."""
        if self._http.our_state is h11.DONE:
            self._http.start_next_cycle()
        target, body = "", b""
        while True:
            event = self._http.next_event()
            match event:
                case h11.NEED_DATA:
                    try:
                        self._http.receive_data(await self._stream.receive())
                    except anyio.EndOfStream:
                        self._http.receive_data(b"")
                case h11.Request():
                    target = event.target.decode()
                case h11.Data():
                    body += event.data
                case h11.EndOfMessage():
                    return target, body
                case _:
                    return None

    async def send_head(self, status: int, headers: list[tuple[str, str]]) -> None:
        """Begin an answer; its head says that it is scripted."""
        marked = [*headers, ("x-pocketbuild-scripted", "true")]
        await self._send(h11.Response(status_code=status, headers=marked))

    async def send_data(self, data: bytes) -> None:
        """Send a piece of the body."""
        await self._send(h11.Data(data=data))

    async def end(self) -> None:
        """End the answer."""
        await self._send(h11.EndOfMessage())

    async def send_json(
        self, status: int, body: JsonObject, headers: list[tuple[str, str]] | None = None
    ) -> None:
        """Send a whole answer."""
        data = json.dumps(body).encode()
        await self.send_head(
            status,
            [("content-type", "application/json"), ("content-length", str(len(data))), *(headers or [])],
        )
        await self.send_data(data)
        await self.end()

    async def _send(self, event: h11.Event) -> None:
        data = self._http.send(event)
        if data:
            await self._stream.send(data)
