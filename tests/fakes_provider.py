"""What stands in for the world around an agent in tests: a builder in a folder, and a run ready to start."""

import hashlib
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from pathlib import Path

from agent.equipment import Equipment
from agent.errors import ToolFault
from agent.http import Edges, Line, Response, to_bytes
from agent.message import Dialect, JsonObject
from agent.progress import BuildAdvanced, OnBuildProgress, Progress
from agent.providers.catalogue import choose, custom
from agent.redact import Redactor
from agent.retry import RetryPolicy
from agent.scripted import Conversation, ScriptedProvider, Turn
from agent.scripted.render import render
from agent.tools.build import (
    BuildId,
    BuildOutcome,
    BuildReport,
    BuildSpec,
    LogHits,
    LogLines,
    PhoneStatus,
)
from agent.transcript import Transcript

FAULT = "BROKEN"
"""A file that holds this word does not build."""


class FolderBuilder:
    """A builder whose builds lie in a folder, so that they outlive the process that asked for them.

    A workspace builds unless one of its files holds the word BROKEN; each such line is a problem. What
    was really built is listed in `built`, one line a build.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder

    @property
    def built(self) -> list[str]:
        path = self._folder / "built"
        return path.read_text().splitlines() if path.exists() else []

    async def fingerprint(self, workspace: Path) -> str:
        digest = hashlib.sha256()
        for path in _files(workspace):
            digest.update(path.relative_to(workspace).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
        return digest.hexdigest()[:16]

    async def submit(self, workspace: Path, spec: BuildSpec) -> BuildId:
        fingerprint = await self.fingerprint(workspace)
        asked = hashlib.sha256(json.dumps(asdict(spec), sort_keys=True).encode()).hexdigest()[:6]
        build_id = BuildId(f"b-{fingerprint}-{asked}")
        record = self._folder / f"{build_id}.json"
        if not record.exists():
            problems = [
                {
                    "severity": "error",
                    "tool": "javac",
                    "file": path.relative_to(workspace).as_posix(),
                    "line": n,
                    "message": line.strip(),
                }
                for path in _files(workspace)
                for n, line in enumerate(path.read_text(errors="replace").splitlines(), start=1)
                if FAULT in line
            ]
            record.write_text(json.dumps({"fingerprint": fingerprint, "problems": problems}))
            with (self._folder / "built").open("a") as built:
                built.write(f"{build_id}\n")
        return build_id

    async def wait(self, build_id: BuildId, on_progress: OnBuildProgress) -> BuildReport:
        record = json.loads((self._folder / f"{build_id}.json").read_text())
        waited = self._folder / f"{build_id}.waited"
        is_new = not waited.exists()
        waited.touch()
        await on_progress(BuildAdvanced(build_id, "running", ":app:compileDebugJavaWithJavac", 50.0))
        problems = record["problems"]
        lines = [f"{p['file']}:{p['line']}  error: {p['message']}" for p in problems]
        return BuildReport(
            build_id=build_id,
            outcome=BuildOutcome.FAILED if problems else BuildOutcome.GREEN,
            fingerprint=record["fingerprint"],
            digest_text="\n".join([f"build {build_id} {'FAILED' if problems else 'GREEN'}", *lines]),
            digest={"causes": [{"identity": f"javac|{p['file']}|{p['message']}"} for p in problems]},
            seconds=2.0,
            phone_s=2.0 if is_new else 0.0,
            log_lines=3,
            is_from_earlier=not is_new,
        )

    async def cancel(self, build_id: BuildId) -> None:
        raise ToolFault(f"{build_id} has ended already")

    async def read_log(self, build_id: BuildId, first_line: int, line_count: int) -> LogLines:
        lines = ("> Task :app:compileDebugJavaWithJavac", "e: log line two", "BUILD FAILED")
        start = max(0, len(lines) + first_line if first_line < 0 else first_line - 1)
        return LogLines(start + 1, lines[start : start + line_count], len(lines))

    async def search_log(self, build_id: BuildId, pattern: str, context_lines: int, max_hits: int) -> LogHits:
        return LogHits((LogLines(2, ("e: log line two",), 3),), 1, 3)

    async def inspect_artifact(self, build_id: BuildId, path: str | None) -> JsonObject:
        return {"package": "org.example.hello", "path": path}

    async def phones(self) -> tuple[PhoneStatus, ...]:
        return (PhoneStatus("box-1", "idle", "run_as", {"battery_percent": 80}),)


def _files(workspace: Path) -> list[Path]:
    return sorted(path for path in workspace.rglob("*") if path.is_file() and ".git" not in path.parts)


def make_workspace(folder: Path, *, broken: bool = True) -> Path:
    """Make a small workspace; its fault is one line in Main.java."""
    source = folder / "app/src/main/java"
    source.mkdir(parents=True)
    line = f"        int answer = {FAULT};" if broken else "        int answer = 42;"
    (source / "Main.java").write_text(f"class Main {{\n    void run() {{\n{line}\n    }}\n}}\n")
    (folder / "build.gradle").write_text("// no plugins\n")
    return folder


class Watcher:
    """Keeps what a run tells."""

    def __init__(self) -> None:
        self.seen: list[Progress] = []

    async def __call__(self, progress: Progress) -> None:
        self.seen.append(progress)

    def of(self, kind: type) -> list[Progress]:
        return [progress for progress in self.seen if isinstance(progress, kind)]


class MemoryLine(Line):
    """A line that answers from memory, for what no HTTP belongs to: each request gets the turn of `answer`.

    A body is made into bytes as it would be to be sent. `making_s` is the CPU time that the answers took.
    """

    def __init__(self, answer: Callable[[int, JsonObject], Turn], *, context_tokens: int = 128_000) -> None:
        choice = choose(custom("http://127.0.0.1:9/v1", Dialect.OPENAI_CHAT), "none")
        super().__init__(replace(choice, context_tokens=context_tokens), None)
        self._answer = answer
        self.asked = 0
        self.making_s = 0.0

    @asynccontextmanager
    async def post(self, body: JsonObject) -> AsyncIterator[Response]:
        to_bytes(body)
        started_s = time.process_time()
        self.asked += 1
        frames = render(self._answer(self.asked, body), self.asked, Dialect.OPENAI_CHAT)
        data = b"".join(frame.to_bytes() for frame in frames)
        self.making_s += time.process_time() - started_s

        async def chunks() -> AsyncIterator[bytes]:
            for at in range(0, len(data), 4096):
                yield data[at : at + 4096]

        yield Response({}, chunks(), Edges())


@asynccontextmanager
async def equipment_for(
    server: ScriptedProvider,
    folder: Path,
    *,
    dialect: Dialect = Dialect.OPENAI_CHAT,
    watcher: Watcher | None = None,
) -> AsyncIterator[Equipment]:
    """Give what a run needs to work with a scripted provider; nothing waits between retries."""
    choice = choose(server.provider, "scripted", dialect=dialect)
    async with Line(choice, None) as line:
        with Transcript(folder / "run", Redactor()) as transcript:
            yield Equipment(
                line=line,
                builder=FolderBuilder(folder / "builds"),
                transcript=transcript,
                on_progress=watcher or Watcher(),
                retry=RetryPolicy(first_wait_s=0.0),
            )


@asynccontextmanager
async def equipped(
    conversation: Conversation,
    folder: Path,
    *,
    dialect: Dialect = Dialect.OPENAI_CHAT,
    watcher: Watcher | None = None,
) -> AsyncIterator[tuple[Equipment, ScriptedProvider]]:
    """Give a scripted provider over real HTTP, and what a run needs to work with it."""
    async with (
        ScriptedProvider(conversation) as server,
        equipment_for(server, folder, dialect=dialect, watcher=watcher) as equipment,
    ):
        yield equipment, server
