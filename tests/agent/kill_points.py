"""Runs an agent that is killed at a given point, again and again, until its run is done.

Started by tests in a process of its own, which forks one process for each life of the agent: the imports
are paid once, and every death is a real SIGKILL. Builds go through the service at a URL.
Prints one JSON line a point.
"""

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio

from agent.entries import Entry
from agent.http import Line
from agent.message import Dialect
from agent.progress import OnBuildProgress
from agent.providers.catalogue import choose
from agent.redact import Redactor
from agent.runner import Equipment, resume, run
from agent.scripted import Call, Conversation, Expected, ScriptedProvider, Turn
from agent.scripted.conversation import ExpectedResult
from agent.tools.build import BuildId, BuildReport, BuildSpec
from agent.transcript import FILE_NAME, Transcript
from orchestrator.builder import ServiceBuilder
from orchestrator.client import open_client
from tests.fakes_provider import FAULT, Watcher, make_workspace

ROOT = Path(__file__).parents[2]
PLAN = "plan.json"
BROKEN_PLAN, SOUND_PLAN = f'{{"exit_code": 1, "note": "{FAULT}"}}\n', '{"exit_code": 0}\n'
"""What fake phones take for a broken and for a sound project."""
FAKE_CONF = f"lines='3'\nrun='grep -q {FAULT} {PLAN} && code=1'\n"
PATCH = (
    "--- a/build.gradle\n+++ b/build.gradle\n@@ -1 +1,2 @@\n // no plugins\n+// patched\n"
    "--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+new\n"
)
BUILD = Call(tool="build_gradle_project", arguments={"variant": "debug"})


def told(*names: str) -> Expected:
    return Expected(results=tuple(ExpectedResult(tool=name, lacks=("not known",)) for name in names))


SCRIPT = Conversation(
    title="killed",
    turns=(
        Turn(calls=(BUILD, Call(tool="read_file", arguments={"path": PLAN}))),
        Turn(
            expects=told("build_gradle_project", "read_file"),
            calls=(
                Call(tool="edit_file", arguments={"path": PLAN, "old": BROKEN_PLAN, "new": SOUND_PLAN}),
                Call(tool="apply_patch", arguments={"patch": PATCH}),
                Call(tool="write_file", arguments={"path": "gone.txt", "content": "x\n"}),
            ),
        ),
        Turn(
            expects=told("edit_file", "apply_patch", "write_file"),
            calls=(Call(tool="undo_edit"), BUILD),
        ),
        Turn(
            expects=told("undo_edit", "build_gradle_project"),
            calls=(
                Call(tool="git_commit", arguments={"message": "Mend the answer"}),
                Call(tool="git_status"),
            ),
        ),
        Turn(expects=told("git_commit", "git_status"), text="Done."),
    ),
)  # fmt: skip


class Fuse:
    """Kills this process when it has been passed `length` times."""

    def __init__(self, length: int) -> None:
        self.length = length

    def pass_by(self) -> None:
        if self.length == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        self.length -= 1


class MortalTranscript(Transcript):
    """A transcript in a process that may die before and after each line."""

    fuse: Fuse

    def append(self, entry: Entry) -> None:
        self.fuse.pass_by()
        super().append(entry)
        self.fuse.pass_by()


class MortalBuilder(ServiceBuilder):
    """A builder through the service whose client may die around each hand-over and each answer."""

    fuse: Fuse

    async def submit(self, workspace: Path, spec: BuildSpec) -> BuildId:
        self.fuse.pass_by()
        build_id = await super().submit(workspace, spec)
        self.fuse.pass_by()
        return build_id

    async def wait(self, build_id: BuildId, on_progress: OnBuildProgress) -> BuildReport:
        report = await super().wait(build_id, on_progress)
        self.fuse.pass_by()
        return report


