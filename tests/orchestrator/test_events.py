from pathlib import Path

import pytest

from tests.orchestrator.conftest import Start
from tests.orchestrator.test_builds import ended, submit
from tests.orchestrator.workspaces import make_workspace

pytestmark = pytest.mark.anyio
FAILED = {"exit_code": 1, "lines": ["FAILURE: Build failed with an exception."]}


async def test_the_events_of_a_run_come_here_and_tell_how_long_its_tasks_took(
    start: Start, projects: Path
) -> None:
    async with start("p1") as running:
        build_id = (await submit(running, make_workspace(projects / "w", **FAILED)))["id"]
        await ended(running, build_id)
        events = (await running.http.get(f"/v1/builds/{build_id}/events")).json()
        assert (events["build"], events["gradle"], events["outcome"]) == (build_id, "8.7", "failed")
        assert events["tasks"] == [
            {"path": ":app:preBuild", "outcome": "SUCCESS", "duration_s": None},
            {"path": ":app:assembleDebug", "outcome": "FAILED", "duration_s": 3.25},
        ]
        digest = (await running.http.get(f"/v1/builds/{build_id}/digest")).json()
        assert digest["digest"]["cheaper_check"] == {"task": ":app:assembleDebug", "duration_s": 3.25}
        assert 'task=":app:assembleDebug" took 3 s' in digest["text"]


async def test_gradles_own_events_win_over_a_log_that_does_not_tell(start: Start, projects: Path) -> None:
    chain = [{"type": "T", "message": "outer"}, {"message": "no such method", "file": None}]
    chain[0] |= {"source": "build file '/p/app/build.gradle'", "line": 7}
    events = [
        {
            "event": "task_finished",
            "task": ":app:lintDebug",
            "outcome": "FAILED",
            "started_ms": 0,
            "at_ms": 1,
        },
        {"event": "failure", "causes": chain},
        {"event": "finished", "outcome": "failed"},
    ]
    log = ["FAILURE: Build failed with an exception.", "", "* What went wrong:", "no such method", ""]
    workspace = make_workspace(projects / "w", exit_code=1, lines=log, events=events)
    (workspace / "app/build.gradle").write_text("//\n" * 9)
    async with start("p1") as running:
        build_id = (await submit(running, workspace))["id"]
        await ended(running, build_id)
        reply = (await running.http.get(f"/v1/builds/{build_id}/events")).json()
        place = {"file": "/p/app/build.gradle", "line": 7}
        assert reply["failures"][0][0] == {"type": "T", "message": "outer", **place}
        digest = (await running.http.get(f"/v1/builds/{build_id}/digest")).json()["digest"]
        assert digest["failed_tasks"] == [":app:lintDebug"]
        (cause,) = digest["causes"]
        assert (cause["path"], cause["line"]) == ("app/build.gradle", 7)


async def test_a_build_without_events_has_its_digest_all_the_same(start: Start, projects: Path) -> None:
    async with start("p1", "p2") as running:
        (running.phones / "p1/mute").touch()
        for phone, plan in (("p1", FAILED), ("p2", {**FAILED, "events": []})):
            wish = {"phone": phone}
            build_id = (await submit(running, make_workspace(projects / phone, **plan), **wish))["id"]
            assert (await ended(running, build_id))["outcome"] == "failed"
            answer = await running.http.get(f"/v1/builds/{build_id}/events")
            assert (answer.status_code, answer.json()["code"]) == (404, "no_events")
            assert (await running.http.get(f"/v1/builds/{build_id}/digest")).status_code == 200
