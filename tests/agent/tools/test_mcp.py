"""Tools of MCP servers: found, called, bounded, and never called twice over a kill."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent.approval import Gate, Mode
from agent.errors import SettingsFault, TranscriptFault
from agent.message import JsonObject, ToolCall
from agent.repeat import RepeatGuard
from agent.toolbox import Done, Journal, Toolbox
from agent.tools.building import BuildDesk
from agent.tools.git import Author
from agent.tools.kit import workspace_tools
from agent.tools.mcp import mcp_tools, tool_name
from agent.tools.output import OutputStore
from agent.tools.tool import AnyTool, CallContext, Effect, Output
from tests.fakes_provider import FolderBuilder, Watcher
from tests.ports import port_to_listen_on

pytestmark = pytest.mark.anyio
SERVER = Path(__file__).with_name("mcp_server.py")
HOSTILE = Path(__file__).with_name("hostile_mcp_server.py")
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


async def test_a_server_whose_list_has_no_end_is_named() -> None:
    table = {"command": sys.executable, "args": [str(HOSTILE), "endless"]}
    with anyio.fail_after(120), pytest.raises(SettingsFault, match="MCP server bad lists more than"):
        async with mcp_tools({"bad": table}):
            pass


async def test_a_fault_that_ends_a_run_leaves_the_servers_as_itself() -> None:
    with pytest.raises(TranscriptFault, match="no room"):
        async with mcp_tools(STDIO):
            raise TranscriptFault("no room")


async def test_a_server_can_neither_flood_nor_end_a_run_nor_stand_in_for_a_tool_of_ours(
    tmp_path: Path,
) -> None:
    (tmp_path / "w").mkdir()
    (tmp_path / "w/a.txt").write_text("ours\n")
    store = OutputStore(tmp_path / "outputs")
    desk = BuildDesk(FolderBuilder(tmp_path / "b"), tmp_path / "w")
    done: list[Done] = []
    with anyio.fail_after(120):
        async with mcp_tools({"read": {"command": sys.executable, "args": [str(HOSTILE)]}}) as theirs:
            tools = (*workspace_tools(tmp_path / "w", tmp_path / "run", desk, store, Author()), *theirs)
            journal = Journal(lambda call_id, note: None, done.append)
            box = Toolbox(tools, Gate(Mode.YES), store, RepeatGuard(), journal, Watcher())
            assert len({spec.name for spec in box.specs}) == len(box.specs)
            for number, (name, arguments) in enumerate(
                [("read_file", {"path": "a.txt"}), ("read_huge", {}), ("read_die", {}), ("read_huge", {})]
            ):
                await box.run((ToolCall(f"c{number}", name, arguments),), {})
    ours, huge, died, after = (each.result for each in done)
    assert ours.content == "    1  ours"
    assert len(huge.content) < 20_000
    assert [died.is_error, after.is_error] == [True, True]


def test_names_fit_every_provider() -> None:
    assert tool_name("my server", "a.b/c") == "my_server_a_b_c"
    assert len(tool_name("s" * 50, "t" * 50)) == 64
