import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from orchestrator.cli.connect import published
from orchestrator.client import PATIENCE_S, open_client
from orchestrator.errors import ServiceUnreachable
from tests.orchestrator.processes import kill, start_service
from tests.orchestrator.workspaces import make_workspace

ROOT = Path(__file__).parents[3]
SCRIPT = """
schema = 1
title = "repair"
[[turn]]
text = "I build."
calls = [{ tool = "build_gradle_project", arguments = { tasks = ["assembleDebug"] } }]
[[turn]]
expects = { results = [{ tool = "build_gradle_project", contains = ["cannot find symbol", "Main.java:3"] }] }
text = "I mend it."
calls = [{ tool = "write_file", arguments = { path = "plan.json", content = "{}" } }]
[[turn]]
text = "I build again."
calls = [{ tool = "build_gradle_project", arguments = { tasks = ["assembleDebug"] } }]
[[turn]]
expects = { results = [{ tool = "build_gradle_project", contains = ["app-debug.apk"] }] }
text = "Green."
"""
BROKEN = {
    "exit_code": 1,
    "lines": ["Main.java:3: error: cannot find symbol", "", "FAILURE: Build failed with an exception."],
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The data folder of a service in a process of its own, with two fake phones."""
    folder = tmp_path_factory.mktemp("cli")
    for phone in ("p1", "p2"):
        (folder / "phones" / phone).mkdir(parents=True)
    phones = [{"address": "p1"}, {"address": "p2", "pool": None}]
    process, url = start_service(folder / "data", folder / "phones", phones=phones, dispatch_poll_s=0.1)
    try:
        with published(folder / "data", url):
            yield folder / "data"
    finally:
        kill(process)


def pocketbuild(
    data: Path, *arguments: str, cwd: Path | None = None, timeout_s: float = 180
) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "POCKETBUILD_DATA_DIR": str(data), "PYTHONPATH": str(ROOT)}
    program = [sys.executable, "-m", "orchestrator", *arguments]
    return subprocess.run(
        program, cwd=cwd, env=environment, text=True, capture_output=True, timeout=timeout_s
    )


def test_a_build_sends_the_workspace_and_brings_log_and_artifact(data: Path, tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path / "hello")
    before = {path: path.stat().st_mtime_ns for path in workspace.rglob("*")}
    done = pocketbuild(data, "build", str(workspace), "--json", "--quiet", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    assert result["outcome"] == "succeeded"
    assert [Path(file).name for file in result["files"]] == ["app-debug.apk"]
    assert (tmp_path / "out/hello/app-debug.apk").read_bytes().startswith(b"apk of ")
    assert "BUILD SUCCESSFUL" in (tmp_path / "out/hello/build.log").read_text()
    assert {"scan", "upload", "fetch"} <= set(result["runs"][0]["stage_s"])
    assert {path: path.stat().st_mtime_ns for path in workspace.rglob("*")} == before


def test_a_failed_build_shows_its_digest_and_leaves_with_1(data: Path, tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path / "hello", text="broken", **BROKEN)
    done = pocketbuild(data, "build", str(workspace), "--output", str(tmp_path / "o"), "--device", "p2")
    assert done.returncode == 1
    assert "cannot find symbol" in done.stdout
    assert "failed on p2" in done.stderr
    assert f"full log: {tmp_path}/o/build.log" in done.stdout
    again = pocketbuild(data, "build", str(workspace), "--device", "p2", "--json", cwd=tmp_path)
    told = json.loads(again.stdout)
    assert "cannot find symbol" in json.dumps(told["digest"]["causes"])


def test_a_build_of_the_same_content_is_not_played_back(data: Path, tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path / "hello", text="twice")
    first, again = (pocketbuild(data, "build", str(workspace), cwd=tmp_path) for _ in range(2))
    assert (first.returncode, again.returncode) == (0, 0), again.stderr
    assert "running" in first.stderr
    assert "running" not in again.stderr
    assert "--force builds again" in again.stderr
    assert again.stdout == first.stdout


def test_a_build_is_given_its_secrets_and_says_only_their_names(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = make_workspace(tmp_path / "hello", text="secret")
    monkeypatch.setenv("storePassword", "a value to hide")
    (tmp_path / "release.p12").write_bytes(b"keystore")
    options = ("--secret", "storePassword", "--secret-file", f"store={tmp_path}/release.p12")
    done = pocketbuild(data, "build", str(workspace), *options, "--json", "--quiet", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["secrets"] == ["store", "storePassword"]
    assert "a value to hide" not in done.stdout + done.stderr
    (noted,) = (data.parent / "phones").glob(f"*/runs/{result['id']}-1/secrets.json")
    assert json.loads(noted.read_text()).keys() == {"store", "storePassword"}


def test_status_without_a_service_says_how_to_start_one(tmp_path: Path) -> None:
    done = pocketbuild(tmp_path, "status")
    assert (done.returncode, "Start one with `pocketbuild serve`" in done.stderr) == (4, True), done.stderr


def test_status_does_not_wait_for_a_service_that_was_killed(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens there, and nobody else can
        with published(tmp_path, f"http://127.0.0.1:{taken.getsockname()[1]}"):
            done = pocketbuild(tmp_path, "status")
    assert (done.returncode, "does not answer" in done.stderr) == (4, True), done.stderr


@pytest.mark.anyio
async def test_a_client_without_patience_tells_at_once_that_nobody_answers() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        async with open_client(f"http://127.0.0.1:{taken.getsockname()[1]}", patience_s=0) as client:
            with anyio.fail_after(PATIENCE_S / 2), pytest.raises(ServiceUnreachable):
                await client.phones()


def phones_of(data: Path) -> dict[str, dict[str, Any]]:
    shown = json.loads(pocketbuild(data, "status", "--json").stdout)
    return {phone["address"]: phone for phone in shown["phones"]}


def test_a_phone_that_is_not_there_is_told_instead_of_waited_for_and_not_kept(
    data: Path, tmp_path: Path
) -> None:
    workspace = make_workspace(tmp_path / "hello", text="nobody")
    done = pocketbuild(data, "build", str(workspace), "--device", "127.0.0.1:1", "--route", "termux")
    assert done.returncode == 4
    assert "nothing answers at 127.0.0.1:1" in done.stderr
    assert "127.0.0.1:1" not in phones_of(data)


def test_a_route_is_of_the_build_and_leaves_the_phone_as_it_is(data: Path, tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path / "hello", text="by another route")
    arguments = ("build", str(workspace), "--device", "p1", "--route", "shell_dir", "--json", "--quiet")
    done = pocketbuild(data, *arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["runs"][0]["route"] == "folder by shell_dir"
    assert phones_of(data)["p1"]["route"] is None


def test_verbose_shows_the_log_and_the_plain_form_a_few_lines(data: Path, tmp_path: Path) -> None:
    lines = [f":app:task{number}" for number in range(200)] + ["", "BUILD SUCCESSFUL in 1s"]
    workspace = make_workspace(tmp_path / "hello", text="verbose", lines=lines)
    plain, verbose = (
        pocketbuild(data, "build", str(workspace), "--force", *more, cwd=tmp_path)
        for more in ((), ("--verbose",))
    )
    assert (plain.returncode, verbose.returncode) == (0, 0), plain.stderr + verbose.stderr
    shown = [line for line in verbose.stderr.splitlines() if not re.match(r" *\d+\.\d s  ", line)]
    assert "\n".join(lines) in "\n".join(shown), "a state may stand between any two lines"
    assert "BUILD SUCCESSFUL" not in plain.stderr
    assert plain.stderr.count(":app:task") < 100
    assert "app-debug.apk" in plain.stdout


def test_a_phone_is_forgotten_by_the_service_too(data: Path) -> None:
    (data.parent / "phones/p9").mkdir()
    done = pocketbuild(data, "build", str(make_workspace(data.parent / "nine", text="9")), "--device", "p9")
    assert done.returncode == 0, done.stderr
    forgotten = pocketbuild(data, "phone", "forget", "serial-of-p9")
    assert (forgotten.returncode, forgotten.stdout) == (0, "serial-of-p9 is forgotten\n"), forgotten.stderr
    assert "p9" not in phones_of(data)
    again = pocketbuild(data, "phone", "forget", "p9")
    assert (again.returncode, "no phone is called p9" in again.stderr) == (3, True)


def test_a_scripted_agent_repairs_a_build_and_its_run_can_be_shown(data: Path, tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path / "hello", text="agent", **BROKEN)
    script = tmp_path / "script.toml"
    script.write_text(SCRIPT)
    arguments = ("agent", "Make it build", "--workspace", str(workspace), "--script", str(script))
    done = pocketbuild(data, *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "a recorded script, no model" in done.stdout
    assert "error: Main.java:3 cannot find symbol" in done.stdout
    run_id = pocketbuild(data, "agent", "list").stdout.split()[0]
    shown = pocketbuild(data, "agent", "show", run_id).stdout
    assert "→ write_file" in shown
    assert "stopped: green" in shown
    told = pocketbuild(data, "agent", "show", run_id, "--markdown").stdout
    assert told.startswith(f"# Run {run_id}\n")
    assert "\n**Totals:** " in told
    kept = pocketbuild(data, "agent", "show", run_id, "--json").stdout
    assert json.loads(kept.splitlines()[0])["run_id"] == run_id


def test_status_tells_of_phones_and_builds(data: Path, tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path / "seen", text="status")
    built = pocketbuild(data, "build", str(workspace), "--json", "--quiet", cwd=tmp_path)
    build_id = json.loads(built.stdout)["id"]
    shown = pocketbuild(data, "status").stdout
    assert "phone p1  pool default  online" in shown
    assert f"build {build_id}  seen  local  succeeded" in shown
    assert "attempt 1 on p1" in pocketbuild(data, "status", build_id).stdout


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("agent", "x", "--provider", "nobody", "--model", "m"), 2, "no provider is called 'nobody'"),
        (("agent", "x"), 2, "no provider and no model is chosen"),
        (("agent", "x", "--provider", "openai"), 2, "no model is chosen"),
        (("build", ".", "--route", "bluetooth"), 2, "'bluetooth' is not one of 'run_as'"),
        (("agent",), 2, "Usage"),
        (("agent", "show", "none"), 3, "there is no run none"),
        (("build", "/nowhere"), 2, "does not exist"),
        (("build", ".", "--config", "/nowhere.toml"), 2, "no settings file"),
        (("token", "create", "ann", "--days", "0"), 2, "is not in the range x>0"),
    ],
)
def test_wrong_usage_is_told_in_a_line(
    data: Path, tmp_path: Path, arguments: tuple[str, ...], code: int, said: str
) -> None:
    make_workspace(tmp_path)
    done = pocketbuild(data, *arguments, cwd=tmp_path)
    assert (done.returncode, said in done.stderr + done.stdout) == (code, True), done.stderr
    assert "Traceback" not in done.stderr
