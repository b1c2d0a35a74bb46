"""Runs of the agent over MCP: begun, asked about, answered, put down, over both transports and protocols."""

import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import anyio
import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitRequestFormParams, ElicitResult

from agent.scripted import Call, Conversation, ScriptedProvider, Turn
from orchestrator.cli.connect import published
from tests.orchestrator.conftest import Running, Start
from tests.orchestrator.test_access import token_for
from tests.orchestrator.test_agent_runs import settings_for, state_of
from tests.orchestrator.waiting import eventually
from tests.orchestrator.workspaces import make_workspace

pytestmark = pytest.mark.anyio
Protocol = Literal["legacy", "auto"]
OnAsk = Callable[[str], Awaitable[ElicitResult]]
ALLOW = ElicitResult(action="accept", content={"decision": "allow", "reason": ""})


def writes(count: int) -> Conversation:
    """Give a script that writes so many files, then builds."""
    calls = [
        Call(tool="write_file", arguments={"path": f"notes-{n}.txt", "content": f"{n}\n"})
        for n in range(count)
    ]
    build = Call(tool="build_gradle_project", arguments={"tasks": ["assembleDebug"]})
    return Conversation(
        title="writes",
        turns=(*[Turn(calls=(call,)) for call in calls], Turn(calls=(build,)), Turn(text="Done.")),
    )


@asynccontextmanager
async def running_agent(start: Start, script: Conversation, **further: Any) -> AsyncIterator[Running]:
    async with ScriptedProvider(script) as server, start("p1", **settings_for(server), **further) as running:
        yield running


@asynccontextmanager
async def client_of(
    running: Running,
    transport: str,
    protocol: Protocol = "legacy",
    on_ask: OnAsk | None = None,
    headers: dict[str, str] | None = None,
) -> AsyncIterator[Client]:
    async def asked(context: Any, params: Any) -> ElicitResult:
        assert on_ask is not None
        assert isinstance(params, ElicitRequestFormParams)
        return await on_ask(params.message)

    callback = None if on_ask is None else asked
    if transport == "http":
        async with httpx2.AsyncClient(headers=headers or {}, timeout=600) as http:
            line = streamable_http_client(f"{running.url}/mcp", http_client=http)
            async with Client(line, mode=protocol, elicitation_callback=callback) as client:
                yield client
        return
    environment = {**os.environ, "POCKETBUILD_DATA_DIR": str(running.settings.data_dir)}
    program = StdioServerParameters(
        command=sys.executable, args=["-m", "orchestrator", "mcp"], env=environment
    )
    with published(running.settings.data_dir, running.url):
        async with Client(program, mode=protocol, elicitation_callback=callback) as client:
            yield client


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    content: dict[str, Any] = result.structured_content or {}
    return content


async def results_in(running: Running, run_id: str) -> list[str]:
    entries = (await running.http.get(f"/v1/runs/{run_id}/transcript")).json()["entries"]
    items = [entry["item"] for entry in entries if entry["entry"] == "added"]
    return [item["content"] for item in items if item["item"] == "result"]


@pytest.mark.parametrize("transport", ["http", "stdio"])
@pytest.mark.parametrize("protocol", ["legacy", "auto"])
async def test_what_a_run_asks_is_put_to_the_person_and_their_answers_count(
    start: Start, projects: Path, transport: str, protocol: Protocol
) -> None:
    workspace = make_workspace(projects / "w")
    asked: list[str] = []
    said = iter(
        [
            ElicitResult(action="accept", content={"decision": "deny", "reason": "not this one"}),
            ElicitResult(action="decline"),
            ElicitResult(action="accept", content={"decision": "allow_all", "reason": ""}),
        ]
    )

    async def on_ask(message: str) -> ElicitResult:
        asked.append(message)
        return next(said)

    async with running_agent(start, writes(4)) as running:
        async with client_of(running, transport, protocol, on_ask) as client:
            ended = await call(
                client, "run_agent", assignment="Write", workspace=str(workspace), builds=3, wait_s=300
            )
        assert (ended["state"], ended["reason"], ended["text"]) == ("stopped", "green", "Done.")
        assert ended["next_step"] == "nothing: the agent is done"
        assert ended["spent"]["builds"] == 1
        assert ["notes-0.txt" in asked[0], "notes-1.txt" in asked[1], "notes-2.txt" in asked[2]] == [True] * 3
        assert len(asked) == 3
        assert sorted(path.name for path in workspace.glob("notes-*")) == ["notes-2.txt", "notes-3.txt"]
        results = await results_in(running, ended["run_id"])
        assert results[:2] == [
            "not run: the person refused write_file: not this one.",
            "not run: the person refused write_file.",
        ]


