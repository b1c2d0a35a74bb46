"""How a run ends: Gradle's own verdict, a signal, a cancel, a deadline; and what it leaves."""

from contextlib import aclosing
from pathlib import Path

import anyio
import pytest

from builder_bridge.box import Box
from builder_bridge.build import (
    BuildSpec,
    BuildState,
    LogChunk,
    RunIdentity,
)
from builder_bridge.workspace.scan import scan
from tests.builder_bridge.bridges import (
    ROUTES,
    NewRun,
    await_none,
    bridge_to,
    build,
    living_processes,
    readers_about,
)
from tests.fake_prefix import make_workspace, set_conf

pytestmark = [pytest.mark.box, pytest.mark.anyio]


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


async def test_the_phone_ends_a_run_at_its_deadline_without_its_host(
    fake_box: Box, new_run: NewRun, tmp_path: Path
) -> None:
    workspace = make_workspace(tmp_path / "workspace", lines=1, run="sleep 600")
    async with bridge_to(fake_box, "run_as", tmp_path) as bridge:
        result = (await build(bridge, new_run(), workspace, BuildSpec(deadline_s=1))).result
    assert (result.state, result.cause) == (BuildState.CANCELLED, "deadline")
