import hashlib
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from tests.orchestrator.conftest import Running, Start
from tests.orchestrator.fakes import kill_run, starts_of
from tests.orchestrator.waiting import eventually
from tests.orchestrator.workspaces import make_workspace

pytestmark = pytest.mark.anyio


async def submit(running: Running, workspace: Path, **wish: Any) -> dict[str, Any]:
    answer = await running.http.post("/v1/builds", json={"path": str(workspace), **wish})
    assert answer.status_code in (200, 201), answer.text
    body: dict[str, Any] = answer.json()
    return body


async def ended(running: Running, build_id: str) -> dict[str, Any]:
    """Wait for the end of a build; a busy machine may need minutes for what takes a second."""
    for _ in range(15):
        answer = await running.http.get(f"/v1/builds/{build_id}", params={"wait_s": 20})
        body: dict[str, Any] = answer.json()
        if body["state"] == "finished":
            break
    assert body["state"] == "finished", body
    return body


async def until(running: Running, build_id: str, stage: str) -> None:
    async def is_there() -> bool:
        return bool((await running.http.get(f"/v1/builds/{build_id}")).json()["stage"] == stage)

    await eventually(is_there)


async def test_a_build_goes_to_a_phone_and_comes_back_with_log_and_artifact(
    start: Start, projects: Path
) -> None:
    workspace = make_workspace(projects / "hello")
    async with start("p1") as running:
        build_id = (await submit(running, workspace))["id"]
        build = await ended(running, build_id)
        assert (build["outcome"], build["exit_code"]) == ("succeeded", 0)
        log = await running.http.get(f"/v1/builds/{build_id}/log")
        on_phone = (running.phones / "p1/runs" / f"{build_id}-1" / "build.log").read_bytes()
        assert log.content == on_phone
        assert build["runs"][0]["log_sha256"] == hashlib.sha256(on_phone).hexdigest()
        artifact = await running.http.get(f"/v1/builds/{build_id}/artifacts/0")
        assert hashlib.sha256(artifact.content).hexdigest() == build["artifacts"][0]["sha256"]
        assert starts_of(running.phones) == [f"{build_id}-1"]
        phones = (await running.http.get("/v1/phones")).json()["phones"]
        assert [phone["is_busy"] for phone in phones] == [False]


async def test_the_same_content_is_built_once_and_force_builds_it_again(start: Start, projects: Path) -> None:
    workspace = make_workspace(projects / "hello")
    async with start("p1") as running:
        first = await submit(running, workspace)
        twin = await submit(running, workspace)
        assert (twin["id"], first["is_joined"], twin["is_joined"]) == (first["id"], False, True)
        await ended(running, first["id"])
        assert (await submit(running, workspace))["id"] == first["id"]
        forced = await submit(running, workspace, force=True)
        assert forced["id"] != first["id"]
        other = await submit(running, workspace, tasks=["lintDebug"])
        assert other["id"] not in (first["id"], forced["id"])
        await ended(running, forced["id"])
        await ended(running, other["id"])
        assert len(starts_of(running.phones)) == 3


async def test_a_failed_build_is_an_outcome_with_a_digest_and_can_be_retried(
    start: Start, projects: Path
) -> None:
    lines = ["Main.java:3: error: cannot find symbol", "", "FAILURE: Build failed with an exception."]
    workspace = make_workspace(projects / "hello", exit_code=1, lines=lines)
    async with start("p1") as running:
        build_id = (await submit(running, workspace))["id"]
        build = await ended(running, build_id)
        assert (build["outcome"], build["exit_code"], build["artifacts"]) == ("failed", 1, [])
        digest = (await running.http.get(f"/v1/builds/{build_id}/digest")).json()
        assert "cannot find symbol" in digest["text"]
        problems = (await running.http.get(f"/v1/builds/{build_id}/problems")).json()["problems"]
        assert [problem["file"] for problem in problems] == ["Main.java"]
        again = await running.http.post(f"/v1/builds/{build_id}/retry")
        assert again.status_code == 201
        assert (await ended(running, again.json()["id"]))["outcome"] == "failed"


async def test_a_running_build_is_cancelled_and_frees_its_phone(start: Start, projects: Path) -> None:
    workspace = make_workspace(projects / "hello", held_attempt=1)
    async with start("p1") as running:
        build_id = (await submit(running, workspace))["id"]
        await until(running, build_id, "gradle")
        await running.http.post(f"/v1/builds/{build_id}/cancel")
        assert (await ended(running, build_id))["outcome"] == "cancelled"
        again = await submit(running, workspace)
        assert again["id"] != build_id
        await running.http.post(f"/v1/builds/{again['id']}/cancel")
        await ended(running, again["id"])


async def test_a_build_that_waits_is_cancelled_at_once_and_never_starts(start: Start, projects: Path) -> None:
    async with start() as running:
        build_id = (await submit(running, make_workspace(projects / "hello")))["id"]
        answer = await running.http.post(f"/v1/builds/{build_id}/cancel")
        assert (answer.json()["state"], answer.json()["outcome"]) == ("finished", "cancelled")
        assert starts_of(running.phones) == []


async def test_a_build_past_its_deadline_is_stopped_on_the_phone(start: Start, projects: Path) -> None:
    workspace = make_workspace(projects / "hello", held_attempt=1)
    async with start("p1") as running:
        build_id = (await submit(running, workspace, deadline_s=0.5))["id"]
        assert (await ended(running, build_id))["outcome"] == "timed_out"


