"""Serve a script over HTTP/1.1 on a port of this host, in every dialect at once."""

import json
from collections import Counter
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

import anyio
import h11
from anyio.abc import SocketAttribute, SocketStream

from agent.message import Dialect, JsonObject
from agent.providers.provider import Auth, Endpoint, Provider
from agent.providers.vendors import ANTHROPIC_VERSION
from agent.scripted.conversation import Conversation, Failure, Turn
from agent.scripted.hearing import hear, mismatch
from agent.scripted.hostile import spoil
from agent.scripted.render import render

_DIALECTS = {
    "/chat/completions": Dialect.OPENAI_CHAT,
    "/responses": Dialect.OPENAI_RESPONSES,
    "/messages": Dialect.ANTHROPIC,
    ":streamGenerateContent": Dialect.GEMINI,
}


class ScriptedProvider:
    """A provider that answers from a script; `async with ScriptedProvider(conversation) as server`.

    Which turn is served follows from the request itself, by the assistant's turns in it, so a client
    that asks again after a kill hears the same again. `mismatches` holds what did not fit, `requests`
    every body that came.
    """

    def __init__(self, conversation: Conversation) -> None:
        self.conversation = conversation
        self.requests: list[JsonObject] = []
        self.mismatches: list[str] = []
        self._served: Counter[tuple[str, int]] = Counter()
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
        self.port: int = listener.extra(SocketAttribute.local_port)  # noqa: S610  no SQL here
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

    @property
    def provider(self) -> Provider:
        """The catalogue entry for this server."""
        endpoints = tuple(
            Endpoint(
                dialect, self.base_url, Auth.NONE, ANTHROPIC_VERSION if dialect is Dialect.ANTHROPIC else ()
            )
            for dialect in Dialect
        )
        return Provider(
            "scripted",
            f"Scripted: {self.conversation.title} (a recorded script, no model)",
            endpoints,
            key_optional=True,
            idle_timeout_s=30.0,
            is_scripted=True,
        )

    async def _serve(self, stream: SocketStream) -> None:
        async with stream:
            peer = _Peer(stream)
            try:
                while (request := await peer.receive()) is not None:
                    await self._answer(peer, *request)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError, h11.RemoteProtocolError):
                return

    async def _answer(self, peer: "_Peer", target: str, body: bytes) -> None:
        path = target.partition("?")[0]
        dialect = next((found for end, found in _DIALECTS.items() if path.endswith(end)), None)
        if dialect is None:
            await peer.send_json(
                404, {"error": {"message": f"scripted provider: nothing is served at {path}"}}
            )
            return
        parsed: JsonObject = json.loads(body)
        self.requests.append(parsed)
        heard = hear(parsed, dialect)
        number, turns = heard.turns, self.conversation.turns
        if number >= len(turns):
            await self._refuse(
                peer, f"the script ends after turn {len(turns)}, turn {number + 1} was asked for"
            )
            return
        turn = turns[number]
        for place, failure in enumerate(turn.failures):
            if self._count(f"failure {place}", number) <= failure.times:
                await _fail(peer, failure)
                return
        if (told := mismatch(heard, turn.expects)) is not None:
            await self._refuse(peer, f"turn {number + 1} does not fit: {told}")
            return
        await self._speak(peer, turn, number, dialect)

    def _count(self, what: str, number: int) -> int:
        self._served[what, number] += 1
        return self._served[what, number]

    async def _refuse(self, peer: "_Peer", why: str) -> None:
        self.mismatches.append(why)
        error = {"type": "script_mismatch", "code": "script_mismatch", "message": f"scripted provider: {why}"}
        await peer.send_json(400, {"type": "error", "error": error})

    async def _speak(self, peer: "_Peer", turn: Turn, number: int, dialect: Dialect) -> None:
        frames = render(turn, number, dialect)
        served = self._count("turn", number)
        if turn.hostile and served <= turn.hostile_times:
            frames = spoil(frames, turn.hostile, dialect)
        body = b"".join(frame.to_bytes() for frame in frames)
        is_cut = turn.cut_after_bytes is not None and served <= turn.cut_times
        await peer.send_head(200, [("content-type", "text/event-stream"), ("transfer-encoding", "chunked")])
        size = turn.piece_bytes or len(body)
        for at in range(0, len(body[: turn.cut_after_bytes] if is_cut else body), size):
            await anyio.sleep(turn.wait_s)
            await peer.send_data(body[at : at + size])
        if is_cut:
            raise anyio.ClosedResourceError
        await peer.end()


async def _fail(peer: "_Peer", failure: Failure) -> None:
    headers = [] if failure.retry_after_s is None else [("retry-after", str(failure.retry_after_s))]
    body = failure.body or {"error": {"message": f"scripted failure {failure.status}"}}
    await peer.send_json(failure.status, body, headers)


class _Peer:
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
        marked = [*headers, ("x-pocketbuild-scripted", "true")]
        await self._send(h11.Response(status_code=status, headers=marked))

    async def send_data(self, data: bytes) -> None:
        await self._send(h11.Data(data=data))

    async def end(self) -> None:
        await self._send(h11.EndOfMessage())

    async def send_json(
        self, status: int, body: JsonObject, headers: list[tuple[str, str]] | None = None
    ) -> None:
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