async def test_more_questions_than_a_client_answers_in_a_call_are_asked_in_the_next(
    start: Start, projects: Path
) -> None:
    workspace = make_workspace(projects / "w")
    asked: list[str] = []

    async def on_ask(message: str) -> ElicitResult:
        asked.append(message)
        return ALLOW

    async with (
        running_agent(start, writes(11)) as running,
        client_of(running, "http", "auto", on_ask) as client,
    ):
        first = await call(client, "run_agent", assignment="Write", workspace=str(workspace), wait_s=300)
        assert (first["state"], len(asked)) == ("asking", 8)
        assert "wait_agent_run" in first["next_step"]
        ended = await call(client, "wait_agent_run", run_id=first["run_id"], wait_s=300)
        assert (ended["reason"], len(asked)) == ("green", 11)
        assert len((await running.http.get("/v1/runs")).json()["runs"]) == 1


@pytest.mark.parametrize("protocol", ["legacy", "auto"])
async def test_where_nobody_can_be_asked_the_answer_says_how_to_answer(
    start: Start, projects: Path, protocol: Protocol
) -> None:
    workspace = make_workspace(projects / "w")
    async with running_agent(start, writes(2)) as running, client_of(running, "http", protocol) as client:
        asking = await call(client, "run_agent", assignment="Write", workspace=str(workspace), wait_s=300)
        run_id, question = asking["run_id"], asking["question"]
        assert (asking["state"], question["tool"], question["summary"]) == (
            "asking",
            "write_file",
            "notes-0.txt",
        )
        assert json.loads(question["arguments"]) == {"path": "notes-0.txt", "content": "0\n"}
        assert all(
            word in asking["next_step"] for word in ("answer_approval", question["question_id"], "HTTP")
        )
        answer = {"run_id": run_id, "is_allowed": True}
        await call(client, "answer_approval", question_id=question["question_id"], **answer)
        second = await call(client, "wait_agent_run", run_id=run_id, wait_s=300)
        assert second["question"]["summary"] == "notes-1.txt"
        late = await client.call_tool("answer_approval", {**answer, "question_id": question["question_id"]})
        assert late.is_error
        assert "no longer open" in str(late.content)
        assert (await call(client, "get_agent_run", run_id=run_id))["state"] == "asking"
        await call(client, "answer_approval", question_id=second["question"]["question_id"], **answer)
        assert (await call(client, "wait_agent_run", run_id=run_id, wait_s=300))["reason"] == "green"


@pytest.mark.parametrize("protocol", ["legacy", "auto"])
async def test_a_question_that_is_put_aside_or_answered_without_sense_stays_open(
    start: Start, projects: Path, protocol: Protocol
) -> None:
    workspace = make_workspace(projects / "w")
    said = [ElicitResult(action="accept", content={"decision": "perhaps"}), ElicitResult(action="cancel")]

    async def on_ask(message: str) -> ElicitResult:
        return said.pop()

    async with running_agent(start, writes(1)) as running:
        async with client_of(running, "http", protocol, on_ask) as client:
            aside = await call(client, "run_agent", assignment="Write", workspace=str(workspace), wait_s=300)
            assert aside["state"] == "asking"
            assert "put the question aside" in aside["next_step"]
            senseless = await call(client, "wait_agent_run", run_id=aside["run_id"], wait_s=300)
            assert "does not hold a decision" in senseless["next_step"]
            put_down = await call(client, "cancel_agent_run", run_id=aside["run_id"])
            assert put_down["state"] == "interrupted"
            assert "resume_agent_run" in put_down["next_step"]
        assert list(workspace.glob("notes-*")) == []


