"""Senders that stop in the middle: of a head, of a body, on any route."""

from contextlib import suppress
from pathlib import Path

import anyio
import pytest
from fastapi import FastAPI

from orchestrator.http11 import Http11
from orchestrator.serving import serving
from tests.orchestrator.conftest import Start
from tests.orchestrator.test_hostile_input import World, kept, left_since, raw

pytestmark = pytest.mark.anyio
WHOLE = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"


@pytest.mark.parametrize(
    ("method", "path", "kind"),
    [
        ("POST", "/v1/workspaces", "application/zip"),
        ("PUT", f"/v1/blobs/{'0' * 64}", "application/octet-stream"),
        ("POST", "/v1/builds", "application/json"),
        ("POST", "/v1/runs", "application/json"),
        ("POST", "/mcp", "application/json"),
    ],
)
async def test_a_sender_that_stalls_is_hung_up_on(start: Start, method: str, path: str, kind: str) -> None:
    head = f"{method} {path} HTTP/1.1\r\nhost: {{host}}\r\ncontent-type: {kind}\r\n"
    head += "accept: application/json, text/event-stream\r\ncontent-length: 99\r\n\r\nPK"
    async with start(limits={"upload_idle_s": 0.2}) as running:
        before = await kept(running)
        answer = await raw(head.encode())(World(running, Path(), "", ""))
        assert (answer.status_code, answer.json()["code"]) == (400, "upload_stalled")
        assert not await left_since(running, before)


@pytest.mark.parametrize("parts", [[], [b"GET / HT"], [WHOLE, b"GET / HT"]])
async def test_a_connection_on_which_no_whole_head_comes_is_hung_up_on(parts: list[bytes]) -> None:
    class Impatient(Http11):
        head_s = 2.0  # a busy machine may need a second between two of our bytes

    app = FastAPI()
    app.add_api_route("/healthz", lambda: "ok")
    got = b""
    async with serving(app, "127.0.0.1", 0, Impatient) as url:
        host, _, port = url.removeprefix("http://").partition(":")
        async with await anyio.connect_tcp(host, int(port)) as stream:
            with anyio.fail_after(60), suppress(anyio.EndOfStream):
                for part in parts:
                    await stream.send(part)
                    got += await stream.receive()
                while True:
                    got += await stream.receive()
    assert (b"HTTP/1.1 408 " in got and b'"code":"head_stalled"' in got) == bool(parts)
    assert (b"HTTP/1.1 200 " in got) == (WHOLE in parts)
