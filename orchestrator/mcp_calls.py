"""What all MCP tools share: how a call reaches the service, how long it waits, how a fault is told."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Protocol

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError

from builder_bridge.errors import WorkspaceFault
from orchestrator.client import ApiClient, JsonObject
from orchestrator.errors import ServiceFault

STEP_S = 2.0
MAX_WAIT_S = 600.0
DEFAULT_WAIT_S = 50.0
"""Below the minute after which common clients give up on a tool."""


class Door(Protocol):
    """How a tool call reaches the service, and how a workspace named by a path gets there."""

    @property
    def client(self) -> ApiClient:
        """A client of the service with the caller's token."""
        ...

    async def submit(self, path: str, wish: JsonObject) -> JsonObject:
        """Ask for a build of the folder at a path."""
        ...


OpenDoor = Callable[["Context[Any, Any]"], AbstractAsyncContextManager[Door]]


class TellingFaults:
    """Lets a fault leave a tool as words for the model: what was wrong, and the next step."""

    def __init__(self, door: AbstractAsyncContextManager[Door]) -> None:
        self._door = door

    async def __aenter__(self) -> Door:
        return await self._door.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._door.__aexit__(kind, fault, trace)
        if isinstance(fault, ServiceFault | WorkspaceFault):
            raise ToolError(f"{fault}\n{fault.hint}".strip()) from fault