async def test_a_person_who_takes_too_long_is_left_in_peace_and_asked_again_later(
    start: Start, projects: Path
) -> None:
    workspace = make_workspace(projects / "w")
    withdrawn: list[str] = []
    is_there = False

    async def on_ask(message: str) -> ElicitResult:
        if not is_there:
            try:
                await anyio.sleep_forever()
            finally:
                withdrawn.append(message)
        return ALLOW

    async with (
        running_agent(start, writes(1)) as running,
        client_of(running, "http", "legacy", on_ask) as client,
    ):
        begun = await call(client, "run_agent", assignment="Write", workspace=str(workspace), wait_s=0)
        run_id = begun["run_id"]

        async def asks() -> bool:
            return (await state_of(running, run_id, {}))["state"] == "asking"

        await eventually(asks)
        slow = await call(client, "wait_agent_run", run_id=run_id, wait_s=4)
        assert "did not answer within" in slow["next_step"]

        async def is_withdrawn() -> bool:
            return len(withdrawn) == 1

        await eventually(is_withdrawn)
        is_there = True
        assert (await call(client, "wait_agent_run", run_id=run_id, wait_s=300))["reason"] == "green"


async def test_a_question_answered_over_http_is_taken_back_from_the_person(
    start: Start, projects: Path
) -> None:
    workspace = make_workspace(projects / "w")

    async with running_agent(start, writes(1)) as running:

        async def on_ask(message: str) -> ElicitResult:
            run_id = (await running.http.get("/v1/runs")).json()["runs"][0]["id"]
            sent = await running.http.post(f"/v1/runs/{run_id}/answer", json={"is_allowed": True})
            assert sent.status_code == 204
            await anyio.sleep_forever()
            raise AssertionError

        async with client_of(running, "http", "legacy", on_ask) as client:
            ended = await call(client, "run_agent", assignment="Write", workspace=str(workspace), wait_s=300)
        assert ended["reason"] == "green"
        assert (workspace / "notes-0.txt").read_text() == "0\n"


async def test_a_run_outside_the_roots_or_without_leave_is_refused_and_a_stopped_one_goes_on(
    start: Start, projects: Path
) -> None:
    workspace = make_workspace(projects / "w")
    async with running_agent(start, writes(0), require_token=True) as running:
        reader = await token_for(running, "ann", ["builds:read", "builds:write"])
        async with client_of(running, "http", headers=reader) as client:
            refused = await client.call_tool("run_agent", {"assignment": "x", "workspace": str(workspace)})
            assert refused.is_error
            assert "agent:run" in str(refused.content)
        runner = await token_for(running, "bob", ["agent:run", "builds:read", "builds:write"])
        async with client_of(running, "http", headers=runner) as client:
            for path, why in (("/etc", "not inside a folder"), (str(projects / "none"), "is no folder")):
                refused = await client.call_tool("run_agent", {"assignment": "x", "workspace": path})
                assert refused.is_error
                assert why in str(refused.content)
            told: list[str | None] = []

            async def on_progress(progress: float, total: float | None, message: str | None) -> None:
                told.append(message)

            wish = {
                "assignment": "Build",
                "workspace": str(workspace),
                "mode": "yes",
                "turns": 1,
                "wait_s": 300,
            }
            spent = (
                await client.call_tool("run_agent", wish, progress_callback=on_progress)
            ).structured_content
            assert spent is not None
            assert (spent["state"], spent["reason"]) == ("stopped", "budget")
            assert "resume_agent_run" in spent["next_step"]
