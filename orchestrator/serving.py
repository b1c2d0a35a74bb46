"""Runs an app on a socket for the length of a block, in the caller's own event loop."""

import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager

import anyio
import uvicorn
from fastapi import FastAPI

from orchestrator.errors import ServiceFault
from orchestrator.http11 import MAX_HEAD_BYTES, Http11

STOP_S = 5


class _Server(uvicorn.Server):
    """A server whose end is decided by its owner, not by signals that it catches itself."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.is_up = anyio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to accept, and say so."""
        await super().startup(sockets)
        self.is_up.set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the owner of the process."""
        yield


@asynccontextmanager
async def serving(app: FastAPI, bind: str, port: int, protocol: type[Http11] = Http11) -> AsyncIterator[str]:
    """Serve an app for the block; give its URL. Port 0 takes any free one.

    Raises `ServiceFault` where the port is taken, and whatever the app raises while it starts.
    """
    listener = _listen(bind, port)
    actual = listener.getsockname()[1]
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="off",
        timeout_graceful_shutdown=STOP_S,
        http=protocol,
        ws="none",
        h11_max_incomplete_event_size=MAX_HEAD_BYTES,
        server_header=False,
    )
    server = _Server(config)
    with closing(listener):
        async with app.router.lifespan_context(app), anyio.create_task_group() as tasks:
            tasks.start_soon(server.serve, [listener])
            await server.is_up.wait()
            try:
                yield f"http://{_shown(bind)}:{actual}"
            finally:
                server.should_exit = True


def _listen(bind: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in bind else socket.AF_INET
    # Without the protocol's number asyncio leaves Nagle's algorithm on, and each answer of more than
    # one write waits 40 ms for the reader's delayed acknowledgement.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((bind, port))
    except OSError as fault:
        listener.close()
        raise ServiceFault(
            f"cannot listen on {bind} port {port}: {fault.strerror}",
            code="port_taken",
            hint="Choose another one with `--port` or the setting `port`.",
        ) from fault
    return listener


def _shown(bind: str) -> str:
    host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(bind, bind)  # noqa: S104 - named, not bound
    return f"[{host}]" if ":" in host and not host.startswith("[") else host
