import json
from pathlib import Path
from typing import Any

import pytest

from agent.scripted import ScriptedProvider, load_conversation
from tests.orchestrator.conftest import Running, Start
from tests.orchestrator.test_access import token_for
from tests.orchestrator.waiting import eventually
from tests.orchestrator.workspaces import make_workspace

pytestmark = pytest.mark.anyio
SCRIPT = """
schema = 1
title = "repair"
[[turn]]
text = "I mend it."
calls = [{ tool = "write_file", arguments = { path = "plan.json", content = "{}" } }]
[[turn]]
text = "I build."
calls = [{ tool = "build_gradle_project", arguments = { tasks = ["assembleDebug"] } }]
[[turn]]
expects = { results = [{ tool = "build_gradle_project", contains = ["app-debug.apk"] }] }
text = "Green."
"""


def settings_for(server: ScriptedProvider) -> dict[str, Any]:
    table = {"base_url": server.base_url, "dialect": "openai-chat", "key_optional": True}
    return {"providers": {"scripted": table}, "agent": {"provider": "scripted", "model": "script"}}


async def state_of(running: Running, run_id: str, headers: dict[str, str]) -> dict[str, Any]:
    body: dict[str, Any] = (await running.http.get(f"/v1/runs/{run_id}", headers=headers)).json()
    return body


async def becomes(running: Running, run_id: str, state: str) -> None:
    async def is_there() -> bool:
        return bool((await state_of(running, run_id, {}))["state"] == state)

    await eventually(is_there)


async def test_a_run_asks_is_answered_builds_and_ends_green(
    start: Start, projects: Path, tmp_path: Path
) -> None:
    script = tmp_path / "script.toml"
    script.write_text(SCRIPT)
    workspace = make_workspace(projects / "w", exit_code=1)
    async with (
        ScriptedProvider(load_conversation(script)) as server,
        start("p1", **settings_for(server)) as running,
    ):
        ann = await token_for(running, "ann", ["agent:run", "builds:read", "builds:write"])
        bob = await token_for(running, "bob", ["agent:run", "builds:read"])
        wish = {"assignment": "Make it build", "path": str(workspace), "mode": "ask"}
        begun = await running.http.post("/v1/runs", json=wish, headers=ann)
        assert begun.status_code == 201, begun.text
        run_id = begun.json()["id"]

        async def asks() -> bool:
            return (await state_of(running, run_id, ann))["state"] == "asking"

        await eventually(asks)
        assert (await state_of(running, run_id, ann))["question"]["tool"] == "write_file"
        assert (await running.http.get(f"/v1/runs/{run_id}", headers=bob)).status_code == 404
        answer = f"/v1/runs/{run_id}/answer"
        assert (await running.http.post(answer, json={"is_allowed": True}, headers=bob)).status_code == 404
        assert (await running.http.post(answer, json={"is_allowed": True}, headers=ann)).status_code == 204

        async def is_over() -> bool:
            return (await state_of(running, run_id, ann))["state"] == "stopped"

        await eventually(is_over)
        ended = await state_of(running, run_id, ann)
        assert (ended["reason"], ended["text"]) == ("green", "Green.")
        assert ended["spent"]["builds"] == 1
        builds = (await running.http.get("/v1/builds", headers=ann)).json()["builds"]
        assert [(build["owner"], build["outcome"]) for build in builds] == [("ann", "succeeded")]
        assert (await running.http.get("/v1/runs", headers=bob)).json() == {"runs": [], "next": None}
        kept = (await running.http.get(f"/v1/runs/{run_id}/transcript", headers=ann)).json()["entries"]
        assert kept[0]["run_id"] == run_id
        live = await running.http.get(f"/v1/runs/{run_id}/live", headers=ann)
        assert json.loads(live.text.rpartition("data: ")[2])["reason"] == "green"
        assert live.headers["content-type"].startswith("text/event-stream")
        assert (live.headers["cache-control"], live.headers["x-accel-buffering"]) == ("no-cache", "no")


async def test_a_run_is_stopped_while_it_asks_and_outside_folders_are_refused(
    start: Start, projects: Path, tmp_path: Path
) -> None:
    script = tmp_path / "script.toml"
    script.write_text(SCRIPT)
    workspace = make_workspace(projects / "w")
    async with (
        ScriptedProvider(load_conversation(script)) as server,
        start("p1", **settings_for(server)) as running,
    ):
        outside = await running.http.post("/v1/runs", json={"assignment": "x", "path": "/etc"})
        assert (outside.status_code, outside.json()["code"]) == (403, "workspace_outside_roots")
        wish = {"assignment": "Make it build", "path": str(workspace), "mode": "ask"}
        run_id = (await running.http.post("/v1/runs", json=wish)).json()["id"]

        async def asks() -> bool:
            return (await state_of(running, run_id, {}))["state"] == "asking"

        await eventually(asks)
        await running.http.post(f"/v1/runs/{run_id}/cancel")

        await becomes(running, run_id, "interrupted")
        late = await running.http.post(f"/v1/runs/{run_id}/answer", json={"is_allowed": True})
        assert late.status_code == 409
