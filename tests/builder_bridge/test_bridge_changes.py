"""After the first hand-off only what changed goes over, and the phone has exactly the new content."""

import hashlib
import shutil
from pathlib import Path

import pytest

from builder_bridge.adb import connect
from builder_bridge.box import Box
from builder_bridge.build import (
    BuildSpec,
)
from builder_bridge.plan import request_digest
from builder_bridge.routes.shell_dir import ShellDirRoute
from builder_bridge.workspace.scan import scan
from tests.builder_bridge.bridges import ROUTES, NewRun, bridge_to, build, content_on_phone
from tests.fake_prefix import files_of, make_workspace, set_conf

pytestmark = [pytest.mark.box, pytest.mark.anyio]


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
