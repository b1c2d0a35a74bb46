"""The whole hand-off against a real adbd, over both routes, with a script where Gradle would be."""

import hashlib
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import anyio
import pytest

from builder_bridge.adb import connect
from builder_bridge.box import Box
from builder_bridge.bridge import Bridge, open_bridge
from builder_bridge.build import (
    BuildResult,
    BuildSpec,
    BuildState,
    LogChunk,
    RunId,
    RunIdentity,
    StateChanged,
)
from builder_bridge.errors import PhoneBusy, RouteUnavailable, RunConflict, TransferFault, UnknownRun
from builder_bridge.plan import request_digest
from builder_bridge.routes.shell_dir import ShellDirRoute
from builder_bridge.workspace.scan import scan
from tests.fake_prefix import files_of, make_workspace, set_conf, starts_of

pytestmark = [pytest.mark.box, pytest.mark.anyio]
ROUTES = ("run_as", "shell_dir")
NewRun = Callable[[], RunId]


@asynccontextmanager
async def bridge_to(box: Box, route: str, memory: Path) -> AsyncIterator[Bridge]:
    async with connect(box.serial) as adb, open_bridge(adb, (route,), memory=memory) as bridge:
        yield bridge


@dataclass
class Seen:
    log: bytes
    states: list[BuildState]
    result: BuildResult


async def build(bridge: Bridge, run_id: RunId, workspace: Path, spec: BuildSpec | None = None) -> Seen:
    await bridge.submit(run_id, spec or BuildSpec(), await anyio.to_thread.run_sync(scan, workspace))
    log, states = b"", []
    async for event in bridge.follow(run_id):
        match event:
            case LogChunk(offset, data):
                assert offset == len(log)
                log += data
            case StateChanged(state):
                states.append(state)
    result = await bridge.result(run_id)
    assert hashlib.sha256(log).hexdigest() == result.log_sha256
    assert len(log) == result.log_size_bytes
    return Seen(log, states, result)


def names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def content_on_phone(box: Box, route: str, workspace: Path, scratch: Path) -> str:
    """Give the fingerprint of the workspace as it lies on the phone, by way of a copy."""
    tree = files_of(box, route) / "pocketbuild/trees" / scan(workspace).place
    copy = Path(tempfile.mkdtemp(dir=scratch)) / "copy"
    shutil.copytree(tree, copy, symlinks=True)
    return scan(copy).fingerprint


@pytest.mark.parametrize("route", ROUTES)
async def test_a_build_comes_back_with_its_log_and_its_artifact(
    fake_box: Box, new_run: NewRun, tmp_path: Path, route: str
) -> None:
    workspace = make_workspace(tmp_path / "workspace")
    before = scan(workspace).fingerprint
    run_id = new_run()
    async with bridge_to(fake_box, route, tmp_path) as bridge:
        seen = await build(bridge, run_id, workspace)
        assert seen.states[-3:] == [BuildState.RUNNING, BuildState.COLLECTING, BuildState.DONE]
        assert seen.result.is_success
        assert seen.result.facts["route"] == route
        (artifact,) = seen.result.artifacts
        assert (artifact.kind, artifact.variant) == ("apk", "debug")
        fetched = await bridge.fetch(run_id, artifact, tmp_path / "out/app.apk")
        assert fetched.read_bytes() == b"first\nsecond\n"
        assert hashlib.sha256(fetched.read_bytes()).hexdigest() == artifact.sha256
        assert [path.name for path in (tmp_path / "out").iterdir()] == ["app.apk"]
    assert content_on_phone(fake_box, route, workspace, tmp_path) == before == scan(workspace).fingerprint


def held_workspace(box: Box, route: str, run_id: RunId, root: Path) -> tuple[Path, Path]:
    """Make a workspace whose build goes on until a file appears; give both."""
    go = f"go-{run_id}"
    run = f"until [ -f $HOME/{go} ]; do sleep 0.05; done"
    return make_workspace(root, lines=3, run=run), files_of(box, route) / "home" / go


