"""A phone that is a folder: its builds are detached processes, so they outlive the service.

It keeps the promises of the real bridge: one run id is one run, a log is read on from an offset, a
run is ended by a file that its process watches, every answer comes from what lies in the folder.
Files named `offline`, `cut`, `mute` and `wipe` in the phone's folder make it misbehave; `health.txt`
holds what its Android prints of battery, heat and storage; `hold-STAGE` keeps it in a stage.
"""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from builder_bridge.build import (
    Artifact,
    BuildEvent,
    BuildResult,
    BuildSpec,
    BuildState,
    LogChunk,
    RunId,
    StateChanged,
)
from builder_bridge.errors import PhoneLost, PhoneUnavailable, RunConflict, ServiceRefused, UnknownRun
from builder_bridge.health import Health, read_health
from builder_bridge.prefix.contract import Contract
from builder_bridge.routes.route import check_words
from builder_bridge.secret import NO_SECRETS, Secrets
from builder_bridge.workspace.scan import read_chunks
from builder_bridge.workspace.snapshot import Snapshot
from orchestrator.engine.phone import OpenPhone

PROGRAM = """
import json, os, sys, time
folder = sys.argv[1]
plan = json.load(open(folder + "/plan.json"))
def state(name):
    with open(folder + "/state.tmp", "w") as f: f.write(name)
    os.rename(folder + "/state.tmp", folder + "/state")
def gate(name):
    while os.path.exists(folder + "/../../hold-" + name): time.sleep(0.01)
state("unpacking"); gate("unpack"); time.sleep(plan["unpack_s"]); state("running"); gate("gradle")
with open(folder + "/build.log", "ab", buffering=0) as log:
    for line in plan["lines"]:
        while os.path.exists(folder + "/hold") and not os.path.exists(folder + "/cancel"): time.sleep(0.01)
        if os.path.exists(folder + "/cancel"):
            log.write(b"cancelled\\n"); state("cancelled"); sys.exit()
        text = repr(time.time()) if plan.get("is_stamped") else line
        log.write(text.encode() + b"\\n"); time.sleep(plan["line_s"])
state("collecting"); gate("collect"); time.sleep(plan["collect_s"])
os.makedirs(folder + "/artifacts")
if plan["exit_code"] == 0:
    with open(folder + "/artifacts/0", "wb") as f: f.write(("apk of " + plan["fingerprint"]).encode() * 50)
with open(folder + "/exit_code.tmp", "w") as f: f.write(str(plan["exit_code"]))
os.rename(folder + "/exit_code.tmp", folder + "/exit_code")
with open(folder + "/events.ndjson", "w") as f: f.writelines(json.dumps(e) + "\\n" for e in plan["events"])
state("done" if plan["exit_code"] == 0 else "failed")
"""
POLL_S = 0.01
FINAL = {"done", "failed", "cancelled", "lost"}


def plan_of(snapshot: Snapshot) -> dict[str, Any]:
    """Read what a build of this workspace does from its `plan.json`, where it has one."""
    plan: dict[str, Any] = {"unpack_s": 0.0, "line_s": 0.0, "collect_s": 0.0, "exit_code": 0}
    plan["lines"] = [":app:preBuild", ":app:assembleDebug", "", "BUILD SUCCESSFUL in 1s"]
    if any(file.path == "plan.json" for file in snapshot.files):
        plan.update(json.loads((snapshot.root / "plan.json").read_text()))
    return {"events": _events_of(plan["exit_code"])} | plan | {"fingerprint": snapshot.fingerprint}


def _events_of(exit_code: int) -> list[dict[str, Any]]:
    task = "SUCCESS" if exit_code == 0 else "FAILED"
    build = "success" if exit_code == 0 else "failed"
    return [
        {"event": "started", "gradle": "8.7"},
        {"event": "task_finished", "task": ":app:preBuild", "outcome": "SUCCESS", "at_ms": 990},
        {
            "event": "task_finished",
            "task": ":app:assembleDebug",
            "outcome": task,
            "started_ms": 1000,
            "at_ms": 4250,
        },
        {"event": "finished", "outcome": build},
    ]


