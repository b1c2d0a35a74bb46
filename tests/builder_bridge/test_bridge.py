"""The whole hand-off against a real adbd, over both routes, with a script where Gradle would be."""

import hashlib
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from builder_bridge.adb import connect
from builder_bridge.box import Box
from builder_bridge.bridge import open_bridge
from builder_bridge.build import (
    BuildSpec,
    BuildState,
    LogChunk,
    RunIdentity,
)
from builder_bridge.errors import PhoneBusy, RouteUnavailable, RunConflict, TransferFault, UnknownRun
from builder_bridge.workspace.scan import scan
from tests.builder_bridge.bridges import (
    ROUTES,
    NewRun,
    bridge_to,
    build,
    content_on_phone,
    held_workspace,
    names_in,
)
from tests.fake_prefix import files_of, make_workspace, set_conf, starts_of

pytestmark = [pytest.mark.box, pytest.mark.anyio]


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