@pytest.mark.parametrize("route", ROUTES)
async def test_submitting_again_finds_the_run_and_builds_once(
    fake_box: Box, new_run: NewRun, tmp_path: Path, route: str
) -> None:
    run_id = new_run()
    workspace, go = held_workspace(fake_box, route, run_id, tmp_path / "workspace")
    async with bridge_to(fake_box, route, tmp_path) as bridge:
        first = await bridge.submit(run_id, BuildSpec(), scan(workspace))
        assert isinstance(first, RunIdentity)
        assert await bridge.submit(run_id, BuildSpec(), scan(workspace)) == first
        go.touch()
        await bridge.result(run_id)
        assert await bridge.submit(run_id, BuildSpec(), scan(workspace)) is BuildState.DONE
    assert starts_of(fake_box, route).count(run_id) == 1


async def test_two_hosts_that_submit_the_same_run_at_once_build_once(
    fake_box: Box, new_run: NewRun, tmp_path: Path
) -> None:
    run_id, identities = new_run(), []
    workspace, go = held_workspace(fake_box, "run_as", run_id, tmp_path / "workspace")

    async def submit(number: int) -> None:
        async with bridge_to(fake_box, "run_as", tmp_path / str(number)) as bridge:
            identities.append(await bridge.submit(run_id, BuildSpec(), scan(workspace)))
            if len(identities) == 3:
                go.touch()
            await bridge.result(run_id)

    async with anyio.create_task_group() as tasks:
        for number in range(3):
            tasks.start_soon(submit, number)
    assert len({str(identity) for identity in identities}) == 1
    assert starts_of(fake_box, "run_as").count(run_id) == 1


async def test_one_id_with_other_content_is_a_conflict(
    fake_box: Box, new_run: NewRun, tmp_path: Path
) -> None:
    workspace = make_workspace(tmp_path / "workspace")
    run_id = new_run()
    async with bridge_to(fake_box, "run_as", tmp_path) as bridge:
        await build(bridge, run_id, workspace)
        with pytest.raises(RunConflict):
            await bridge.submit(run_id, BuildSpec(tasks=("check",)), scan(workspace))
        (workspace / "app/src/a.txt").write_text("changed\n")
        with pytest.raises(RunConflict):
            await bridge.submit(run_id, BuildSpec(), scan(workspace))


async def test_another_run_waits_its_turn_by_a_named_fault(
    fake_box: Box, new_run: NewRun, tmp_path: Path
) -> None:
    workspace = make_workspace(tmp_path / "workspace", lines=1, run="sleep 600")
    first, second = new_run(), new_run()
    async with bridge_to(fake_box, "run_as", tmp_path) as bridge:
        await bridge.submit(first, BuildSpec(), scan(workspace))
        with pytest.raises(PhoneBusy, match=first):
            await bridge.submit(second, BuildSpec(), scan(workspace))
        await bridge.cancel(first)
        set_conf(workspace, lines=1)
        third = new_run()
        assert (await build(bridge, third, workspace)).result.is_success


async def test_gradles_failure_is_a_result_with_its_exit_code(
    fake_box: Box, new_run: NewRun, tmp_path: Path
) -> None:
    workspace = make_workspace(tmp_path / "workspace", code=1)
    async with bridge_to(fake_box, "run_as", tmp_path) as bridge:
        result = (await build(bridge, new_run(), workspace)).result
    assert (result.state, result.exit_code, result.artifacts) == (BuildState.FAILED, 1, ())


REPORTS = """
r=app/build/reports t=app/build/test-results/testDebug
mkdir -p $r $t build/reports/problems
echo old >$r/lint-results-old.xml; touch -t 202001010000 $r/lint-results-old.xml
echo sarif >$r/lint-results-debug.sarif; echo xml >$r/lint-results-debug.xml; echo no >$r/index.html
echo one >$t/TEST-one.xml; echo two >"$t/TEST-an odd name.xml"; echo no >$t/binary
echo html >build/reports/problems/problems-report.html; ln -s /etc/passwd $t/TEST-link.xml
head -c 9000000 /dev/zero >$t/TEST-large.xml
"""


