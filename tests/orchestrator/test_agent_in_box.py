"""The agent over the service, a real adbd and the real runner, with a script where Gradle would be."""

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from agent.budget import Budget
from agent.decide import StopReason
from agent.equipment import RunResult
from agent.runner import run
from agent.scripted import Call, Conversation, Expected, Turn
from agent.scripted.conversation import ExpectedResult
from agent.tools.git import Author
from builder_bridge.box import Box
from orchestrator.builder import ServiceBuilder
from orchestrator.client import open_client
from tests.agent.kill_points import check_ends, points_of
from tests.fake_prefix import lay_fake_prefix, make_workspace, starts_of
from tests.fakes_provider import equipped
from tests.orchestrator.processes import kill, start_service

pytestmark = [pytest.mark.box, pytest.mark.slow, pytest.mark.anyio]
ROUTE = "shell_dir"
SOURCE = "app/src/A.kt"
RUN = (
    f"if grep -q BROKEN {SOURCE}; then "
    f'echo "e: file://$PWD/{SOURCE}:1:9 Unresolved reference: BROKEN"; code=1; fi'
)
BUILD = Call(tool="build_gradle_project", arguments={"tasks": ["assembleDebug"]})
POINTS = 3


@pytest.fixture(scope="module")
def service(tiny_box: Box, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[str]:
    folder = tmp_path_factory.getbasetemp()
    lay_fake_prefix(tiny_box)
    process, url = start_service(
        tmp_path_factory.mktemp("service"),
        None,
        phones=[{"address": tiny_box.serial, "route": ROUTE}],
        workspace_roots=[str(folder)],
        dispatch_poll_s=0.1,
    )
    yield url
    kill(process)


def git(workspace: Path, *arguments: str) -> str:
    command = ["git", "-C", str(workspace), "-c", "user.name=t", "-c", "user.email=t@t.invalid", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def make_repository(folder: Path, text: str) -> Path:
    """Make a project that does not build, in a repository whose hooks leave a trace."""
    workspace = make_workspace(folder / f"w-{text}", lines=3, run=RUN)
    (workspace / SOURCE).write_text(f"val x = BROKEN // {text}\n")
    git(workspace, "init", "--quiet")
    git(workspace, "add", "--all")
    git(workspace, "commit", "--quiet", "--message=start")
    for name in ("pre-commit", "commit-msg", "post-commit", "prepare-commit-msg"):
        hook = workspace / ".git/hooks" / name
        hook.write_text(f"#!/bin/sh\ntouch {folder}/hook-ran\n")
        hook.chmod(0o755)
    return workspace


def told(tool: str, *contains: str) -> Expected:
    return Expected(results=(ExpectedResult(tool=tool, contains=contains),))


async def work(url: str, folder: Path, workspace: Path, budget: Budget, *turns: Turn) -> RunResult:
    conversation = Conversation(title="box", turns=turns)
    async with equipped(conversation, folder) as (equipment, server), open_client(url) as client:
        author = Author("Pocketbuild", "agent@example.invalid")
        equipment = replace(equipment, builder=ServiceBuilder(client), author=author)
        result = await run("make it build and commit", workspace, equipment, run_id="r1", budget=budget)
    assert server.mismatches == []
    return result


async def test_a_broken_project_becomes_green_and_is_committed(
    service: str, tiny_box: Box, tmp_path: Path
) -> None:
    workspace = make_repository(tmp_path, "one")
    mend = Call(tool="edit_file", arguments={"path": SOURCE, "old": "BROKEN", "new": "42"})
    commit = Call(tool="git_commit", arguments={"message": "Mend the source"})
    before = len(starts_of(tiny_box, ROUTE))
    result = await work(
        service,
        tmp_path,
        workspace,
        Budget(),
        Turn(calls=(BUILD,)),
        Turn(expects=told(BUILD.tool, "Unresolved reference"), calls=(BUILD,)),
        Turn(expects=told(BUILD.tool, "this very state was built before"), calls=(mend,)),
        Turn(expects=told("edit_file"), calls=(BUILD,)),
        Turn(expects=told(BUILD.tool, "app-debug.apk", "2 of 30 builds"), calls=(commit,)),
        Turn(expects=told("git_commit"), text="It is mended."),
    )
    assert (result.reason, result.spent.builds) == (StopReason.GREEN, 2)
    assert len(starts_of(tiny_box, ROUTE)) - before == 2
    who = "%an <%ae> %cn <%ce> %s"
    agent = "Pocketbuild <agent@example.invalid>"
    assert git(workspace, "log", "-1", f"--format={who}") == f"{agent} {agent} Mend the source"
    assert git(workspace, "show", f"HEAD:{SOURCE}") == "val x = 42 // one"
    assert git(workspace, "status", "--porcelain") == ""
    assert not (tmp_path / "hook-ran").exists()


async def test_a_spent_budget_of_phone_time_ends_in_words(service: str, tmp_path: Path) -> None:
    workspace = make_repository(tmp_path, "two")
    result = await work(
        service,
        tmp_path,
        workspace,
        Budget(phone_s=0.001),
        Turn(calls=(BUILD,)),
        Turn(
            expects=told(BUILD.tool, "Unresolved reference", "of 0.001 s of phone time"),
            calls=(Call(tool="write_file", arguments={"path": "notes.txt", "content": "x"}),),
        ),
        Turn(expects=told("write_file"), calls=(BUILD,)),
        Turn(expects=told(BUILD.tool, "not built: ", "0.001 s of phone time are spent"), text="I give up."),
    )
    assert result.reason is StopReason.NOT_GREEN
    assert "0.001 s of phone time are spent" in result.detail


def stuck_script(turns: int) -> str:
    """Give a script that changes something else before each build."""
    write = '{{ tool = "write_file", arguments = {{ path = "notes-{0}.txt", content = "{0}" }} }}'
    build = '{ tool = "build_gradle_project", arguments = { tasks = ["assembleDebug"] } }'
    calls = "".join(f"[[turn]]\ncalls = [{write.format(n)}, {build}]\n" for n in range(turns))
    return f'schema = 1\ntitle = "stuck"\n{calls}'


def pocketbuild(data: Path, url: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "POCKETBUILD_DATA_DIR": str(data), "POCKETBUILD_SERVICE_URL": url}
    command = [sys.executable, "-m", "orchestrator", "agent", *arguments]
    return subprocess.run(command, env=environment, text=True, capture_output=True, timeout=300)


def test_builds_that_fail_alike_again_and_again_stop_the_run_with_the_reason(
    service: str, tiny_box: Box, tmp_path: Path
) -> None:
    workspace = make_repository(tmp_path, "three")
    script = tmp_path / "script.toml"
    script.write_text(stuck_script(turns=6))
    data = tmp_path / "data"
    before = len(starts_of(tiny_box, ROUTE))
    done = pocketbuild(data, service, "mend it", "--workspace", str(workspace), "--script", str(script))
    assert done.returncode == 1, done.stdout + done.stderr
    why = "5 builds in a row failed for the same causes"
    assert f"no_progress: {why}" in done.stdout
    assert len(starts_of(tiny_box, ROUTE)) - before == 5
    [run_id] = [path.name for path in (data / "agents").iterdir()]
    shown = pocketbuild(data, service, "show", run_id)
    assert shown.returncode == 0
    assert f"── stopped: no_progress\n{why}\n5 turns" in shown.stdout
    assert "[3 builds in a row failed for the same causes, so the changes" in shown.stdout
    last = json.loads(pocketbuild(data, service, "show", "--json", run_id).stdout.splitlines()[-1])
    assert (last["entry"], last["reason"], last["spent"]["builds"]) == ("stopped", "no_progress", 5)


def test_a_killed_run_goes_on_with_builds_on_the_device(service: str, tiny_box: Box, tmp_path: Path) -> None:
    before = starts_of(tiny_box, ROUTE)
    points = points_of(tmp_path, POINTS, service)
    check_ends(points)
    starts = starts_of(tiny_box, ROUTE)[len(before) :]
    assert len(starts) == len(set(starts)) == 2 * POINTS