async def test_a_pulled_cable_reattaches_and_loses_no_byte(start: Start, projects: Path) -> None:
    lines = [f"line {n}" for n in range(60)]
    workspace = make_workspace(projects / "hello", lines=lines, line_s=0.01, held_attempt=1)
    async with start("p1") as running:
        build_id = (await submit(running, workspace))["id"]
        await until(running, build_id, "gradle")
        (running.phones / "p1/runs" / f"{build_id}-1" / "hold").unlink()
        for _ in range(3):
            (running.phones / "p1/cut").touch()
            await anyio.sleep(0.15)
        assert (await ended(running, build_id))["outcome"] == "succeeded"
        log = (await running.http.get(f"/v1/builds/{build_id}/log")).content
        assert log == (running.phones / "p1/runs" / f"{build_id}-1" / "build.log").read_bytes()
        assert starts_of(running.phones) == [f"{build_id}-1"]


async def test_a_run_that_died_with_its_phone_is_begun_once_more(start: Start, projects: Path) -> None:
    workspace = make_workspace(projects / "hello", held_attempt=1)
    async with start("p1") as running:
        build_id = (await submit(running, workspace))["id"]
        await until(running, build_id, "gradle")
        kill_run(running.phones, f"{build_id}-1")
        build = await ended(running, build_id)
        assert (build["outcome"], build["attempt"]) == ("succeeded", 2)
        assert [run["state"] for run in build["runs"]] == ["lost", "done"]


async def test_a_phone_that_stays_away_loses_the_build_and_is_fenced_until_it_is_back(
    start: Start, projects: Path
) -> None:
    workspace = make_workspace(projects / "hello", held_attempt=1)
    care = {"gone_after_s": 0.4, "probe_every_s": 0.2}
    async with start("p1", care=care) as running:
        build_id = (await submit(running, workspace))["id"]
        await until(running, build_id, "gradle")
        (running.phones / "p1/offline").touch()

        async def is_begun_again() -> bool:
            return bool((await running.http.get(f"/v1/builds/{build_id}")).json()["attempt"] == 2)

        await eventually(is_begun_again)
        (running.phones / "p1/offline").unlink()
        build = await ended(running, build_id)
        assert build["outcome"] == "succeeded"
        first = running.phones / "p1/runs" / f"{build_id}-1"
        assert (first / "cancel").exists(), "the lost run was not stopped before the phone was used again"


async def test_an_idempotency_key_answers_again_and_refuses_another_body(
    start: Start, projects: Path
) -> None:
    workspace = make_workspace(projects / "hello")
    async with start("p1") as running:

        async def ask(**wish: Any) -> httpx.Response:
            body = {"path": str(workspace), "force": True, **wish}
            return await running.http.post("/v1/builds", json=body, headers={"idempotency-key": "k1"})

        first, second = await ask(), await ask()
        assert (first.status_code, second.status_code) == (201, 200)
        assert first.json()["id"] == second.json()["id"]
        other = await ask(tasks=["lintDebug"])
        assert (other.status_code, other.json()["code"]) == (409, "idempotency_conflict")
        await ended(running, first.json()["id"])


async def test_a_listing_is_paged_by_cursor_newest_first(start: Start, projects: Path) -> None:
    async with start() as running:
        made = [
            (await submit(running, make_workspace(projects / f"w{n}", text=str(n))))["id"] for n in range(5)
        ]
        seen: list[str] = []
        cursor: str | None = ""
        while cursor is not None:
            params = {"limit": 2, **({"cursor": cursor} if cursor else {})}
            page = (await running.http.get("/v1/builds", params=params)).json()
            seen += [build["id"] for build in page["builds"]]
            cursor = page["next"]
        assert seen == made[::-1]


async def test_a_phone_tells_how_many_waiting_builds_it_could_take(
    start: Start, projects: Path, tmp_path: Path
) -> None:
    for phone in ("p1", "p2"):
        (tmp_path / "phones" / phone).mkdir(parents=True)
        (tmp_path / "phones" / phone / "offline").touch()
    async with start(phones=[{"address": "p1"}, {"address": "p2", "pool": "other"}]) as running:
        wishes: list[dict[str, Any]] = [{}, {"priority": "urgent"}, {"phone": "p2"}, {"pool": "nobody"}]

        async def are_known() -> bool:
            return len((await running.http.get("/v1/phones")).json()["phones"]) == 2

        await eventually(are_known)
        for number, wish in enumerate(wishes):
            await submit(running, make_workspace(projects / str(number), text=str(number)), **wish)
        phones = (await running.http.get("/v1/phones")).json()["phones"]
        assert {phone["address"]: phone["queue"] for phone in phones} == {"p1": 2, "p2": 1}


async def test_a_workspace_that_a_power_cut_damaged_is_refused_once_and_whole_when_sent_again(
    start: Start, projects: Path, tmp_path: Path
) -> None:
    workspace = make_workspace(projects / "hello")
    (tmp_path / "phones/p1").mkdir(parents=True)
    (tmp_path / "phones/p1/offline").touch()
    async with start("p1") as running:
        waiting = (await submit(running, workspace))["id"]
        digest = hashlib.sha256((workspace / "build.gradle").read_bytes()).hexdigest()
        (running.settings.data_dir / "workspaces/blobs" / digest[:2] / digest).write_bytes(b"")
        (tmp_path / "phones/p1/offline").unlink()
        running.service.stores.bells.ring("phones")
        build = await ended(running, waiting)
        assert (build["outcome"], "send it again" in build["reason"]) == ("refused", True), build
        again = (await submit(running, workspace))["id"]
        assert again != waiting
        assert (await ended(running, again))["outcome"] == "succeeded"
