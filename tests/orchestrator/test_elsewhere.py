from collections.abc import MutableMapping
from typing import Any

import anyio
import pytest
from fastapi import FastAPI

from orchestrator import elsewhere

pytestmark = pytest.mark.anyio
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nx-accel-buffering: no\r\n\r\n"


async def test_an_answer_that_is_cut_here_lets_go_of_the_host_that_gives_it() -> None:
    app = FastAPI()
    elsewhere.register(app)
    has_hung_up, is_passed_on = anyio.Event(), anyio.Event()
    told: list[MutableMapping[str, Any]] = []

    async def serve(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            asked = b""
            while not asked.endswith(b"\r\n\r\n"):
                asked += await stream.receive()
            await stream.send(HEAD + b":\n\n")
            with pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
                await stream.receive()
            has_hung_up.set()

    async def receive() -> MutableMapping[str, Any]:
        await anyio.sleep_forever()
        raise AssertionError

    async def send(message: MutableMapping[str, Any]) -> None:
        told.append(message)
        if message.get("body"):
            is_passed_on.set()
            await anyio.sleep_forever()

    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as host:
        port = host.extra(anyio.abc.SocketAttribute.local_port)

        @app.get("/live")
        async def live() -> None:
            raise elsewhere.OnAnotherHost(f"http://127.0.0.1:{port}")

        scope = {"type": "http", "method": "GET", "path": "/live", "query_string": b"", "headers": []}
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(host.serve, serve)
            async with anyio.create_task_group() as service:
                service.start_soon(app, scope, receive, send)
                await is_passed_on.wait()
                service.cancel_scope.cancel()
            with anyio.fail_after(60):
                await has_hung_up.wait()
            tasks.cancel_scope.cancel()
    head = dict(told[0]["headers"])
    assert head[b"x-accel-buffering"] == b"no"
    assert told[1]["body"] == b":\n\n"