@pytest.mark.parametrize("route", ROUTES)
async def test_the_reports_of_a_build_come_back_when_it_has_failed_too(
    fake_box: Box, new_run: NewRun, tmp_path: Path, route: str
) -> None:
    workspace = make_workspace(tmp_path / "workspace", code=1, run=". ./write-reports")
    (workspace / "write-reports").write_text(REPORTS)
    run_id = new_run()
    async with bridge_to(fake_box, route, tmp_path) as bridge:
        result = (await build(bridge, run_id, workspace)).result
        assert result.state is BuildState.FAILED
        assert (result.facts["reports"], result.facts["reports_left_out"]) == ("5", "1")
        assert await bridge.reports(run_id) == {
            "app/build/reports/lint-results-debug.sarif": b"sarif\n",
            "app/build/reports/lint-results-debug.xml": b"xml\n",
            "app/build/test-results/testDebug/TEST-an odd name.xml": b"two\n",
            "app/build/test-results/testDebug/TEST-one.xml": b"one\n",
            "build/reports/problems/problems-report.html": b"html\n",
        }
        set_conf(workspace)
        without = new_run()
        result = (await build(bridge, without, workspace)).result
        assert "reports" not in result.facts
        assert await bridge.reports(without) == {}
        assert await bridge.reports(new_run()) == {}


@pytest.mark.parametrize(
    ("signal", "code", "cause"),
    [("KILL", 137, "build_killed"), ("SYS", 159, "build_bad_system_call"), ("TERM", 143, None)],
)
async def test_the_exit_codes_of_signals_are_kept_and_their_causes_named(
    fake_box: Box, new_run: NewRun, tmp_path: Path, signal: str, code: int, cause: str | None
) -> None:
    workspace = make_workspace(tmp_path / "workspace", run=f"kill -{signal} $$")
    async with bridge_to(fake_box, "run_as", tmp_path) as bridge:
        result = (await build(bridge, new_run(), workspace)).result
    assert (result.state, result.exit_code, result.cause) == (BuildState.FAILED, code, cause)


async def test_a_build_that_the_phone_killed_for_memory_is_said_to_be(
    fake_box: Box, new_run: NewRun, tmp_path: Path
) -> None:
    line = "01-02 03:04:05.678   612   612 I lowmemorykiller: Kill 'java' (77), uid 10123, oom_score_adj 200"
    workspace = make_workspace(tmp_path / "workspace", run="kill -KILL $$")
    fake_box.set_report("logcat", line + "\n")
    try:
        async with bridge_to(fake_box, "run_as", tmp_path) as bridge:
            result = (await build(bridge, new_run(), workspace)).result
    finally:
        fake_box.set_report("logcat", "")
    assert (result.exit_code, result.cause) == (137, "build_killed_lmk")


@pytest.mark.parametrize("route", ROUTES)
async def test_only_what_changed_is_sent_and_the_phone_has_exactly_the_new_content(
    fake_box: Box, new_run: NewRun, tmp_path: Path, route: str
) -> None:
    workspace = make_workspace(tmp_path / "workspace")
    odd = workspace / "app/an odd\nname -rf $(x) 'ä\".txt"
    odd.write_text("odd")
    async with bridge_to(fake_box, route, tmp_path) as bridge:
        first = (await build(bridge, new_run(), workspace)).result
        assert first.facts["upload"] == "archive"
        again = (await build(bridge, new_run(), workspace)).result
        assert (again.facts["upload"], again.facts["upload_bytes"]) == ("unchanged", "0")
        (workspace / "app/src/a.txt").unlink()
        (workspace / "app/src/a.txt").mkdir()
        (workspace / "app/src/a.txt/deep.txt").write_text("now a folder")
        (workspace / "app/src/c.txt").write_text("third\n")
        (workspace / "app/src/c.txt").chmod(0o755)
        (workspace / "app/link").symlink_to("src/c.txt")
        odd.write_text("even")
        changed = (await build(bridge, new_run(), workspace)).result
        assert changed.facts["upload"] == "changes"
        assert content_on_phone(fake_box, route, workspace, tmp_path) == scan(workspace).fingerprint
        odd.write_text("odd")
        back = (await build(bridge, new_run(), workspace)).result
        assert (back.facts["upload"], back.facts["upload_bytes"]) == ("changes", "3")
        assert content_on_phone(fake_box, route, workspace, tmp_path) == scan(workspace).fingerprint


