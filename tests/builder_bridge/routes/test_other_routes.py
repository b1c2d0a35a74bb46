"""Routes `termux` and `su` against stand-ins that answer as the real ones do."""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import anyio
import pytest

from builder_bridge.adb import connect
from builder_bridge.box import Box
from builder_bridge.box.recipe import BUILDER_PACKAGE
from builder_bridge.bridge import open_bridge
from builder_bridge.build import BuildResult, BuildSpec, LogChunk, RunId
from builder_bridge.errors import RouteUnavailable
from builder_bridge.workspace.scan import scan
from tests.fake_prefix import lay_prefix, make_workspace

pytestmark = [pytest.mark.box, pytest.mark.anyio]
SU = Path(__file__).parent.parent.parent / "cases/bridge/su.c"
TERMUX_UID = 10_150
NewRun = Callable[[], RunId]


async def build(box: Box, routes: tuple[str, ...], run_id: RunId, folder: Path) -> BuildResult:
    """Build twice by a route, whole and changed; check log and artifact, and give the second result."""
    workspace = make_workspace(folder / "workspace", lines=3)
    async with connect(box.serial) as adb, open_bridge(adb, routes, memory=folder / "memory") as bridge:
        for text in ("first\n", "changed\n"):
            (workspace / "app/src/a.txt").write_text(text)
            run, log = RunId(f"{run_id}-{len(text)}"), b""
            await bridge.submit(run, BuildSpec(), await anyio.to_thread.run_sync(scan, workspace))
            async for event in bridge.follow(run):
                if isinstance(event, LogChunk):
                    log += event.data
            result = await bridge.result(run)
            assert result.is_success, result
            assert hashlib.sha256(log).hexdigest() == result.log_sha256
            fetched = await bridge.fetch(run, result.artifacts[0], folder / f"{len(text)}.apk")
            assert fetched.read_text() == f"{text}second\n"
    return result


async def refusal(box: Box, routes: tuple[str, ...]) -> RouteUnavailable:
    async with connect(box.serial) as adb:
        with pytest.raises(RouteUnavailable) as caught:
            async with open_bridge(adb, routes):
                pass
    return caught.value


@pytest.fixture
def install_termux(fake_box: Box) -> Iterator[Callable[[bool], None]]:
    """Install Termux as an app that can be debugged, or not."""
    packages = fake_box.root / "data/system/packages.list"
    before, folder = packages.read_text(), fake_box.root / "data/data/com.termux"

    def install(can_be_debugged: bool) -> None:
        line = f"com.termux {TERMUX_UID} {int(can_be_debugged)} /data/user/0/com.termux default 3003 0 1\n"
        packages.write_text(before + line)
        folder.mkdir(mode=0o700)
        os.chown(folder, TERMUX_UID, TERMUX_UID)
        lay_prefix(folder / "files", TERMUX_UID)

    yield install
    packages.write_text(before)
    shutil.rmtree(folder, ignore_errors=True)


async def test_termuxs_debug_build_builds_as_its_own_user(
    fake_box: Box, install_termux: Callable[[bool], None], new_run: NewRun, tmp_path: Path
) -> None:
    install_termux(True)
    result = await build(fake_box, ("termux",), new_run(), tmp_path)
    assert (result.facts["route"], result.facts["uid"]) == ("termux", str(TERMUX_UID))
    runs = fake_box.root / "data/data/com.termux/files/pocketbuild/runs"
    assert {path.stat().st_uid for path in runs.rglob("*")} == {TERMUX_UID}


async def test_a_phone_without_termuxs_debug_build_says_which_is_missing(
    fake_box: Box, install_termux: Callable[[bool], None]
) -> None:
    assert "termux: unknown_package: com.termux" in str(await refusal(fake_box, ("termux",)))
    install_termux(False)
    fault = await refusal(fake_box, ("termux",))
    assert "termux: not_debuggable: com.termux" in str(fault)
    assert "debug build" in str(fault.hint)


async def test_routes_are_probed_in_order_and_each_refusal_is_told(
    fake_box: Box, install_termux: Callable[[bool], None], new_run: NewRun, tmp_path: Path
) -> None:
    told = str(await refusal(fake_box, ("termux", "provider", "su")))
    places = [told.index(f"Route {name}: ") for name in ("termux", "provider", "su")]
    assert places == sorted(places)
    install_termux(True)
    result = await build(fake_box, ("provider", "su", "termux", "shell_dir"), new_run(), tmp_path)
    assert result.facts["route"] == "termux"


@pytest.fixture
def install_su(fake_box: Box, tmp_path: Path) -> Iterator[Callable[[str], None]]:
    """Root the phone with an su of a kind."""
    program, kind_file = fake_box.root / "system/bin/su", fake_box.root / "data/local/tmp/su.kind"
    made = tmp_path / "su"
    subprocess.run(["cc", "-O1", "-static", "-o", made, SU], check=True)

    def install(kind: str) -> None:
        kind_file.write_text(f"{kind}\n")
        shutil.copyfile(made, program)
        program.chmod(0o4755)

    yield install
    program.unlink(missing_ok=True)
    kind_file.unlink(missing_ok=True)


@pytest.mark.parametrize("kind", ["magisk", "kernelsu"])
async def test_a_rooted_phone_builds_as_root_however_its_su_takes_words(
    fake_box: Box, install_su: Callable[[str], None], new_run: NewRun, tmp_path: Path, kind: str
) -> None:
    install_su(kind)
    version = fake_box.root / f"data/data/{BUILDER_PACKAGE}/files/usr/share/pocketbuild/version"
    version.unlink(missing_ok=True)  # so that the runner has to be installed by this route
    runs = fake_box.root / f"data/data/{BUILDER_PACKAGE}/files/pocketbuild"
    try:
        result = await build(fake_box, ("su",), new_run(), tmp_path)
        assert (result.facts["route"], result.facts["uid"]) == ("su", "0")
    finally:
        shutil.rmtree(runs, ignore_errors=True)  # what root has made there is in run-as' way
        lay_prefix(runs.parent, runs.parent.stat().st_uid)


@pytest.mark.parametrize(
    ("kind", "reason", "hint"),
    [
        (None, "no_su", "com.android.shell"),
        ("denied", "denied", "root manager"),
        ("silent", "did not answer within 3 s", "Allow shell"),
        ("terminal", "puts a terminal between", "Take another route"),
        ("android", "no_command_option", "run_as"),
    ],
)
async def test_each_way_in_which_su_does_not_work_is_named(
    fake_box: Box, install_su: Callable[[str], None], kind: str | None, reason: str, hint: str
) -> None:
    if kind is not None:
        install_su(kind)
    fault = await refusal(fake_box, ("su",))
    assert reason in str(fault)
    assert hint in str(fault.hint)