class FakePhone:
    """One open connection to a folder."""

    def __init__(self, folder: Path, route: str | None) -> None:
        self._folder = folder
        self.route_name = "folder" if route is None else f"folder by {route}"
        self.serial = f"serial-of-{folder.name}"

    async def info(self) -> Contract:
        self._check()
        own = self._folder / "contract.json"
        document: dict[str, Any] = {"pb": 1, "uid": 2000, "dir": str(self._folder)}
        document["prefix"] = {"jdk": "17.0.9", "platforms": ["android-34"], "abi": "arm64-v8a"}
        return Contract.model_validate(document | (json.loads(own.read_text()) if own.exists() else {}))

    async def health(self) -> Health:
        self._check()
        with (self._folder / "asked.log").open("a") as asked:
            asked.write("health\n")
        printed = self._folder / "health.txt"
        return read_health(printed.read_text() if printed.exists() else "")

    async def submit(
        self, run_id: RunId, spec: BuildSpec, snapshot: Snapshot, secrets: Secrets = NO_SECRETS
    ) -> object:
        self._check()
        run = self._folder / "runs" / run_id
        digest = hashlib.sha256(f"{spec}{snapshot.fingerprint}{secrets.seal}".encode()).hexdigest()
        if (run / "request").exists():
            if (run / "request").read_text() != digest:
                raise RunConflict(f"{run_id} was made from other content")
            return BuildState((run / "state").read_text()) if (run / "state").exists() else None
        for file in snapshot.files:
            for _chunk in read_chunks(snapshot, file):  # raises where the content is not what it was
                pass
        await self._gate("upload")
        await anyio.sleep(plan_of(snapshot).get("upload_s", 0.0))
        run.mkdir(parents=True, exist_ok=True)
        (run / "plan.json").write_text(json.dumps(plan_of(snapshot)))
        (run / "build.log").touch()
        if run_id.endswith(f"-{plan_of(snapshot).get('held_attempt')}"):
            (run / "hold").touch()
        (run / "state").write_text("received")
        # Not what was given, but enough to see that it came whole.
        given = {each.name: [each.is_file, _sha256(each.content)] for each in secrets.entries}
        (run / "secrets.json").write_text(json.dumps(given))
        (run / "request").write_text(digest)
        with (self._folder / "starts.log").open("a") as starts:
            starts.write(run_id + "\n")
        null = subprocess.DEVNULL
        program = [sys.executable, "-c", PROGRAM, str(run)]
        process = subprocess.Popen(  # noqa: ASYNC220 - it starts in a millisecond
            program, start_new_session=True, stdin=null, stdout=null, stderr=null
        )
        (run / "pid").write_text(str(process.pid))
        _children.append(process)
        return None

    async def follow(self, run_id: RunId, offset: int) -> AsyncGenerator[BuildEvent]:
        run = self._run(run_id)
        seen = ""
        while True:
            self._check()
            state = (run / "state").read_text()
            with (run / "build.log").open("rb") as log:
                log.seek(offset)
                while data := log.read(4096):
                    yield LogChunk(offset, data)
                    offset += len(data)
            if state != seen:
                seen = state
                yield StateChanged(BuildState(state), self._detail(run))
            if state in FINAL:
                return
            self._reap()
            await anyio.sleep(POLL_S)

    async def cancel(self, run_id: RunId, cause: str) -> None:
        check_words((run_id, cause))
        self._check()
        (self._run(run_id) / "cancel").touch()

    async def result(self, run_id: RunId) -> BuildResult:
        self._check()
        run = self._run(run_id)
        log = (run / "build.log").read_bytes()
        code = run / "exit_code"
        reports = json.loads((run / "plan.json").read_text()).get("reports")
        return BuildResult(
            run_id,
            BuildState((run / "state").read_text()),
            int(code.read_text()) if code.exists() else None,
            len(log),
            hashlib.sha256(log).hexdigest(),
            tuple(
                Artifact(
                    0, "app/build/outputs/apk/debug/app-debug.apk", "apk", len(data), _sha256(data), "debug"
                )
                for path in run.glob("artifacts/0")
                for data in [path.read_bytes()]
            ),
            stage_s={"unpack": 0.0, "gradle": 0.1, "collect": 0.0},
            facts={"daemon": "warm"} | ({"reports": str(len(reports))} if reports else {}),
        )

    async def events(self, run_id: RunId) -> bytes:
        self._check()
        if (self._folder / "mute").exists():
            raise ServiceRefused(f"{self._folder.name} gives no events")
        noted = self._run(run_id) / "events.ndjson"
        return noted.read_bytes() if noted.exists() else b""

    async def reports(self, run_id: RunId) -> Mapping[str, bytes]:
        self._check()
        if (self._folder / "mute").exists():
            raise ServiceRefused(f"{self._folder.name} gives no reports")
        plan = json.loads((self._run(run_id) / "plan.json").read_text())
        return {path: text.encode() for path, text in plan["reports"].items()}

    async def fetch(self, run_id: RunId, artifact: Artifact, destination: Path) -> None:
        self._check()
        plan = json.loads((self._run(run_id) / "plan.json").read_text())
        await self._gate("fetch")
        await anyio.sleep(plan.get("fetch_s", 0.0))
        content = (self._run(run_id) / "artifacts" / str(artifact.index)).read_bytes()
        await anyio.Path(destination).write_bytes(content)

    def _run(self, run_id: str) -> Path:
        run = self._folder / "runs" / run_id
        if not (run / "request").exists():
            raise UnknownRun(f"{self._folder.name} knows no run {run_id}")
        return run

    def _detail(self, run: Path) -> str | None:
        detail = run / "detail"
        return detail.read_text() if detail.exists() else None

    async def _gate(self, stage: str) -> None:
        while (self._folder / f"hold-{stage}").exists():  # noqa: ASYNC110 - a test's file ends it
            await anyio.sleep(POLL_S)

    def _check(self) -> None:
        cut = self._folder / "cut"
        if cut.exists():
            cut.unlink()
            raise PhoneLost(f"the cable of {self._folder.name} was pulled", serial=self._folder.name)
        if (self._folder / "offline").exists():
            raise PhoneLost(f"{self._folder.name} does not answer", serial=self._folder.name)

    def _reap(self) -> None:
        for process in list(_children):
            if process.poll() is not None:
                _children.remove(process)


_children: list[subprocess.Popen[bytes]] = []


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def folder_phones(root: Path) -> OpenPhone:
    """Give a way to open phones by name: each is a folder under `root` that must exist."""

    @asynccontextmanager
    async def open_phone(address: str, route: str | None) -> AsyncIterator[FakePhone]:
        folder = root / address
        if not folder.is_dir() or (folder / "offline").exists():
            raise PhoneUnavailable(f"nothing answers at {address}", serial=address)
        yield FakePhone(folder, route)

    return open_phone


def starts_of(root: Path) -> list[str]:
    """Give the run ids that phones were made to start, in order by phone."""
    return [line for log in sorted(root.glob("*/starts.log")) for line in log.read_text().split()]


def kill_run(root: Path, run_id: str) -> None:
    """End a run's process as Android's killer does, and let the phone say so."""
    for run in root.glob(f"*/runs/{run_id}"):
        os.kill(int((run / "pid").read_text()), 9)
        (run / "detail").write_text("lost_reboot: the phone started again")
        (run / "state").write_text("lost")