async def live(folder: Path, url: str, fuse: Fuse) -> None:
    """One life of the agent: begin the run, or go on with it."""
    async with ScriptedProvider(SCRIPT) as server, open_client(url) as client:
        builder = MortalBuilder(client)
        builder.fuse = fuse
        choice = choose(server.provider, "scripted", dialect=Dialect.OPENAI_CHAT)
        async with Line(choice, None) as line:
            with MortalTranscript(folder / "run", Redactor()) as transcript:
                transcript.fuse = fuse
                equipment = Equipment(
                    line=line, builder=builder, transcript=transcript, on_progress=Watcher()
                )
                if (folder / "run" / FILE_NAME).stat().st_size:
                    result = await resume(equipment)
                else:
                    result = await run("make it build", workspace_of(folder), equipment, run_id="r1")
        outcome = {"reason": result.reason, "turns": result.spent.turns, "mismatches": server.mismatches}
        (folder / "outcome").write_text(json.dumps(outcome))


def workspace_of(folder: Path) -> Path:
    """Give the workspace of a point; its name is the project's, which tells points apart at a service."""
    return folder / f"point-{folder.name}"


async def built_for(folder: Path, url: str) -> list[str]:
    """Give the builds that were made for a point, each as the state it built and how often it was begun."""
    async with open_client(url) as client:
        page = await client.builds(project=workspace_of(folder).name)
    return [f"{build['workspace']} {build['attempt']}" for build in page["builds"]]


def in_a_process_of_its_own(folder: Path, url: str, fuse: Fuse) -> int:
    """Give the number of the signal that ended the life, 0 where it ended by itself."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            anyio.run(live, folder, url, fuse)
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        raise SystemExit("a life of the agent ended with an exception, see above")
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


def git(workspace: Path, *arguments: str) -> str:
    command = [
        "git",
        "-c",
        "user.name=t",
        "-c",
        "user.email=t@example.invalid",
        "-C",
        str(workspace),
        *arguments,
    ]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def one_point(folder: Path, url: str, fuses: list[int]) -> dict[str, object]:
    """Let the agent die at each fuse's end, then let it finish; give what is there in the end."""
    workspace = make_workspace(workspace_of(folder), broken=False)
    (workspace / PLAN).write_text(BROKEN_PLAN)
    (workspace / "fake.conf").write_text(FAKE_CONF)
    # No two points are of the same content, for a service builds that once.
    (workspace / "app/src/a.txt").write_text(f"{folder}\n")
    git(workspace, "init", "--quiet")
    git(workspace, "add", "--all")
    git(workspace, "commit", "--quiet", "--message=start")
    deaths = sum(in_a_process_of_its_own(folder, url, Fuse(length)) == signal.SIGKILL for length in fuses)
    in_a_process_of_its_own(folder, url, Fuse(1_000_000))
    return {
        "fuses": fuses,
        "deaths": deaths,
        **json.loads((folder / "outcome").read_text()),
        "files": {name: (workspace / name).read_text() for name in (PLAN, "build.gradle", "new.txt")},
        "gone": not (workspace / "gone.txt").exists(),
        "commits": git(workspace, "log", "--format=%s").splitlines(),
        "is_clean": not git(workspace, "status", "--porcelain"),
        "built": anyio.run(built_for, folder, url),
    }


def points_of(folder: Path, points: int, url: str) -> list[dict[str, Any]]:
    """Try so many points in a process of its own; give what each ended with."""
    command = [sys.executable, "-m", "tests.agent.kill_points", folder, "1", str(points), url]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def check_ends(points: list[dict[str, Any]]) -> None:
    """Check that every run ended as an undisturbed one, with each build and each commit made once."""
    for point in points:
        assert (point["reason"], point["turns"], point["mismatches"]) == ("green", 5, []), point
        files = {PLAN: SOUND_PLAN, "build.gradle": "// no plugins\n// patched\n", "new.txt": "new\n"}
        assert (point["files"], point["gone"]) == (files, True), point
        assert (point["commits"], point["is_clean"]) == (["Mend the answer", "start"], True), point
        assert len(point["built"]) == len(set(point["built"])) == 2, point


def main() -> None:
    """Try `points` points; the first four lie in the run's beginning, the others anywhere."""
    folder, seed, points = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    url = sys.argv[4]
    chance = random.Random(seed)
    for number in range(points):
        first = number if number < 4 else chance.randrange(70)
        fuses = [first, chance.randrange(30)] if number % 2 else [first]
        print(json.dumps(one_point(folder / str(number), url, fuses)), flush=True)


if __name__ == "__main__":
    main()
