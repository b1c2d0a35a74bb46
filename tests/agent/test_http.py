"""Requests over real sockets: what a server does wrong becomes a fault that says what happened."""

import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

import anyio
import h2.config
import h2.connection
import h2.events
import pytest
from anyio.abc import SocketAttribute, SocketStream
from anyio.streams.tls import TLSListener, TLSStream

from agent.errors import (
    PlanExhausted,
    ProviderFault,
    ProviderOverloaded,
    ProviderUnreachable,
    RequestRefused,
    ResponseBroken,
)
from agent.http import Line
from agent.message import Dialect
from agent.providers.catalogue import Choice, choose, custom
from agent.providers.provider import Auth
from agent.record import Recorder, read_exchanges
from agent.redact import Redactor
from agent.scripted import ReplayProvider

pytestmark = pytest.mark.anyio
KEY = "sk-test-key-0123456789"
OK = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"


@asynccontextmanager
async def serving(*answers: bytes, holds: bool = False) -> AsyncIterator[tuple[str, list[bytes]]]:
    """Serve the answers, one a connection, and give the address and what was asked."""
    asked: list[bytes] = []

    async def serve(stream: SocketStream) -> None:
        async with stream:
            request = b""
            while b"\r\n\r\n" not in request or not request.rstrip().endswith(b"}"):
                request += await stream.receive()
            asked.append(request)
            await stream.send(answers[min(len(asked), len(answers)) - 1])
            if holds:
                await anyio.sleep_forever()

    async with (
        await anyio.create_tcp_listener(local_host="127.0.0.1") as listener,
        anyio.create_task_group() as tasks,
    ):
        port = listener.extra(SocketAttribute.local_port)
        tasks.start_soon(listener.serve, serve)
        yield f"http://127.0.0.1:{port}/v1", asked
        tasks.cancel_scope.cancel()


def chosen(base_url: str, dialect: Dialect = Dialect.OPENAI_CHAT, *, idle_timeout_s: float = 5) -> Choice:
    return choose(replace(custom(base_url, dialect), idle_timeout_s=idle_timeout_s), "m")


async def post(choice: Choice, **options: object) -> bytes:
    async with Line(choice, KEY, **options) as line, line.post({"model": "m"}) as response:  # type: ignore[arg-type]
        return b"".join([chunk async for chunk in response.chunks])


async def fault_of(
    answer: bytes, kind: type[ProviderFault], *, holds: bool = False, idle_timeout_s: float = 5
) -> ProviderFault:
    async with serving(answer, holds=holds) as (base_url, _):
        with pytest.raises(kind) as caught:
            await post(chosen(base_url, idle_timeout_s=idle_timeout_s))
    return caught.value


async def test_a_body_is_streamed_and_the_key_is_sent_where_the_dialect_wants_it() -> None:
    for dialect, header in [
        (Dialect.OPENAI_CHAT, b"authorization: Bearer " + KEY.encode()),
        (Dialect.GEMINI, b"x-goog-api-key: " + KEY.encode()),
    ]:
        async with serving(OK + b"data: {}\n\n") as (base_url, asked):
            assert await post(chosen(base_url, dialect)) == b"data: {}\n\n"
        assert header in asked[0]


async def test_a_provider_without_keys_is_sent_none() -> None:
    async with serving(OK) as (base_url, asked):
        choice = chosen(base_url)
        await post(replace(choice, endpoint=replace(choice.endpoint, auth=Auth.NONE)))
    assert KEY.encode() not in asked[0]


async def test_an_error_body_is_read_before_the_status_is_judged() -> None:
    body = b'{"error":{"code":"insufficient_quota","message":"no money"}}'
    fault = await fault_of(
        b"HTTP/1.1 429 Too Many\r\nretry-after: 3\r\ncontent-length: %d\r\n\r\n" % len(body) + body,
        PlanExhausted,
    )
    assert fault.retry_after_s == 3
    assert "no money" in str(fault)


async def test_an_error_body_that_never_ends_does_not_hold_the_run_up() -> None:
    head = b"HTTP/1.1 503 Busy\r\ncontent-length: 10000000\r\n\r\n"
    fault = await fault_of(
        head + b'{"error":{"message":"busy"}}' + b" " * 70_000, ProviderOverloaded, holds=True
    )
    assert "busy" in str(fault)


async def test_a_redirect_is_refused_and_the_key_stays_here() -> None:
    fault = await fault_of(
        b"HTTP/1.1 307 Moved\r\nlocation: http://evil.example/v1\r\ncontent-length: 0\r\n\r\n", RequestRefused
    )
    assert "evil.example; not followed" in str(fault)


async def test_silence_is_a_fault_that_says_how_long_it_was() -> None:
    fault = await fault_of(OK + b"data: {}\n\n", ResponseBroken, holds=True, idle_timeout_s=0.05)
    assert "silent" in str(fault)
    assert fault.response_started


async def test_a_response_without_end_passes_its_deadline() -> None:
    async with serving(OK + b"data: {}\n\n", holds=True) as (base_url, _):
        with pytest.raises(ResponseBroken, match="did not end its response"):
            await post(chosen(base_url), deadline_s=0.1)


async def test_a_connection_that_dies_in_the_middle_is_told_from_one_that_never_was() -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\ndata: "
    fault = await fault_of(head, ResponseBroken)
    assert fault.response_started
    async with serving(OK) as (base_url, _):
        gone = base_url
    with pytest.raises(ProviderUnreachable, match=r"no connection to custom at 127\.0\.0\.1") as caught:
        await post(chosen(gone))
    assert not caught.value.may_be_billed


