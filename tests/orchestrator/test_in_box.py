"""The whole way through: command line, service, adb, a builder prefix, Gradle, and back."""

import hashlib
import json
import shutil
import time
import zipfile
from pathlib import Path
from typing import Any

import httpx
import pytest

from builder_bridge.box import Box
from orchestrator.cli.connect import published
from tests.orchestrator.cli.test_build import pocketbuild
from tests.orchestrator.processes import kill, start_service

pytestmark = [pytest.mark.box, pytest.mark.slow, pytest.mark.xdist_group("agp")]
SAMPLE = Path(__file__).parents[1] / "workspaces/hello"


def address_of(box: Box) -> str:
    return f"127.0.0.1:{box.port}"


def test_a_service_killed_while_gradle_runs_takes_the_build_up_again(agp_box: Box, tmp_path: Path) -> None:
    workspace = tmp_path / "hello"
    shutil.copytree(SAMPLE, workspace)
    settings: dict[str, Any] = {
        "phones": [{"address": address_of(agp_box)}],
        "workspace_roots": [str(tmp_path)],
    }
    data = tmp_path / "data"
    process, url = start_service(data, None, **settings)
    answer = httpx.post(f"{url}/v1/builds", json={"path": str(workspace)}, timeout=60)
    build_id = answer.json()["id"]
    deadline_s = time.monotonic() + 300
    while httpx.get(f"{url}/v1/builds/{build_id}", timeout=60).json()["stage"] != "gradle":
        assert time.monotonic() < deadline_s
        time.sleep(0.05)
    kill(process)
    process, url = start_service(data, None, **settings)
    try:
        with published(data, url):
            done = pocketbuild(data, "build", str(workspace), "--json", "--quiet", cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
        result = json.loads(done.stdout)
        assert (result["id"], result["attempt"]) == (build_id, 1)
        run = result["runs"][0]
        log = (tmp_path / "out/hello/build.log").read_bytes()
        assert hashlib.sha256(log).hexdigest() == run["log_sha256"]
        assert log.count(b"BUILD SUCCESSFUL") == 1
        assert {"upload", "unpack", "gradle", "collect", "fetch"} <= set(run["stage_s"])
        events = httpx.get(f"{url}/v1/builds/{build_id}/events", timeout=60).json()
        seconds = {task["path"]: task["duration_s"] for task in events["tasks"]}
        assert (events["outcome"], events["failures"]) == ("success", [])
        assert seconds[":app:assembleDebug"] is not None
        with zipfile.ZipFile(result["files"][0]) as apk:
            assert "classes.dex" in apk.namelist()
    finally:
        kill(process)
