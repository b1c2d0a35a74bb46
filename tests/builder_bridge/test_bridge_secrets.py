"""Secrets on the phone: given to one build, seen by nobody else, gone when it has ended, however it did."""

import os
import secrets as randomness
import stat
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
import pytest

from builder_bridge.adb import connect
from builder_bridge.box import Box
from builder_bridge.bridge import Bridge, open_bridge
from builder_bridge.build import BuildResult, BuildSpec, BuildState, LogChunk, RunId
from builder_bridge.errors import PhoneBusy, RunConflict
from builder_bridge.secret import Secret, Secrets
from builder_bridge.workspace.scan import scan
from tests.fake_prefix import files_of, make_workspace
from tests.walking import files_below

pytestmark = [pytest.mark.box, pytest.mark.anyio]
ROUTES = ("run_as", "shell_dir")
NewRun = Callable[[], RunId]
FIND = "for each; do case $each in -Dpocketbuild.secrets=*) held=${each#*=} ;; esac; done\n"
SPREAD = """
echo "the password is $(cat $held/values-json)" # said
mkdir -p app/build/reports app/build/made "$HOME/.gradle/caches" app/build/outputs/apk/debug
cp $held/values-json app/build/made/copied; cp $held/store app/build/made/other-name
cp $held/values-json "$HOME/.gradle/caches/copied"; cp $held/values-json "$TMPDIR/copied"
cp $held/values-json app/src/copied
cp $held/values-json app/build/reports/lint-results-debug.xml
printf '{"cause":%s}\\n' "$(cat $held/values-json)" >"${held%/secrets}/events.ndjson"
"""
HOLD = ': >"$HOME/at-work"; while [ -f "$HOME/at-work" ]; do sleep 0.1; done\n'


class Given:
    """Secrets that no other test has, and where they must not be."""

    def __init__(self) -> None:
        self.password = f"pass-{randomness.token_hex(12)}"
        self.store = b"\xfe\xed\0\n" + self.password[::-1].encode() + b"\0"
        entries = (Secret("password", self.password.encode()), Secret("store", self.store, is_file=True))
        self.secrets = Secrets(entries, f"seal of {self.password[:8]}")

    def found_below(self, folder: Path) -> list[str]:
        """Give the files that hold one of them."""
        return [
            str(path.relative_to(folder))
            for path in files_below(folder)
            if path.is_file() and not path.is_symlink() and self.is_in(path)
        ]

    def is_in(self, path: Path) -> bool:
        """Whether a file holds one of them."""
        with suppress(OSError):
            content = path.read_bytes()
            return self.password.encode() in content or self.password[::-1].encode() in content
        return False

    def processes(self) -> list[str]:
        """Give what all processes of this machine show of them."""
        shown = [path for name in ("cmdline", "environ") for path in Path("/proc").glob(f"[0-9]*/{name}")]
        return [str(path) for path in shown if self.is_in(path)]


@asynccontextmanager
async def bridge_to(box: Box, route: str, memory: Path) -> AsyncIterator[Bridge]:
    async with connect(box.serial) as adb, open_bridge(adb, (route,), memory=memory) as bridge:
        yield bridge


def project(folder: Path, script: str, **conf: object) -> Path:
    workspace = make_workspace(folder, lines=1, run=". ./act.sh", **conf)
    (workspace / "act.sh").write_text(FIND + script)
    return workspace


async def built(bridge: Bridge, run_id: RunId, workspace: Path, given: Given) -> tuple[BuildResult, bytes]:
    log = b""
    await bridge.submit(run_id, BuildSpec(), scan(workspace), given.secrets)
    async for event in bridge.follow(run_id):
        if isinstance(event, LogChunk):
            log += event.data
    return await bridge.result(run_id), log


async def begun(bridge: Bridge, box: Box, route: str, run_id: RunId, workspace: Path, given: Given) -> None:
    """Start a build that holds still once it has its secrets."""
    at_work = files_of(box, route) / "home/at-work"
    at_work.unlink(missing_ok=True)
    await bridge.submit(run_id, BuildSpec(), scan(workspace), given.secrets)
    await until(at_work.exists)