async def certificate(folder: Path) -> tuple[Path, Path]:
    """Make a certificate for this host that nobody trusts yet."""
    key, cert = folder / "k.pem", folder / "c.pem"
    await anyio.run_process(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"),
            *("-days", "1", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", str(key), "-out", str(cert)),
        ]
    )
    return key, cert


@asynccontextmanager
async def serving_tls(
    key: Path, cert: Path, serve: Callable[[TLSStream], Awaitable[None]]
) -> AsyncIterator[str]:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(cert, key)
    context.set_alpn_protocols(["h2", "http/1.1"])
    tcp = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with (
        TLSListener(tcp, context, standard_compatible=False) as listener,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(listener.serve, serve)
        yield f"https://127.0.0.1:{tcp.extra(SocketAttribute.local_port)}/v1"
        tasks.cancel_scope.cancel()


async def test_a_certificate_that_is_not_trusted_is_not_accepted(tmp_path: Path) -> None:
    async def serve(stream: TLSStream) -> None:
        raise AssertionError("the handshake must not succeed")

    async with serving_tls(*await certificate(tmp_path), serve) as base_url:
        with pytest.raises(ProviderUnreachable, match="certificate"):
            await post(chosen(base_url))


async def serve_http2(stream: TLSStream) -> None:
    """Answer the first request of a connection in HTTP/2, in two pieces."""
    http = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
    http.initiate_connection()
    async with stream:
        await stream.send(http.data_to_send())
        while True:
            for event in http.receive_data(await stream.receive()):
                if isinstance(event, h2.events.StreamEnded):
                    http.send_headers(
                        event.stream_id, [(":status", "200"), ("content-type", "text/event-stream")]
                    )
                    http.send_data(event.stream_id, b"data: one\n\n")
                    http.send_data(event.stream_id, b"data: two\n\n", end_stream=True)
            await stream.send(http.data_to_send())


async def test_http2_is_spoken_where_it_is_served_and_own_authorities_are_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, cert = await certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(cert))
    async with serving_tls(key, cert, serve_http2) as base_url:
        assert await post(chosen(base_url)) == b"data: one\n\ndata: two\n\n"


async def test_exchanges_are_recorded_without_keys_and_read_again(tmp_path: Path) -> None:
    body = f'data: {{"text": "the key is {KEY}"}}\n\ndata: [DONE]'.encode()
    async with serving(OK + body) as (base_url, _):
        recorder = Recorder(tmp_path / "record", Redactor([KEY]))
        assert await post(chosen(base_url), recorder=recorder) == body
    [exchange] = read_exchanges(tmp_path / "record")
    assert (exchange.dialect, exchange.status, exchange.request) == (Dialect.OPENAI_CHAT, 200, {"model": "m"})
    assert exchange.body == b'data: {"text": "the key is [redacted]"}\n\ndata: [DONE]'
    for path in (tmp_path / "record").iterdir():
        assert KEY not in path.read_text()
    assert json.loads((tmp_path / "record" / "0001.json").read_text())["headers"]["connection"] == "close"


async def test_a_redirect_is_recorded_by_its_head(tmp_path: Path) -> None:
    moved = b"HTTP/1.1 302 Found\r\nlocation: https://far.example/\r\ncontent-length: 0\r\n\r\n"
    async with serving(moved) as (base_url, _):
        with pytest.raises(RequestRefused, match=r"redirects to far\.example"):
            await post(chosen(base_url), recorder=Recorder(tmp_path, Redactor()))
    [exchange] = read_exchanges(tmp_path)
    assert (exchange.status, exchange.body) == (302, b"")


async def test_a_new_recorder_goes_on_counting(tmp_path: Path) -> None:
    for _ in range(2):
        async with serving(OK + b"x") as (base_url, _):
            await post(chosen(base_url), recorder=Recorder(tmp_path, Redactor()))
    assert len(read_exchanges(tmp_path)) == 2


async def test_a_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(OK + b"data: {}\n\n") as (base_url, asked):
        monkeypatch.setenv("HTTP_PROXY", base_url.removesuffix("/v1"))
        monkeypatch.delenv("NO_PROXY", raising=False)
        assert await post(chosen("http://llm.example/v1")) == b"data: {}\n\n"
    assert asked[0].startswith(b"POST http://llm.example/v1/chat/completions HTTP/1.1\r\n")


async def test_recorded_exchanges_are_replayed_in_order(tmp_path: Path) -> None:
    answers = [OK + b"data: 1\n\n", b"HTTP/1.1 503 Busy\r\ncontent-length: 2\r\n\r\n{}", OK + b"data: 2\n\n"]
    async with serving(*answers) as (base_url, _):
        recorder = Recorder(tmp_path, Redactor())
        for _ in answers:
            with suppress(ProviderOverloaded):
                await post(chosen(base_url), recorder=recorder)
    async with ReplayProvider(read_exchanges(tmp_path)) as server:
        choice = choose(server.provider, "m")
        assert await post(choice) == b"data: 1\n\n"
        with pytest.raises(ProviderOverloaded):
            await post(choice)
        with pytest.raises(RequestRefused, match="the recording speaks openai-chat, anthropic was asked for"):
            await post(choose(server.provider, "m", dialect=Dialect.ANTHROPIC))
        assert await post(choice) == b"data: 2\n\n"
        with pytest.raises(RequestRefused, match="the recording ends after 3 exchanges"):
            await post(choice)
