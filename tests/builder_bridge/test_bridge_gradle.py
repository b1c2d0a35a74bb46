"""Both routes build both sample workspaces with the real Android toolchain of the box."""

import hashlib
import time
import zipfile
from pathlib import Path

import anyio
import pytest

from builder_bridge.adb import connect
from builder_bridge.box import Box
from builder_bridge.bridge import open_bridge
from builder_bridge.build import BuildSpec, LogChunk, RunId
from builder_bridge.workspace.scan import scan

pytestmark = [pytest.mark.box, pytest.mark.slow, pytest.mark.anyio, pytest.mark.xdist_group("agp")]
WORKSPACES = Path(__file__).parent.parent / "workspaces"
MADE = {
    "hello": {("apk", "debug")},
    "greeter": {("apk", "freeDebug"), ("apk", "paidDebug"), ("aar", "debug")},
}


@pytest.mark.parametrize("workspace", ["hello", "greeter"])
@pytest.mark.parametrize("route", ["run_as", "shell_dir"])
async def test_a_real_build_comes_back_whole_and_leaves_the_workspace_as_it_was(
    agp_box: Box, tmp_path: Path, route: str, workspace: str
) -> None:
    snapshot = await anyio.to_thread.run_sync(scan, WORKSPACES / workspace)
    run_id = RunId(f"{workspace}-{route.replace('_', '-')}")
    log = b""
    async with connect(agp_box.serial) as adb, open_bridge(adb, (route,), memory=tmp_path) as bridge:
        await bridge.submit(run_id, BuildSpec(), snapshot)
        async for event in bridge.follow(run_id):
            if isinstance(event, LogChunk):
                log += event.data
        result = await bridge.result(run_id)
        assert result.is_success, log.decode()[-3000:]
        assert hashlib.sha256(log).hexdigest() == result.log_sha256
        assert b"BUILD SUCCESSFUL" in log
        assert {(artifact.kind, artifact.variant) for artifact in result.artifacts} >= MADE[workspace]
        for artifact in result.artifacts:
            path = await bridge.fetch(run_id, artifact, tmp_path / artifact.path)
            assert zipfile.ZipFile(path).testzip() is None
        again = RunId(f"{run_id}-2")
        await bridge.submit(again, BuildSpec(), snapshot)
        repeated = await bridge.result(again)
        assert repeated.facts["upload"] == "unchanged", "a build has written to a file of the project"
        assert {artifact.path for artifact in repeated.artifacts} == {
            artifact.path for artifact in result.artifacts
        }
        less = RunId(f"{run_id}-3")
        await bridge.submit(less, BuildSpec(tasks=("preBuild",)), snapshot)
        assert (await bridge.result(less)).artifacts == (), (
            "packages of an earlier build were given as its own"
        )
    assert scan(WORKSPACES / workspace).fingerprint == snapshot.fingerprint


TASKS = """
task broken {
    outputs.file 'build/reports/lint-results-debug.xml'
    doLast { file('build/reports/lint-results-debug.xml').text = 'found'; throw new GradleException('no') }
}
"""


async def test_reports_of_a_task_that_failed_are_told_by_gradle_itself(agp_box: Box, tmp_path: Path) -> None:
    workspace = tmp_path / "reporting"
    workspace.mkdir()
    for name, text in (("settings.gradle", ""), ("build.gradle", TASKS)):
        (workspace / name).write_text(text)
    snapshot = await anyio.to_thread.run_sync(scan, workspace)
    run_id = RunId("reporting")
    async with connect(agp_box.serial) as adb, open_bridge(adb, ("shell_dir",), memory=tmp_path) as bridge:
        await bridge.submit(run_id, BuildSpec(tasks=("broken",)), snapshot)
        result = await bridge.result(run_id)
        assert result.exit_code == 1
        assert await bridge.reports(run_id) == {"build/reports/lint-results-debug.xml": b"found"}


async def test_an_archive_of_the_clients_classes_is_made_once_and_a_damaged_one_breaks_nothing(
    agp_box: Box, tmp_path: Path
) -> None:
    workspace = tmp_path / "small"
    workspace.mkdir()
    for name, text in (("settings.gradle", ""), ("build.gradle", "task noop")):
        (workspace / name).write_text(text)
    snapshot = await anyio.to_thread.run_sync(scan, workspace)
    folder = agp_box.root / "data/local/tmp/pocketbuild/pocketbuild"
    async with (
        connect(agp_box.serial) as adb,
        open_bridge(adb, ("shell_dir",), has_daemon=True, memory=tmp_path) as bridge,
    ):

        async def build(name: str) -> list[bytes]:
            run_id, log = RunId(name), b""
            await bridge.submit(run_id, BuildSpec(tasks=("noop",)), snapshot)
            async for event in bridge.follow(run_id):
                if isinstance(event, LogChunk):
                    log += event.data
            assert (await bridge.result(run_id)).is_success, log
            # Which daemon Gradle takes, and what it says of that, is its own affair: earlier builds decide.
            return [line for line in log.splitlines() if b"Daemon" not in line and b"SUCCESSFUL" not in line]

        assert await build("archive-1") == [b":noop UP-TO-DATE", b""]
        archive = await anyio.to_thread.run_sync(await_archive, folder)
        made = archive.stat()
        assert await build("archive-2") == [b":noop UP-TO-DATE", b""]
        whole = archive.read_bytes()
        half = len(whole) // 2
        for number, damaged in enumerate(
            (whole[:half], whole[:half] + bytes(99_999) + whole[half + 99_999 :])
        ):
            archive.chmod(0o600)
            archive.write_bytes(damaged)
            assert await build(f"archive-damaged-{number}") == [b":noop UP-TO-DATE", b""]
        assert archive.stat().st_ino == made.st_ino, "it was made a second time"


def await_archive(folder: Path) -> Path:
    """Give the archive, which appears some seconds after the first build, or fail after five minutes."""
    until = time.monotonic() + 300
    while not (found := list(folder.glob("client-*.jsa"))):
        assert time.monotonic() < until, sorted(folder.iterdir())
        time.sleep(0.1)
    (archive,) = found
    return archive
