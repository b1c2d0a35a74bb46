"""Tools of MCP servers that the settings name, over stdio or streamable HTTP, by the official SDK."""

import re
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx2
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ContentBlock, TextContent
from mcp_types import Tool as ServerTool
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agent.errors import SettingsFault, ToolFault
from agent.message import JsonObject
from agent.prompt import fill
from agent.tools.tool import AnyTool, Arguments, CallContext, Effect, Output, Tool

_START_DEADLINE_S = 90.0
_CALL_DEADLINE_S = 300.0
_MAX_NAME_CHARS = 64
_MAX_PURPOSE_CHARS = 1024
_MAX_TOOLS = 200
_MAX_PAGES = 50
_MAX_RESULT_CHARS = 4 * 1024 * 1024


class McpServerSettings(BaseModel):
    """The table `[mcp.NAME]`: a command to start, or an address to connect to."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    command: str | None = None
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    url: str | None = Field(default=None, pattern=r"^https?://")
    headers: dict[str, str] = {}


class AnyArguments(Arguments):
    """Arguments that the server checks."""

    model_config = ConfigDict(extra="allow", frozen=True)


@asynccontextmanager
async def mcp_tools(tables: Mapping[str, Any]) -> AsyncIterator[tuple[AnyTool, ...]]:
    """Connect to the servers of the settings and give their tools, each named SERVER_TOOL.

    Raises `SettingsFault` that names the server which is set wrongly or does not start.
    """
    try:
        async with AsyncExitStack() as stack:
            tools: list[AnyTool] = []
            for name, table in tables.items():
                try:
                    settings = McpServerSettings.model_validate(table)
                except ValidationError as fault:
                    raise SettingsFault(
                        f"settings of MCP server {name}: {fault.errors()[0]['msg'].lower()}"
                    ) from fault
                client = await _connect(stack, name, settings)
                tools += [_tool(name, client, found) for found in await _listed(name, client)]
            yield tuple(tools)
    except ExceptionGroup as group:
        # The SDK's task groups wrap what ends the block; who opened it must meet the fault itself.
        raise _innermost(group) from None


async def _connect(stack: AsyncExitStack, name: str, settings: McpServerSettings) -> Client:
    if (settings.command is None) == (settings.url is None):
        raise SettingsFault(f"settings of MCP server {name}: give either command or url")
    if settings.command is not None:
        if shutil.which(settings.command) is None:
            raise SettingsFault(f"MCP server {name}: there is no program {settings.command}")
        program = StdioServerParameters(
            command=settings.command, args=list(settings.args), env=settings.env or None
        )
        client = Client(program, read_timeout_seconds=_START_DEADLINE_S)
    else:
        opened = httpx2.AsyncClient(headers=settings.headers, timeout=_CALL_DEADLINE_S)
        http = await stack.enter_async_context(opened)
        transport = streamable_http_client(settings.url or "", http_client=http)
        client = Client(transport, read_timeout_seconds=_START_DEADLINE_S)
    try:
        return await stack.enter_async_context(client)
    except (OSError, MCPError, httpx2.HTTPError, ExceptionGroup) as fault:
        raise SettingsFault(f"MCP server {name} cannot be reached: {_innermost(fault)}") from fault


def _innermost(fault: Exception) -> Exception:
    """Give what went wrong at the bottom of nested groups, a group where several things did."""
    while isinstance(fault, ExceptionGroup) and len(fault.exceptions) == 1:
        fault = fault.exceptions[0]
    return fault


async def _listed(name: str, client: Client) -> list[ServerTool]:
    found: list[ServerTool] = []
    cursor: str | None = None
    for _ in range(_MAX_PAGES):
        try:
            page = await client.list_tools(cursor=cursor)
        except (MCPError, OSError, httpx2.HTTPError) as fault:
            raise SettingsFault(f"MCP server {name} does not list its tools: {fault}") from fault
        found += page.tools
        cursor = page.next_cursor
        if len(found) > _MAX_TOOLS:
            break
        if cursor is None:
            return found
    raise SettingsFault(f"MCP server {name} lists more than {_MAX_TOOLS} tools or {_MAX_PAGES} pages")


def _tool(server: str, client: Client, found: ServerTool) -> AnyTool:
    async def run(arguments: AnyArguments, context: CallContext) -> Output:
        if context.earlier is not None:
            return Output(fill("interrupted"), is_error=True)
        context.note({"server": server})
        try:
            result = await client.call_tool(
                found.name, _plain(arguments), read_timeout_seconds=_CALL_DEADLINE_S
            )
        except MCPError as fault:
            raise ToolFault(f"MCP server {server} refused {found.name}: {fault}") from fault
        text = "\n".join(map(_text, result.content)) or "[no content]"
        if len(text) > _MAX_RESULT_CHARS:
            text = f"{text[:_MAX_RESULT_CHARS]}\n[… cut: the result has {len(text)} characters]"
        return Output(text, is_error=result.is_error)

    return Tool(
        tool_name(server, found.name),
        (found.description or found.name)[:_MAX_PURPOSE_CHARS],
        AnyArguments,
        Effect.REACHES_OUT,
        run,
        lambda arguments: found.title or found.name,
        parameters=found.input_schema,
    )


def tool_name(server: str, tool: str) -> str:
    """Give a name that every provider takes: letters, digits, dash and underscore, at most 64."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", f"{server}_{tool}")[:_MAX_NAME_CHARS]


def _plain(arguments: AnyArguments) -> JsonObject:
    return dict(arguments.model_extra or {})


def _text(block: ContentBlock) -> str:
    return block.text if isinstance(block, TextContent) else f"[{block.type} content is not shown]"
