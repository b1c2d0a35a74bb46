"""Runs an agent that is killed at a given point, again and again, until its run is done.

Started by `test_kill.py` in a process of its own, which forks one process for each life of the agent: the
imports are paid once, and every death is a real SIGKILL. Prints one JSON line a point.
"""

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import anyio

from agent.entries import Entry
from agent.http import Line
from agent.message import Dialect
from agent.providers.catalogue import choose
from agent.redact import Redactor
from agent.runner import Equipment, resume, run
from agent.scripted import Call, Conversation, Expected, ScriptedProvider, Turn
from agent.scripted.conversation import ExpectedResult
from agent.tools.build import BuildId, BuildSpec
from agent.transcript import FILE_NAME, Transcript
from tests.fakes_provider import FAULT, FolderBuilder, Watcher, make_workspace

MAIN = "app/src/main/java/Main.java"
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
        Turn(calls=(BUILD, Call(tool="read_file", arguments={"path": MAIN}))),
        Turn(
            expects=told("build_gradle_project", "read_file"),
            calls=(
                Call(tool="edit_file", arguments={"path": MAIN, "old": FAULT, "new": "42"}),
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


class MortalBuilder(FolderBuilder):
    """A builder whose client may die around each question."""

    fuse: Fuse

    async def submit(self, workspace: Path, spec: BuildSpec) -> BuildId:
        self.fuse.pass_by()
        build_id = await super().submit(workspace, spec)
        self.fuse.pass_by()
        return build_id


async def live(folder: Path, fuse: Fuse) -> None:
    """One life of the agent: begin the run, or go on with it."""
    async with ScriptedProvider(SCRIPT) as server:
        choice = choose(server.provider, "scripted", dialect=Dialect.OPENAI_CHAT)
        async with Line(choice, None) as line:
            with MortalTranscript(folder / "run", Redactor()) as transcript:
                transcript.fuse = fuse
                builder = MortalBuilder(folder / "builds")
                builder.fuse = fuse
                equipment = Equipment(
                    line=line, builder=builder, transcript=transcript, on_progress=Watcher()
                )
                if (folder / "run" / FILE_NAME).stat().st_size:
                    result = await resume(equipment)
                else:
                    result = await run("make it build", folder / "w", equipment, run_id="r1")
        outcome = {"reason": result.reason, "turns": result.spent.turns, "mismatches": server.mismatches}
        (folder / "outcome").write_text(json.dumps(outcome))


def in_a_process_of_its_own(folder: Path, fuse: Fuse) -> int:
    """Give the number of the signal that ended the life, 0 where it ended by itself."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            anyio.run(live, folder, fuse)
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


def one_point(folder: Path, fuses: list[int]) -> dict[str, object]:
    """Let the agent die at each fuse's end, then let it finish; give what is there in the end."""
    workspace = make_workspace(folder / "w")
    git(workspace, "init", "--quiet")
    git(workspace, "add", "--all")
    git(workspace, "commit", "--quiet", "--message=start")
    deaths = sum(in_a_process_of_its_own(folder, Fuse(length)) == signal.SIGKILL for length in fuses)
    in_a_process_of_its_own(folder, Fuse(1_000_000))
    return {
        "fuses": fuses,
        "deaths": deaths,
        **json.loads((folder / "outcome").read_text()),
        "files": {name: (workspace / name).read_text() for name in (MAIN, "build.gradle", "new.txt")},
        "gone": not (workspace / "gone.txt").exists(),
        "commits": git(workspace, "log", "--format=%s").splitlines(),
        "is_clean": not git(workspace, "status", "--porcelain"),
        "built": FolderBuilder(folder / "builds").built,
    }


def main() -> None:
    """Try `points` points; the first four lie in the run's beginning, the others anywhere."""
    folder, seed, points = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    chance = random.Random(seed)
    for number in range(points):
        first = number if number < 4 else chance.randrange(70)
        fuses = [first, chance.randrange(30)] if number % 2 else [first]
        print(json.dumps(one_point(folder / str(number), fuses)), flush=True)


if __name__ == "__main__":
    main()
