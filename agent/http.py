"""Send a request to a provider and stream its response: the only file that knows the HTTP client."""

import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from types import TracebackType
from typing import Any, Self, assert_never
from urllib.parse import urlsplit

import anyio
import httpx
from pydantic_core import PydanticSerializationError, to_json

from agent.errors import ProviderFault, ProviderUnreachable, RequestRefused, ResponseBroken
from agent.message import JsonObject
from agent.providers.catalogue import Choice
from agent.providers.fault import judge
from agent.providers.provider import Auth
from agent.record import Recorder, Recording

_CONNECT_DEADLINE_S = 20.0
_ERROR_BODY_DEADLINE_S = 10.0
_MAX_RESPONSE_BYTES = 256 * 1024 * 1024
_EDGE_BYTES = 32 * 1024
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(slots=True)
class Edges:
    """The first and last bytes of a body, 32 KiB each."""

    head: bytearray = field(default_factory=bytearray)
    tail: bytearray = field(default_factory=bytearray)

    def feed(self, chunk: bytes) -> None:
        """Take in the next piece of the body."""
        room = _EDGE_BYTES - len(self.head)
        self.head += chunk[:room]
        self.tail += chunk[max(0, room) :]
        if len(self.tail) > 2 * _EDGE_BYTES:
            del self.tail[:-_EDGE_BYTES]


@dataclass(slots=True)
class Response:
    """A response under way: iterate over `chunks` to get its body as it comes."""

    headers: dict[str, str]
    chunks: AsyncIterator[bytes]
    _edges: Edges

    @property
    def edges(self) -> bytes:
        """The beginning and end of what has come, to judge an error that came with status 200."""
        return bytes(self._edges.head + self._edges.tail)


class Line:
    """A line to one model: one pool of connections, kept between turns.

    TLS is always verified, redirects are never followed (the key would go along), proxies and extra
    certificate authorities come from the environment as usual (HTTPS_PROXY, NO_PROXY, SSL_CERT_FILE).
    """

    def __init__(
        self, choice: Choice, key: str | None, *, recorder: Recorder | None = None, deadline_s: float = 1800.0
    ) -> None:
        self.choice = choice
        self._deadline_s = deadline_s
        self._recorder = recorder
        idle_s = choice.provider.idle_timeout_s
        self._client = httpx.AsyncClient(
            http2=True,
            follow_redirects=False,
            headers=_headers(choice, key),
            timeout=httpx.Timeout(idle_s, connect=_CONNECT_DEADLINE_S, pool=_CONNECT_DEADLINE_S),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        with anyio.CancelScope(shield=True):
            await self._client.aclose()

    @asynccontextmanager
    async def post(self, body: JsonObject) -> AsyncIterator[Response]:
        """Send one request and give its response once the head came.

        Raises the `ProviderFault` that the provider's answer, silence or absence means; during the
        iteration over the chunks too.
        """
        started = False
        try:
            with anyio.move_on_after(self._deadline_s) as deadline:
                async with self._client.stream("POST", self.choice.url, content=to_bytes(body)) as reply:
                    started = True
                    yield await self._answer(body, reply)
        except httpx.TransportError as fault:
            raise self._translate(fault, started) from fault
        if deadline.cancelled_caught:
            raise ResponseBroken(
                f"{self._place} did not end its response within {self._deadline_s:.0f} s",
                response_started=started,
            )

    async def _answer(self, body: JsonObject, reply: httpx.Response) -> Response:
        headers = {name.lower(): value for name, value in reply.headers.items()}
        keep = None
        if self._recorder:
            keep = self._recorder.begin(self.choice.dialect, self.choice.model, self.choice.url, body)
            keep.head(reply.status_code, reply.headers.multi_items())
        if 300 <= reply.status_code < 400:
            if keep:
                keep.close()
            raise self._redirected(reply.status_code, headers)
        edges = Edges()
        chunks = _chunks(reply, edges, keep)
        if reply.status_code == 200:
            return Response(headers, chunks, edges)
        with anyio.move_on_after(_ERROR_BODY_DEADLINE_S):
            async for _ in chunks:
                if len(edges.head) >= _EDGE_BYTES:
                    break
        codes = self.choice.provider.errors
        raise judge(reply.status_code, headers, bytes(edges.head), codes, now_s=time.time())

    def _redirected(self, status: int, headers: dict[str, str]) -> RequestRefused:
        target = urlsplit(headers.get("location", "")).netloc or "another place"
        return RequestRefused(
            f"{self._place} redirects to {target}; not followed, for the key would go along",
            status=status,
            hint="Set the provider's base_url to the final address if you trust it.",
        )

    def _translate(self, fault: httpx.TransportError, started: bool) -> ProviderFault:
        text = str(fault) or type(fault).__name__
        match fault:
            case httpx.ConnectError() | httpx.ConnectTimeout() | httpx.PoolTimeout() | httpx.ProxyError():
                return ProviderUnreachable(f"no connection to {self._place}: {text}")
            case httpx.UnsupportedProtocol() | httpx.LocalProtocolError():
                return RequestRefused(f"request to {self._place} cannot be made: {text}")
            case httpx.ReadTimeout():
                silence_s = self.choice.provider.idle_timeout_s
                told = f"{self._place} was silent for {silence_s:.0f} s"
                return ResponseBroken(told, response_started=started)
            case _:
                told = f"connection to {self._place} broke: {text}"
                return ResponseBroken(told, response_started=started)

    @property
    def _place(self) -> str:
        return f"{self.choice.provider.name} at {urlsplit(self.choice.url).netloc}"


def _headers(choice: Choice, key: str | None) -> dict[str, str]:
    headers = {
        "user-agent": f"pocketbuild/{version('pocketbuild')}",
        "accept": "text/event-stream, application/json",
        "content-type": "application/json",
        **dict(choice.endpoint.headers),
    }
    if key:
        match choice.endpoint.auth:
            case Auth.BEARER:
                headers["authorization"] = f"Bearer {key}"
            case Auth.X_API_KEY | Auth.X_GOOG_API_KEY | Auth.API_KEY:
                headers[choice.endpoint.auth.value] = key
            case Auth.NONE:
                pass
            case _:
                assert_never(choice.endpoint.auth)
    return headers


def to_bytes(body: JsonObject) -> bytes:
    """Give the bytes of a body.

    Half of a surrogate pair, as a file that is not in UTF-8 or a model may leave it in text, has no place
    in UTF-8 and goes out as the replacement character; numbers that JSON does not know go out as null.
    """
    try:
        return to_json(body, inf_nan_mode="null")
    except PydanticSerializationError:
        return to_json(_without_surrogates(body), inf_nan_mode="null")


def _without_surrogates(value: Any) -> Any:
    match value:
        case str():
            return _SURROGATE.sub("\ufffd", value)
        case list():
            return [_without_surrogates(item) for item in value]
        case dict():
            return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    return value


async def _chunks(reply: httpx.Response, edges: Edges, keep: Recording | None) -> AsyncIterator[bytes]:
    size_bytes = 0
    try:
        async for chunk in reply.aiter_bytes():
            size_bytes += len(chunk)
            edges.feed(chunk)
            if keep:
                keep.feed(chunk)
            yield chunk
            if size_bytes > _MAX_RESPONSE_BYTES:
                return
    finally:
        if keep:
            keep.close()