async def until(condition: Callable[[], object]) -> None:
    with anyio.fail_after(300):
        while not condition():  # noqa: ASYNC110 - what changes is a folder of the box
            await anyio.sleep(0.05)


def run_folder(box: Box, route: str, run_id: RunId) -> Path:
    return files_of(box, route) / "pocketbuild/runs" / run_id


@pytest.mark.parametrize("route", ROUTES)
async def test_a_build_has_its_secrets_and_nothing_of_them_is_left_anywhere(
    fake_box: Box, new_run: NewRun, tmp_path: Path, route: str
) -> None:
    given, run_id = Given(), new_run()
    workspace = project(tmp_path / "workspace", SPREAD)
    async with bridge_to(fake_box, route, tmp_path) as bridge:
        result, log = await built(bridge, run_id, workspace, given)
        assert result.is_success, log
        assert (result.facts["secrets"], result.facts["daemon"]) == ("password, store", "none")
        assert b'the password is {"values": {"password": "***"}, "files": ["store"]}' in log
        assert given.password.encode() not in log
        assert (
            await bridge.events(run_id) == b'{"cause":{"values": {"password": "***"}, "files": ["store"]}}\n'
        )
        (report,) = (await bridge.reports(run_id)).values()
        assert report == b'{"values": {"password": "***"}, "files": ["store"]}'
        assert given.found_below(files_of(fake_box, route)) == []
        again = await built(bridge, new_run(), workspace, given)
        assert again[0].is_success
        assert given.found_below(files_of(fake_box, route)) == []


@pytest.mark.parametrize("route", ROUTES)
async def test_while_a_build_works_its_secrets_are_in_files_of_its_own_user_and_in_no_process(
    fake_box: Box, new_run: NewRun, tmp_path: Path, route: str
) -> None:
    given, run_id = Given(), new_run()
    files = files_of(fake_box, route)
    async with bridge_to(fake_box, route, tmp_path) as bridge:
        await begun(bridge, fake_box, route, run_id, project(tmp_path / "workspace", HOLD), given)
        folder = run_folder(fake_box, route, run_id) / "secrets"
        assert given.processes() == []
        assert {Path(path).parent for path in given.found_below(files)} == {folder.relative_to(files)}
        assert (folder / "store").read_bytes() == given.store
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
        (files / "home/at-work").unlink()
        assert (await bridge.result(run_id)).is_success
    assert given.found_below(files) == []


async def test_a_failed_a_cancelled_and_a_timed_out_build_leave_nothing(
    fake_box: Box, new_run: NewRun, tmp_path: Path
) -> None:
    given, files = Given(), files_of(fake_box, "run_as")
    async with bridge_to(fake_box, "run_as", tmp_path) as bridge:
        failed, log = await built(bridge, new_run(), project(tmp_path / "failed", SPREAD, code=3), given)
        assert (failed.state, failed.exit_code) == (BuildState.FAILED, 3), log
        assert given.found_below(files) == []
        run_id = new_run()
        workspace = project(tmp_path / "cancelled", SPREAD + "trap : TERM\n" + HOLD)
        await begun(bridge, fake_box, "run_as", run_id, workspace, given)
        (files / "home/at-work").unlink()
        assert (await bridge.cancel(run_id)).state.is_final
        assert given.found_below(files) == []