@pytest.mark.parametrize("route", ROUTES)
async def test_contents_that_the_phone_has_kept_are_not_sent_again(
    fake_box: Box, new_run: NewRun, tmp_path: Path, route: str
) -> None:
    workspace = make_workspace(tmp_path / "workspace")
    large = [workspace / f"app/src/large{number}.txt" for number in range(3)]
    async with bridge_to(fake_box, route, tmp_path) as bridge:
        sent = []
        for letter in "aba":
            for number, path in enumerate(large):
                path.write_text(f"{letter}{number}" * 40_000)
            result = (await build(bridge, new_run(), workspace)).result
            sent.append((result.facts["upload"], int(result.facts["upload_bytes"]) > 0))
            assert content_on_phone(fake_box, route, workspace, tmp_path) == scan(workspace).fingerprint
    assert sent == [("archive", True), ("changes", True), ("changes", False)]


async def test_a_content_that_is_needed_twice_is_in_both_places(
    fake_box: Box, new_run: NewRun, tmp_path: Path
) -> None:
    workspace = make_workspace(tmp_path / "workspace")
    async with bridge_to(fake_box, "run_as", tmp_path) as bridge:
        await build(bridge, new_run(), workspace)
        for name in ("x.txt", "y.txt"):
            (workspace / "app/src" / name).write_text("the same")
        (workspace / "app/src/empty.txt").write_text("")
        await build(bridge, new_run(), workspace)
        assert content_on_phone(fake_box, "run_as", workspace, tmp_path) == scan(workspace).fingerprint


async def test_an_upload_that_was_never_started_does_not_meddle_with_a_later_plan(
    fake_box: Box, new_run: NewRun, tmp_path: Path
) -> None:
    workspace = make_workspace(tmp_path / "workspace")
    run_id, leftover = new_run(), b"PK no archive at all"
    async with bridge_to(fake_box, "shell_dir", tmp_path) as bridge:
        await build(bridge, new_run(), workspace)
        (workspace / "app/src/a.txt").write_text("changed\n")
        snapshot = scan(workspace)
        async with connect(fake_box.serial) as adb:
            route = ShellDirRoute(adb)
            await route.call("open", run_id, snapshot.place, request_digest(BuildSpec(), snapshot))
            words = ("recv", run_id, str(len(leftover)), hashlib.sha256(leftover).hexdigest(), "0")
            assert b'"complete":true' in await route.call(*words, stdin=leftover)
        assert (await build(bridge, run_id, workspace)).result.facts["upload"] == "changes"
    assert not (files_of(fake_box, "shell_dir") / "pocketbuild/runs" / run_id / "pack").exists()


async def test_a_workspace_that_vanished_from_the_phone_is_sent_again(
    fake_box: Box, new_run: NewRun, tmp_path: Path
) -> None:
    workspace = make_workspace(tmp_path / "workspace")
    async with bridge_to(fake_box, "run_as", tmp_path) as bridge:
        await build(bridge, new_run(), workspace)
        shutil.rmtree(files_of(fake_box, "run_as") / "pocketbuild/trees" / scan(workspace).place)
        assert (await build(bridge, new_run(), workspace)).result.facts["upload"] == "archive"


