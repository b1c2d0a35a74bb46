"""One build over a real adbd that is driven through faults, and judged by what it left.

It may be driven in a process of its own, which is then killed: `python -m tests.handoff_job ADDRESS
BOX ROUTE SCRATCH RUN` goes on with the build and prints its final state.
"""

import argparse
import hashlib
import itertools
import json
import os
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
from anyio.to_thread import run_sync

from builder_bridge.adb import connect
from builder_bridge.box import Box, find
from builder_bridge.bridge import Bridge, open_bridge
from builder_bridge.build import BuildResult, BuildSpec, LogChunk, RunId, StateChanged
from builder_bridge.errors import BridgeError
from builder_bridge.reattach import build_through_faults
from builder_bridge.workspace.scan import scan
from tests.fake_prefix import files_of, make_workspace, starts_of

LIMIT_S = 600.0
_numbers = itertools.count()


class Job:
    """One build: its workspace, its run, and what is here of it."""

    def __init__(
        self, box: Box, route: str, scratch: Path, conf: dict[str, object], size_bytes: int, run: str = ""
    ) -> None:
        self.box = box
        self.route = route
        self.run_id = RunId(run or f"c-{os.getpid()}-{next(_numbers)}")
        self.folder = scratch / self.run_id
        self.workspace = self.folder / "workspace"
        self.out = self.folder / "out"
        self.log = self.folder / "build.log"
        self.had_begun = False
        """Whether the run had begun on the phone when the fault was over."""
        if not self.workspace.exists():
            make_workspace(self.workspace, **conf)
            payload = random.Random(self.run_id).randbytes(size_bytes)
            (self.workspace / "app/src/payload.txt").write_bytes(payload)
            self.out.mkdir()

    def words(self) -> list[str]:
        """Give what another process needs to go on with this build."""
        return [self.box.name, self.route, str(self.folder.parent), self.run_id]

    async def drive(self, address: str, ping_s: float) -> str:
        """Build through whatever happens; give the final state or the code of the fault."""

        @asynccontextmanager
        async def open_again() -> AsyncIterator[Bridge]:
            async with (
                connect(address, ping_interval_s=ping_s) as adb,
                open_bridge(adb, (self.route,), memory=self.folder / "memory") as bridge,
            ):
                yield bridge

        try:
            result = await self._build(open_again)
        except BridgeError as fault:
            return fault.code
        (self.folder / "result.json").write_text(json.dumps({"sha256": result.log_sha256}))
        return result.state.value

    async def build_before(self) -> None:
        """Build the workspace once in peace, then change a small file."""
        run_id = RunId(f"{self.run_id}-before")
        found = find(self.box.name)
        assert found is not None
        async with (
            connect(found.serial) as adb,
            open_bridge(adb, (self.route,), memory=self.folder / "memory") as bridge,
        ):
            await bridge.submit(run_id, BuildSpec(), await run_sync(scan, self.workspace))
            assert (await bridge.result(run_id)).is_success
        (self.workspace / "app/src/a.txt").write_text(f"changed for {self.run_id}\n")

    async def _build(self, open_again: object) -> BuildResult:
        with self.log.open("ab") as log:

            async def on_chunk(chunk: LogChunk) -> None:
                assert chunk.offset == log.tell(), "a part of the log came twice or not at all"
                log.write(chunk.data)
                log.flush()

            async def on_state(_: StateChanged) -> None:
                pass

            return await build_through_faults(
                open_again,  # type: ignore[arg-type]
                self.run_id,
                BuildSpec(),
                await run_sync(scan, self.workspace),
                on_chunk,
                on_state,
                offset=log.tell(),
                artifacts_to=self.out,
                patience_s=300,
            )

    @property
    def on_phone(self) -> Path:
        """The run's folder on the phone, as the host's root user sees it; a reboot moves it."""
        box = find(self.box.name)
        assert box is not None
        return files_of(box, self.route) / "pocketbuild/runs" / self.run_id

    def has_begun(self) -> bool:
        """Say whether the run is beyond its upload."""
        return (self.on_phone / "identity").exists()

    def await_stage(self, stage: str) -> None:
        """Wait until the build is in the stage, or past it."""
        until = time.monotonic() + LIMIT_S
        while time.monotonic() < until and not self._has_reached(stage):
            time.sleep(0.002)

    def _has_reached(self, stage: str) -> bool:
        with suppress(OSError, ValueError, AssertionError):
            if stage == "upload":
                part = self.on_phone / "upload.part"
                return part.stat().st_size > 10_000 if part.exists() else (self.on_phone / "pack").exists()
            if stage == "fetch":
                return any(self.out.rglob("*.part")) or any(self.out.rglob("*.apk"))
            state = json.loads((self.on_phone / "state.json").read_text())["state"]
            order = ["received", "unpacking", "running", "collecting", "done", "failed", "cancelled"]
            wanted = {"unpack": "unpacking", "gradle": "running", "collect": "collecting"}[stage]
            return order.index(state) >= order.index(wanted)
        return False

    def judge(self, outcome: str, expected: set[str]) -> str:
        """Say what is wrong, "" where nothing is."""
        box = find(self.box.name)
        assert box is not None
        starts = starts_of(box, self.route).count(self.run_id)
        if outcome not in expected:
            return f"ended as {outcome}"
        if starts > 1:
            return f"Gradle was started {starts} times"
        phone_log = self.on_phone / "build.log"
        there = phone_log.read_bytes() if phone_log.exists() else b""
        here = self.log.read_bytes()
        if outcome in ("done", "lost", "failed") and here != there:
            return f"the log here has {len(here)} bytes, the phone's {len(there)}"
        if outcome == "done":
            source = sorted((self.workspace / "app/src").glob("*.txt"))
            wanted = hashlib.sha256(b"".join(path.read_bytes() for path in source)).hexdigest()
            made = [hashlib.sha256(path.read_bytes()).hexdigest() for path in self.out.rglob("*.apk")]
            if made != [wanted] or starts != 1 or list(self.out.rglob("*.part")):
                return f"the artifact is not what the workspace makes ({len(made)} here)"
            told = json.loads((self.folder / "result.json").read_text())["sha256"]
            if told != hashlib.sha256(here).hexdigest():
                return "the phone's digest of the log is another"
        return ""


def main() -> None:
    """Drive one build in a process of its own: `ADDRESS BOX ROUTE SCRATCH RUN`."""
    parser = argparse.ArgumentParser()
    parser.add_argument("words", nargs=5)
    address, box_name, route, scratch, run = parser.parse_args().words
    box = find(box_name)
    assert box is not None
    print(anyio.run(Job(box, route, Path(scratch), {}, 0, run).drive, address, 10.0))


if __name__ == "__main__":
    main()
