"""A run that was put down, or left by a service that ended, is gone on with; nothing is done twice."""

from pathlib import Path
from typing import Any

import pytest

from agent.scripted import ScriptedProvider, load_conversation
from tests.orchestrator.conftest import Running, Start
from tests.orchestrator.fakes import starts_of
from tests.orchestrator.test_access import token_for
from tests.orchestrator.test_agent_runs import SCRIPT, becomes, settings_for, state_of
from tests.orchestrator.waiting import eventually
from tests.orchestrator.workspaces import make_workspace

pytestmark = pytest.mark.anyio
HELD = SCRIPT.replace('content = "{}"', """content = '{"held_attempt": 1}'""")


def scripted(tmp_path: Path, script: str) -> ScriptedProvider:
    file = tmp_path / "script.toml"
    file.write_text(script)
    return ScriptedProvider(load_conversation(file))


async def begin(running: Running, workspace: Path, **wish: Any) -> str:
    body = {"assignment": "Make it build", "path": str(workspace), **wish}
    begun = await running.http.post("/v1/runs", json=body)
    assert begun.status_code == 201, begun.text
    return str(begun.json()["id"])


async def calls_begun(running: Running, run_id: str) -> list[str]:
    """Give the calls that were begun, as the transcript has them: each stands there once at most."""
    answer = await running.http.get(f"/v1/runs/{run_id}/transcript")
    return [entry["call_id"] for entry in answer.json()["entries"] if entry["entry"] == "starting"]


async def test_a_run_that_was_stopped_while_it_asked_asks_again_and_ends_green(
    start: Start, projects: Path, tmp_path: Path
) -> None:
    workspace = make_workspace(projects / "w", exit_code=1)
    async with scripted(tmp_path, SCRIPT) as server, start("p1", **settings_for(server)) as running:
        run_id = await begin(running, workspace, mode="ask")
        await becomes(running, run_id, "asking")
        at_work = await running.http.post(f"/v1/runs/{run_id}/resume", json={})
        assert (at_work.status_code, at_work.json()["code"]) == (409, "conflict")
        await running.http.post(f"/v1/runs/{run_id}/cancel")
        await becomes(running, run_id, "interrupted")
        assert (await running.http.post(f"/v1/runs/{run_id}/resume", json={})).status_code == 200
        await becomes(running, run_id, "asking")
        answer = await running.http.post(f"/v1/runs/{run_id}/answer", json={"is_allowed": True})
        assert answer.status_code == 204
        await becomes(running, run_id, "stopped")
        assert (await state_of(running, run_id, {}))["reason"] == "green"
        begun = await calls_begun(running, run_id)
        assert len(begun) == len(set(begun)) > 0
        done = await running.http.post(f"/v1/runs/{run_id}/resume", json={})
        assert (done.status_code, "is done: green" in done.json()["detail"]) == (409, True)


async def test_a_run_outlives_the_service_with_its_build_and_its_manners(
    start: Start, projects: Path, tmp_path: Path
) -> None:
    workspace = make_workspace(projects / "w", exit_code=1)
    async with scripted(tmp_path, HELD) as server:
        settings = settings_for(server)
        async with start("p1", **settings) as running:
            run_id = await begin(running, workspace, phone="p1")

            async def builds() -> bool:
                return bool(starts_of(running.phones))

            await eventually(builds)
        [build_run] = starts_of(tmp_path / "phones")
        (tmp_path / "phones/p1/runs" / build_run / "hold").unlink()
        async with start("p1", **settings) as running:
            left = await state_of(running, run_id, {})
            assert (left["state"], left["assignment"]) == ("interrupted", "Make it build")
            resumed = await running.http.post(f"/v1/runs/{run_id}/resume", json={"turns": 7})
            assert (resumed.status_code, resumed.json()["state"]) == (200, "running")
            live = (await running.http.get(f"/v1/runs/{run_id}/live")).text
            assert "id: 1-1\n" in live, "the events of a new life are counted anew, under its own number"
            assert (await state_of(running, run_id, {}))["reason"] == "green"
            begun = await calls_begun(running, run_id)
            assert len(begun) == len(set(begun)) > 0
            assert starts_of(running.phones) == [build_run], "the build went on and was joined"
            entries = (await running.http.get(f"/v1/runs/{run_id}/transcript")).json()["entries"]
            [again] = [entry for entry in entries if entry["entry"] == "resumed"]
            assert again["budget"]["turns"] == 7


