"""How MCP reaches the service: mounted at `/mcp` with the caller's token, or over stdio."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
from anyio.abc import TaskGroup, TaskStatus
from starlette.types import ASGIApp, Receive, Scope, Send

if TYPE_CHECKING:
    from orchestrator.client import ApiClient, JsonObject
from orchestrator.errors import BadRequest

MCP_PATH = "/mcp"
INNER_TIMEOUT_S = 330.0


@dataclass(frozen=True, slots=True)
class InnerDoor:
    """The service calls itself; a path is the service's own, inside its roots."""

    client: "ApiClient"

    async def submit(self, path: str, wish: "JsonObject") -> "JsonObject":
        """Ask for a build of a folder that the service may read."""
        return await self.client.create_build({**wish, "path": path})


@dataclass(frozen=True, slots=True)
class OuterDoor:
    """A process beside the caller; a path is the caller's, and is sent where the service can't read it."""

    client: "ApiClient"

    async def submit(self, path: str, wish: "JsonObject") -> "JsonObject":
        """Ask for a build of a folder of this machine."""
        if not Path(path).is_absolute():
            raise BadRequest(f"the workspace path {path!r} is not absolute")
        return await self.client.submit_workspace(Path(path), wish)


class LazyMcp:
    """ASGI app for `/mcp` that loads the SDK and opens its sessions with the first request.

    The SDK takes seconds to import; a service that nobody asks for MCP starts without it.
    """

    def __init__(self, api: ASGIApp, tasks: TaskGroup, version: str) -> None:
        self._api = api
        self._tasks = tasks
        self._version = version
        self._opening = anyio.Lock()
        self._app: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request of an MCP client."""
        async with self._opening:
            if self._app is None:
                self._app = await self._tasks.start(self._hold)
        await self._app(scope, receive, send)

    async def _hold(self, *, task_status: TaskStatus[ASGIApp]) -> None:
        from mcp.server.transport_security import TransportSecuritySettings

        from orchestrator.mcp import make_mcp_server

        server = make_mcp_server(self._open_door, self._version)
        # The access check in front knows the service's names; the SDK would know loopback only.
        trusting = TransportSecuritySettings(enable_dns_rebinding_protection=False)
        app = server.streamable_http_app(streamable_http_path=MCP_PATH, transport_security=trusting)
        async with server.session_manager.run():
            task_status.started(app)
            await anyio.sleep_forever()

    @asynccontextmanager
    async def _open_door(self, context: Any) -> AsyncIterator[InnerDoor]:
        import httpx

        from orchestrator.client import ApiClient

        sent = context.headers or {}
        headers = {name: sent[name] for name in ("authorization", "host", "x-request-id") if name in sent}
        transport = httpx.ASGITransport(app=self._api)
        async with httpx.AsyncClient(
            transport=transport, base_url="http://localhost", headers=headers, timeout=INNER_TIMEOUT_S
        ) as http:
            yield InnerDoor(ApiClient(http))
