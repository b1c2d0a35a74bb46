from pathlib import Path

import pytest

from tests.orchestrator.conftest import Start
from tests.orchestrator.fakes import starts_of
from tests.orchestrator.workspaces import make_workspace

pytestmark = pytest.mark.anyio


async def test_a_build_goes_to_a_phone_and_comes_back_with_log_and_artifact(
    start: Start, projects: Path
) -> None:
    workspace = make_workspace(projects / "hello")
    async with start("p1") as running:
        created = await running.http.post("/v1/builds", json={"path": str(workspace)})
        assert created.status_code == 201, created.text
        build_id = created.json()["id"]
        build = (await running.http.get(f"/v1/builds/{build_id}", params={"wait_s": 20})).json()
        assert (build["state"], build["outcome"], build["exit_code"]) == ("finished", "succeeded", 0), build
        log = await running.http.get(f"/v1/builds/{build_id}/log")
        assert log.content == (running.phones / "p1/runs" / f"{build_id}-1" / "build.log").read_bytes()
        artifact = await running.http.get(f"/v1/builds/{build_id}/artifacts/0")
        assert artifact.content.startswith(b"apk of ")
        assert starts_of(running.phones) == [f"{build_id}-1"]
        assert [phone["is_busy"] for phone in (await running.http.get("/v1/phones")).json()["phones"]] == [
            False
        ]