async def test_a_run_that_was_killed_before_its_first_word_is_begun_anew(
    start: Start, projects: Path, tmp_path: Path
) -> None:
    workspace = make_workspace(projects / "w", exit_code=1)
    async with scripted(tmp_path, SCRIPT) as server, start("p1", **settings_for(server)) as running:
        run_id = await begin(running, workspace, mode="ask")
        await becomes(running, run_id, "asking")
        await running.http.post(f"/v1/runs/{run_id}/cancel", params={"at_once": True})
        await becomes(running, run_id, "interrupted")
        (running.settings.data_dir / "agents" / run_id / "transcript.jsonl").unlink()
        assert (await state_of(running, run_id, {}))["state"] == "interrupted"
        assert (await running.http.post(f"/v1/runs/{run_id}/resume", json={})).status_code == 200
        await becomes(running, run_id, "asking")


async def test_a_wish_that_is_sent_again_with_its_key_begins_no_second_run(
    start: Start, projects: Path, tmp_path: Path
) -> None:
    wish = {"assignment": "x", "path": str(make_workspace(projects / "w")), "mode": "ask"}
    async with scripted(tmp_path, SCRIPT) as server, start("p1", **settings_for(server)) as running:
        key = {"idempotency-key": "ci-1"}
        refused = await running.http.post("/v1/runs", json={**wish, "provider": "nobody"}, headers=key)
        assert refused.status_code == 400
        first = await running.http.post("/v1/runs", json=wish, headers=key)
        again = await running.http.post("/v1/runs", json=wish, headers=key)
        assert (first.status_code, again.status_code) == (201, 200), first.text + again.text
        assert first.json()["id"] == again.json()["id"]
        other = await running.http.post("/v1/runs", json={**wish, "assignment": "y"}, headers=key)
        assert (other.status_code, other.json()["code"]) == (409, "idempotency_conflict")
        assert len((await running.http.get("/v1/runs")).json()["runs"]) == 1


async def test_others_and_impossible_models_are_refused_and_leave_nothing(
    start: Start, projects: Path, tmp_path: Path
) -> None:
    workspace = make_workspace(projects / "w")
    async with scripted(tmp_path, SCRIPT) as server, start("p1", **settings_for(server)) as running:
        wish = {"assignment": "x", "path": str(workspace), "provider": "nobody"}
        refused = await running.http.post("/v1/runs", json=wish)
        assert (refused.status_code, refused.json()["code"]) == (400, "settings_fault")
        assert (await running.http.get("/v1/runs")).json() == {"runs": [], "next": None}
        run_id = await begin(running, workspace, mode="ask")
        await becomes(running, run_id, "asking")
        await running.http.post(f"/v1/runs/{run_id}/cancel")
        await becomes(running, run_id, "interrupted")
        bob = await token_for(running, "bob", ["agent:run", "builds:read"])
        resume = f"/v1/runs/{run_id}/resume"
        assert (await running.http.post(resume, json={}, headers=bob)).status_code == 404
        unknown = await running.http.post(resume, json={"provider": "nobody", "model": "m"})
        assert (unknown.status_code, unknown.json()["code"]) == (400, "settings_fault")
        assert (await state_of(running, run_id, {}))["state"] == "interrupted"
        assert (await running.http.post("/v1/runs/none/resume", json={})).status_code == 404
