import hashlib
import time
from collections import Counter
from pathlib import Path
from typing import Any

import httpx

from tests.orchestrator.fakes import starts_of
from tests.orchestrator.processes import kill, start_service
from tests.orchestrator.workspaces import make_workspace

STAGES = ("upload", "unpack", "gradle", "collect", "fetch")
LINES = [f"line {n}" for n in range(200)]


def wait_for(condition: Any, at_most_s: float = 300.0) -> None:
    deadline_s = time.monotonic() + at_most_s
    while not condition():
        assert time.monotonic() < deadline_s, "it did not come to pass"
        time.sleep(0.03)


def test_a_service_killed_at_every_stage_finishes_each_build_once_and_byte_exact(tmp_path: Path) -> None:
    phones, data = tmp_path / "phones", tmp_path / "data"
    for stage in STAGES:
        (phones / stage).mkdir(parents=True)
        (phones / stage / f"hold-{stage}").touch()
    settings = {
        "phones": [{"address": stage} for stage in STAGES],
        "workspace_roots": [str(tmp_path)],
        "dispatch_poll_s": 0.1,
    }
    process, url = start_service(data, phones, **settings)
    ids = {}
    for stage in STAGES:
        workspace = make_workspace(tmp_path / f"w-{stage}", text=stage, lines=LINES)
        answer = httpx.post(f"{url}/v1/builds", json={"path": str(workspace), "phone": stage}, timeout=60)
        ids[stage] = answer.json()["id"]

    def build(stage: str) -> dict[str, Any]:
        body: dict[str, Any] = httpx.get(f"{url}/v1/builds/{ids[stage]}", timeout=60).json()
        return body

    wait_for(lambda: all(build(stage)["stage"] == stage for stage in STAGES))
    kill(process)
    for stage in STAGES:
        (phones / stage / f"hold-{stage}").unlink()
    process, url = start_service(data, phones, **settings)
    try:
        wait_for(lambda: all(build(stage)["state"] == "finished" for stage in STAGES))
        assert {stage: build(stage)["outcome"] for stage in STAGES} == dict.fromkeys(STAGES, "succeeded")
        assert Counter(starts_of(phones)) == Counter(f"{build_id}-1" for build_id in ids.values())
        for stage, build_id in ids.items():
            on_phone = (phones / stage / "runs" / f"{build_id}-1" / "build.log").read_bytes()
            assert httpx.get(f"{url}/v1/builds/{build_id}/log", timeout=60).content == on_phone
            apk = httpx.get(f"{url}/v1/builds/{build_id}/artifacts/0", timeout=60).content
            assert hashlib.sha256(apk).hexdigest() == build(stage)["artifacts"][0]["sha256"]
        assert not any(
            phone["is_busy"] for phone in httpx.get(f"{url}/v1/phones", timeout=60).json()["phones"]
        )
    finally:
        kill(process)