async def test_the_prefixs_own_options_come_behind_ours_and_only_beside_a_daemon(
    fake_box: Box, new_run: NewRun, tmp_path: Path
) -> None:
    workspace = make_workspace(tmp_path / "workspace", run="echo Options: $GRADLE_OPTS")
    environment = files_of(fake_box, "shell_dir") / "usr/etc/env.sh"
    before = environment.read_text()
    environment.write_text(before + "export JAVA_OPTS=-Xtheirs GRADLE_OPTS=-Xtheirs-too\n")
    try:
        for has_daemon in (False, True):
            async with (
                connect(fake_box.serial) as adb,
                open_bridge(adb, ("shell_dir",), has_daemon=has_daemon, memory=tmp_path) as bridge,
            ):
                log = (await build(bridge, new_run(), workspace)).log.decode()
            options = log.partition("Options: ")[2].partition("\n")[0]
            if has_daemon:
                assert options.endswith("-XX:TieredStopAtLevel=1 -Xtheirs -Xtheirs-too")
            else:
                assert options == "-Xtheirs-too"
    finally:
        environment.write_text(before)


@pytest.mark.parametrize("route", ROUTES)
async def test_project_files_that_a_build_deleted_are_put_back(
    fake_box: Box, new_run: NewRun, tmp_path: Path, route: str
) -> None:
    spoil = "rm -r app/src app/link; mkdir -p app/src/made; ls >app/src/b.txt"
    workspace = make_workspace(tmp_path / "workspace", run=f"[ -f spoiled ] || {{ touch spoiled; {spoil}; }}")
    (workspace / "app/src/deep/er").mkdir(parents=True)
    (workspace / "app/src/deep/er/c.txt").write_text("third")
    (workspace / "app/link").symlink_to("build.gradle")
    async with bridge_to(fake_box, route, tmp_path) as bridge:
        first = (await build(bridge, new_run(), workspace)).result
        tree = files_of(fake_box, route) / "pocketbuild/trees" / scan(workspace).place
        assert not (tree / "app/src/deep").exists()
        second = (await build(bridge, new_run(), workspace)).result
        assert (first.facts["upload"], second.facts["upload"]) == ("archive", "changes")
        for path in ("app/src/a.txt", "app/src/b.txt", "app/src/deep/er/c.txt", "app/link"):
            assert (tree / path).read_bytes() == (workspace / path).read_bytes()
        assert (tree / "app/link").is_symlink()
        third = (await build(bridge, new_run(), workspace)).result
        assert third.facts["upload"] == "unchanged"


async def test_project_files_that_a_build_wrote_to_are_put_back(
    fake_box: Box, new_run: NewRun, tmp_path: Path
) -> None:
    workspace = make_workspace(tmp_path / "workspace", run="echo spoiled >app/src/a.txt")
    async with bridge_to(fake_box, "run_as", tmp_path) as bridge:
        await build(bridge, new_run(), workspace)
        set_conf(workspace)
        run_id = new_run()
        result = (await build(bridge, run_id, workspace)).result
        fetched = await bridge.fetch(run_id, result.artifacts[0], tmp_path / "a.apk")
    assert fetched.read_bytes() == b"first\nsecond\n"


async def test_a_clean_build_has_nothing_of_the_last_one(
    fake_box: Box, new_run: NewRun, tmp_path: Path
) -> None:
    workspace = make_workspace(
        tmp_path / "workspace", run="ls app/build 2>/dev/null; mkdir -p app/build/left"
    )
    async with bridge_to(fake_box, "run_as", tmp_path) as bridge:
        await build(bridge, new_run(), workspace)
        assert b"left" in (await build(bridge, new_run(), workspace)).log
        assert b"left" not in (await build(bridge, new_run(), workspace, BuildSpec(clean=True))).log


async def test_a_host_that_has_forgotten_sends_everything_again(
    fake_box: Box, new_run: NewRun, tmp_path: Path
) -> None:
    workspace = make_workspace(tmp_path / "workspace")
    async with bridge_to(fake_box, "run_as", tmp_path / "one") as bridge:
        await build(bridge, new_run(), workspace)
    (workspace / "app/src/a.txt").write_text("other\n")
    async with bridge_to(fake_box, "run_as", tmp_path / "two") as bridge:
        assert (await build(bridge, new_run(), workspace)).result.facts["upload"] == "archive"