@pytest.mark.parametrize("who_looks", ["status", "gc", "the next build", "nobody"])
async def test_after_a_kill_the_next_look_removes_all_of_it(
    fake_box: Box, new_run: NewRun, tmp_path: Path, who_looks: str
) -> None:
    given, run_id, files = Given(), new_run(), files_of(fake_box, "run_as")
    async with bridge_to(fake_box, "run_as", tmp_path) as bridge:
        await begun(bridge, fake_box, "run_as", run_id, project(tmp_path / "workspace", SPREAD + HOLD), given)
        assert given.found_below(files)
        worker = int((run_folder(fake_box, "run_as", run_id) / "identity").read_text().split()[0])
        leave_beat = who_looks == "nobody"
        kill_in_box(fake_box, run_id, worker, leave_beat=leave_beat)
        match who_looks:
            case "status":
                assert (await bridge.status(run_id)).state is BuildState.LOST
            case "gc":
                await bridge.gc(30)
            case "the next build":
                other = make_workspace(tmp_path / "other")
                assert (await built(bridge, new_run(), other, Given()))[0].is_success
            case _:
                await until(lambda: not given.found_below(files))
        assert given.found_below(files) == []
        assert (await bridge.status(run_id)).state is BuildState.LOST


def kill_in_box(box: Box, run_id: RunId, worker: int, *, leave_beat: bool) -> None:
    """Kill the runner alone, or it and all that it has started."""
    marked = f"POCKETBUILD_RUN=:{run_id}:".encode()
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if marked not in path.read_bytes():
                continue
            inner = next(
                line for line in (path.parent / "status").read_text().splitlines() if line[:6] == "NSpid:"
            )
            if not leave_beat or inner.split()[-1] == str(worker):
                os.kill(int(path.parent.name), 9)
    deadline_s = time.monotonic() + 120
    while (box.root / f"proc/{worker}/stat").exists():
        assert time.monotonic() < deadline_s, "the runner does not die"
        time.sleep(0.02)


async def test_a_plan_that_is_not_carried_out_leaves_nothing(
    fake_box: Box, new_run: NewRun, tmp_path: Path
) -> None:
    busy, given, files = new_run(), Given(), files_of(fake_box, "run_as")
    workspace = project(tmp_path / "workspace", "")
    async with bridge_to(fake_box, "run_as", tmp_path) as bridge:
        assert (await built(bridge, new_run(), workspace, given))[0].is_success
        await begun(bridge, fake_box, "run_as", busy, project(tmp_path / "busy", HOLD), Given())
        with pytest.raises(PhoneBusy):
            await bridge.submit(new_run(), BuildSpec(), scan(workspace), given.secrets)
        assert given.found_below(files) == []
        await bridge.cancel(busy)
        # Something has changed there, so the plan of the first call cannot be carried out.
        place = files / "pocketbuild/trees" / scan(workspace).place
        (place / "app/src/a.txt").write_text("touched on the phone\n")
        result, log = await built(bridge, new_run(), workspace, given)
        assert (result.is_success, result.facts["upload"]) == (True, "changes"), log
    assert given.found_below(files) == []


async def test_one_run_with_other_secrets_is_a_conflict(
    fake_box: Box, new_run: NewRun, tmp_path: Path
) -> None:
    run_id, workspace = new_run(), project(tmp_path / "workspace", "")
    async with bridge_to(fake_box, "run_as", tmp_path) as bridge:
        first = Given()
        await built(bridge, run_id, workspace, first)
        assert await bridge.submit(run_id, BuildSpec(), scan(workspace), first.secrets) is BuildState.DONE
        for other in (Given().secrets, Secrets()):
            with pytest.raises(RunConflict):
                await bridge.submit(run_id, BuildSpec(), scan(workspace), other)


async def test_a_build_whose_filter_dies_is_no_success_with_half_a_log(
    fake_box: Box, new_run: NewRun, tmp_path: Path
) -> None:
    given, run_id, files = Given(), new_run(), files_of(fake_box, "run_as")
    async with bridge_to(fake_box, "run_as", tmp_path) as bridge:
        await begun(bridge, fake_box, "run_as", run_id, project(tmp_path / "workspace", HOLD), given)
        kill_filter(run_id)
        (files / "home/at-work").unlink()
        result = await bridge.result(run_id)
    assert (result.state, result.cause) == (BuildState.FAILED, "log_filter_died")
    assert given.found_below(files) == []


def kill_filter(run_id: RunId) -> None:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if f"runs/{run_id}/secrets/mask-sed".encode() in path.read_bytes():
                os.kill(int(path.parent.name), 9)
