"""Lets the service's own agent use the service as any other caller does, with the asker's token."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
from fastapi import Request

from builder_bridge.build import BuildId, BuildSpec
from orchestrator.builder import ServiceBuilder, wish_of
from orchestrator.client import ApiClient, FeedEvent, JsonObject
from orchestrator.secret_intake import names_for_agents

_STEP_S = 2.0
_KEPT = ("authorization", "host")


@asynccontextmanager
async def inner_builder(request: Request, phone: str | None) -> AsyncIterator[ServiceBuilder]:
    """Open a builder for the block that asks the app of a request, as whoever sent it."""
    headers = {name: request.headers[name] for name in _KEPT if name in request.headers}
    transport = httpx.ASGITransport(app=request.app)
    stores, owner = request.app.state.service.stores, request.state.principal.owner
    secrets = {"use_secrets": names_for_agents(stores, owner)}
    async with httpx.AsyncClient(
        transport=transport, base_url="http://localhost", headers=headers, timeout=330
    ) as http:
        yield _InnerBuilder(_InnerClient(http), phone, secrets=secrets)


class _InnerClient(ApiClient):
    """A client whose answers come whole, so a feed is read as states instead of a stream."""

    async def follow(self, build_id: str) -> AsyncIterator[FeedEvent]:
        """Give a `state` event whenever a build's stage changes, and `end`."""
        shown: tuple[str, str] | None = None
        while True:
            build: JsonObject = await self.build(build_id, wait_s=_STEP_S)
            if build["state"] == "finished":
                yield FeedEvent("end", build, "")
                return
            if (build["state"], build["stage"]) != shown:
                shown = build["state"], build["stage"]
                yield FeedEvent("state", build, "")


class _InnerBuilder(ServiceBuilder):
    """Builds a folder that the service itself may read, and no other."""

    async def submit(self, workspace: Path, spec: BuildSpec) -> BuildId:
        """Hand the present state over; the same state and spec give the same build."""
        return self.took(await self._client.create_build(self._asked(workspace, wish_of(spec))), workspace)

    def _asked(self, workspace: Path, wish: JsonObject) -> JsonObject:
        return {**self._wish, **wish, "path": str(workspace)}