async def test_cancel_ends_gradle_and_what_it_started(fake_box: Box, new_run: NewRun, tmp_path: Path) -> None:
    workspace = make_workspace(
        tmp_path / "workspace", lines=1, run="trap : TERM; sleep 600 & sleep 600; sleep 600"
    )
    run_id = new_run()
    async with bridge_to(fake_box, "run_as", tmp_path) as bridge:
        identity = await bridge.submit(run_id, BuildSpec(), scan(workspace))
        assert isinstance(identity, RunIdentity)
        async with aclosing(bridge.follow(run_id)) as events:
            async for event in events:
                if isinstance(event, LogChunk):
                    break
        status = await bridge.cancel(run_id, "deadline")
        assert status.state is BuildState.CANCELLED
        result = await bridge.result(run_id)
        assert (result.state, result.cause) == (BuildState.CANCELLED, "deadline")
        assert (await bridge.cancel(run_id)).state is BuildState.CANCELLED
    await anyio.to_thread.run_sync(await_none, living_processes, fake_box, run_id)


@pytest.mark.parametrize("route", ROUTES)
async def test_a_follower_that_goes_away_leaves_no_process_on_the_phone(
    fake_box: Box, new_run: NewRun, tmp_path: Path, route: str
) -> None:
    workspace = make_workspace(tmp_path / "workspace", lines=1, run="sleep 600")
    run_id = new_run()
    async with bridge_to(fake_box, route, tmp_path) as bridge:
        await bridge.submit(run_id, BuildSpec(), scan(workspace))
        async with aclosing(bridge.follow(run_id)) as events:
            async for event in events:
                if isinstance(event, LogChunk):
                    break
        await anyio.to_thread.run_sync(await_none, readers_about, fake_box, run_id)
        await bridge.cancel(run_id)


def await_none(find: Callable[[Box, str], list[str]], box: Box, run_id: str) -> None:
    """Wait until no such process is left, or fail after a minute: who was killed is there for moments."""
    until = time.monotonic() + 60
    while left := find(box, run_id):
        assert time.monotonic() < until, left
        time.sleep(0.05)


def readers_about(box: Box, run_id: str) -> list[str]:
    """Give the processes of the box that read the run's log."""
    return [" ".join(words) for words in processes_about(box, run_id) if "log" in words]


