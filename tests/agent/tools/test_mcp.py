"""Tools of MCP servers: found, called, bounded, and never called twice over a kill."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent.errors import SettingsFault
from agent.message import JsonObject, ToolCall
from agent.tools.mcp import mcp_tools, tool_name
from agent.tools.tool import AnyTool, CallContext, Effect, Output
from tests.fakes_provider import Watcher
from tests.ports import port_to_listen_on

pytestmark = pytest.mark.anyio
SERVER = Path(__file__).with_name("mcp_server.py")
STDIO = {"my.sums": {"command": sys.executable, "args": [str(SERVER)]}}


async def call(
    tool: AnyTool, notes: list[JsonObject], earlier: JsonObject | None = None, **arguments: Any
) -> Output:
    context = CallContext(ToolCall("c", tool.name, arguments), notes.append, Watcher(), earlier)
    output: Output = await tool.run(tool.parse(arguments), context)
    return output


async def try_all(tables: dict[str, Any]) -> None:
    notes: list[JsonObject] = []
    async with mcp_tools(tables) as tools:
        by_name = {tool.name: tool for tool in tools}
        assert sorted(by_name) == ["my_sums_add", "my_sums_fail"]
        add = by_name["my_sums_add"]
        assert add.effect is Effect.REACHES_OUT
        assert add.spec.parameters["required"] == ["a", "b"]
        assert (await call(add, notes, a=19, b=23)).text == "42"
        assert notes == [{"server": "my.sums"}]
        failed = await call(by_name["my_sums_fail"], notes)
        assert failed.is_error
        assert "fail" in failed.text
        assert (await call(add, notes, a="x")).is_error
        after_a_kill = await call(add, notes, earlier={"server": "my.sums"}, a=1, b=2)
        assert "whether it had its effect is not known" in after_a_kill.text


async def test_a_server_over_stdio() -> None:
    await try_all(STDIO)


async def test_a_server_over_streamable_http() -> None:
    port = port_to_listen_on()
    async with await anyio.open_process(
        [sys.executable, str(SERVER), str(port)], stderr=subprocess.DEVNULL
    ) as process:
        with anyio.fail_after(60):
            while True:
                try:
                    await (await anyio.connect_tcp("127.0.0.1", port)).aclose()
                    break
                except OSError:
                    await anyio.sleep(0.05)
        await try_all({"my.sums": {"url": f"http://127.0.0.1:{port}/mcp"}})
        process.terminate()


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ({}, "give either command or url"),
        ({"command": "no-such-program-here"}, "there is no program"),
        ({"url": "http://127.0.0.1:9/mcp"}, "cannot be reached"),
        ({"comand": "x"}, "extra inputs"),
        ({"command": "true"}, "cannot be reached"),
    ],
)
async def test_a_server_that_is_set_wrongly_or_does_not_start_is_named(table: JsonObject, told: str) -> None:
    with pytest.raises(SettingsFault, match=f"MCP server bad.*{told}"):
        async with mcp_tools({"bad": table}):
            pass


def test_names_fit_every_provider() -> None:
    assert tool_name("my server", "a.b/c") == "my_server_a_b_c"
    assert len(tool_name("s" * 50, "t" * 50)) == 64
