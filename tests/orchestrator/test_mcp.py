import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from tests.orchestrator.conftest import Running, Start
from tests.orchestrator.test_access import READ_WRITE, token_for
from tests.orchestrator.workspaces import make_workspace

pytestmark = pytest.mark.anyio
TOOLS = {"build_gradle_project", "get_build", "wait_build", "cancel_build", "read_build_log",
         "search_build_log", "list_phones", "inspect_artifact", "run_agent", "get_agent_run",
         "wait_agent_run", "answer_approval", "resume_agent_run", "cancel_agent_run"}  # fmt: skip


@asynccontextmanager
async def connected(running: Running, headers: dict[str, str] | None = None) -> AsyncIterator[Client]:
    async with (
        httpx2.AsyncClient(headers=headers or {}, timeout=600) as http,
        Client(streamable_http_client(f"{running.url}/mcp", http_client=http)) as client,
    ):
        yield client


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    content: dict[str, Any] = result.structured_content or {}
    return content


async def test_every_tool_works_over_http_and_progress_arrives(start: Start, projects: Path) -> None:
    lines = ["w: one", ":app:two", *[f"line {n}" for n in range(60)]]
    workspace = make_workspace(projects / "w", lines=lines, held_attempt=1)
    async with start("p1") as running, connected(running) as client:
        tools = (await client.list_tools()).tools
        assert {tool.name for tool in tools} == TOOLS
        assert [tool.name for tool in tools if "\n " in (tool.description or "")] == []
        told: list[str | None] = []

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            told.append(message)
            for hold in running.phones.glob("p1/runs/*/hold"):
                hold.unlink()

        begun = await call(client, "build_gradle_project", workspace=str(workspace), wait_s=0.1)
        assert begun["state"] != "finished"
        assert begun["build_id"] in begun["next_step"]
        waited = await client.call_tool(
            "wait_build", {"build_id": begun["build_id"], "wait_s": 600}, progress_callback=on_progress
        )
        ended = waited.structured_content or {}
        assert (ended["outcome"], ended["artifacts"]) == (
            "succeeded", ["app/build/outputs/apk/debug/app-debug.apk"],
        )  # fmt: skip
        assert told
        again = await call(client, "build_gradle_project", workspace=str(workspace))
        assert (again["build_id"], again["is_from_earlier"]) == (begun["build_id"], True)
        log = await call(client, "read_build_log", build_id=begun["build_id"], first_line=1, line_count=2)
        assert log == {"first_line": 1, "lines": lines[:2], "total_lines": len(lines)}
        found = await call(client, "search_build_log", build_id=begun["build_id"], pattern="^w:")
        assert found["places"][0]["lines"] == lines[:3]
        phones = await call(client, "list_phones")
        assert [phone["address"] for phone in phones["phones"]] == ["p1"]
        resource = await client.read_resource(f"pocketbuild://builds/{begun['build_id']}/log")
        assert "w: one" in json.dumps(resource.model_dump(mode="json"))


async def test_a_caller_may_do_over_mcp_what_its_token_may_do(start: Start, projects: Path) -> None:
    workspace = make_workspace(projects / "w")
    async with start("p1", require_token=True) as running:
        reader = await token_for(running, "ann", ["builds:read"])
        async with connected(running, reader) as client:
            result = await client.call_tool("build_gradle_project", {"workspace": str(workspace)})
            assert result.is_error
            assert "builds:write" in str(result.content)
        writer = await token_for(running, "bob", READ_WRITE)
        async with connected(running, writer) as client:
            outside = await client.call_tool("build_gradle_project", {"workspace": "/etc"})
            assert outside.is_error
            assert "not inside a folder" in str(outside.content)
            built = await call(client, "build_gradle_project", workspace=str(workspace), wait_s=600)
            assert built["outcome"] == "succeeded"


async def test_stdio_uses_the_service_of_the_data_folder(
    start: Start, tmp_path: Path, projects: Path
) -> None:
    from orchestrator.cli.connect import published

    workspace = make_workspace(tmp_path / "elsewhere")
    async with start("p1") as running:
        environment = {**os.environ, "POCKETBUILD_DATA_DIR": str(running.settings.data_dir)}
        program = StdioServerParameters(
            command=sys.executable, args=["-m", "orchestrator", "mcp"], env=environment
        )
        with published(running.settings.data_dir, running.url):
            async with Client(program) as client:
                built = await call(client, "build_gradle_project", workspace=str(workspace), wait_s=600)
        assert built["outcome"] == "succeeded"
        assert len((await running.http.get("/v1/builds")).json()["builds"]) == 1