def processes_about(box: Box, run_id: str) -> list[list[str]]:
    """Give the words of each process of the box in whose command line the run stands."""
    found = []
    for path in (box.root / "proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            words = path.read_bytes().decode().split("\0")
            if any(run_id in word for word in words):
                found.append(words)
    return found


def living_processes(box: Box, run_id: str) -> list[str]:
    found = []
    for path in (box.root / "proc").glob("[0-9]*/environ"):
        try:
            if f"POCKETBUILD_RUN=:{run_id}:".encode() in path.read_bytes():
                found.append((path.parent / "cmdline").read_bytes().decode())
        except OSError:
            continue
    return found


async def test_the_phone_ends_a_run_at_its_deadline_without_its_host(
    fake_box: Box, new_run: NewRun, tmp_path: Path
) -> None:
    workspace = make_workspace(tmp_path / "workspace", lines=1, run="sleep 600")
    async with bridge_to(fake_box, "run_as", tmp_path) as bridge:
        result = (await build(bridge, new_run(), workspace, BuildSpec(deadline_s=1))).result
    assert (result.state, result.cause) == (BuildState.CANCELLED, "deadline")


async def test_a_follower_may_come_late_leave_and_come_back(
    fake_box: Box, new_run: NewRun, tmp_path: Path
) -> None:
    workspace = make_workspace(tmp_path / "workspace", lines=30_000, block=1000)
    run_id = new_run()
    async with bridge_to(fake_box, "run_as", tmp_path) as bridge:
        whole = (await build(bridge, run_id, workspace)).log
        parts = b""
        for size in (1, 1000, 100_000, len(whole)):
            async with aclosing(bridge.follow(run_id, len(parts))) as events:
                async for event in events:
                    if isinstance(event, LogChunk):
                        parts += event.data[: max(0, size - len(parts))]
                        if len(parts) >= size:
                            break
        assert parts == whole


async def test_project_folders_and_arguments_arrive_as_they_are(
    fake_box: Box, new_run: NewRun, tmp_path: Path
) -> None:
    make_workspace(tmp_path / "workspace/mobile app", run="pwd")
    spec = BuildSpec(
        tasks=("a:b",), args=("-Pkey=a b'c\"$(touch x)`y`", "-Dempty="), project_dir="mobile app"
    )
    async with bridge_to(fake_box, "run_as", tmp_path) as bridge:
        log = (await build(bridge, new_run(), tmp_path / "workspace", spec)).log.decode()
    assert "-Pkey=a b'c\"$(touch x)`y` -Dempty= a:b\n" in log
    assert "/mobile app\n" in log


async def test_unknown_runs_are_named_as_such(fake_box: Box, new_run: NewRun, tmp_path: Path) -> None:
    run_id = new_run()
    async with bridge_to(fake_box, "run_as", tmp_path) as bridge:
        for question in (bridge.status(run_id), bridge.cancel(run_id), bridge.result(run_id)):
            with pytest.raises(UnknownRun):
                await question
        with pytest.raises(UnknownRun):
            async for _ in bridge.follow(run_id):
                pass


async def test_a_damaged_part_of_a_fetch_is_thrown_away_and_fetched_anew(
    fake_box: Box, new_run: NewRun, tmp_path: Path
) -> None:
    workspace = make_workspace(tmp_path / "workspace")
    run_id = new_run()
    async with bridge_to(fake_box, "run_as", tmp_path) as bridge:
        (artifact,) = (await build(bridge, run_id, workspace)).result.artifacts
        part = anyio.Path(tmp_path / f"app.apk.{artifact.sha256[:12]}.part")
        for left_over in (b"first", b"wrong"):
            await part.write_bytes(left_over)
            fetched = await bridge.fetch(run_id, artifact, tmp_path / "app.apk")
            assert fetched.read_bytes() == b"first\nsecond\n"
        with pytest.raises(TransferFault, match="SHA-256"):
            await bridge.fetch(run_id, replace(artifact, sha256="0" * 64), tmp_path / "other.apk")
    assert not {name for name in names_in(tmp_path) if name.endswith(".part")}
    assert "other.apk" not in names_in(tmp_path)


async def test_a_phone_without_a_prefix_says_why_each_route_fails(box_factory: Callable[..., Box]) -> None:
    box = box_factory()
    async with connect(box.serial) as adb:
        with pytest.raises(RouteUnavailable, match=r"run_as: not_debuggable.*"):
            async with open_bridge(adb, ("run_as",), "org.pocketbuild.release"):
                pass
        with pytest.raises(RouteUnavailable, match=r"unknown_package.*shell_dir: no builder prefix"):
            async with open_bridge(adb, ("run_as", "shell_dir"), "org.nobody.there"):
                pass
    assert not (files_of(box, "shell_dir") / "usr").exists()


async def test_runs_are_listed_and_cleaned_up(fake_box: Box, new_run: NewRun, tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path / "workspace")
    async with bridge_to(fake_box, "shell_dir", tmp_path) as bridge:
        ids = [new_run() for _ in range(3)]
        for run_id in ids:
            await build(bridge, run_id, workspace)
        assert {status.run_id for status in await bridge.runs()} >= set(ids)
        await bridge.gc(1)
        assert {status.run_id for status in await bridge.runs()} & set(ids) == {ids[-1]}
        await bridge.gc(0)
        assert not {status.run_id for status in await bridge.runs()} & set(ids)
        assert (await build(bridge, new_run(), workspace)).result.facts["upload"] == "archive"


async def test_files_of_runs_belong_to_the_builder_alone(
    fake_box: Box, new_run: NewRun, tmp_path: Path
) -> None:
    workspace, run_id = make_workspace(tmp_path / "workspace"), new_run()
    async with bridge_to(fake_box, "run_as", tmp_path) as bridge:
        await build(bridge, run_id, workspace)
    runs = files_of(fake_box, "run_as") / "pocketbuild/runs"
    made = [runs, *(runs / run_id).rglob("*")]
    assert len(made) > 5
    assert [path for path in made if path.stat().st_mode & 0o077] == []
