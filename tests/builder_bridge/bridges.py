"""Bridges to the box's fake prefix, builds over them, and what is left of them on the phone."""

import hashlib
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import anyio

from builder_bridge.adb import connect
from builder_bridge.box import Box
from builder_bridge.bridge import Bridge, open_bridge
from builder_bridge.build import (
    BuildResult,
    BuildSpec,
    BuildState,
    LogChunk,
    RunId,
    StateChanged,
)
from builder_bridge.workspace.scan import scan
from tests.fake_prefix import files_of, make_workspace

ROUTES = ("run_as", "shell_dir")
NewRun = Callable[[], RunId]


@asynccontextmanager
async def bridge_to(box: Box, route: str, memory: Path) -> AsyncIterator[Bridge]:
    async with connect(box.serial) as adb, open_bridge(adb, (route,), memory=memory) as bridge:
        yield bridge


@dataclass
class Seen:
    log: bytes
    states: list[BuildState]
    result: BuildResult


async def build(bridge: Bridge, run_id: RunId, workspace: Path, spec: BuildSpec | None = None) -> Seen:
    await bridge.submit(run_id, spec or BuildSpec(), await anyio.to_thread.run_sync(scan, workspace))
    log, states = b"", []
    async for event in bridge.follow(run_id):
        match event:
            case LogChunk(offset, data):
                assert offset == len(log)
                log += data
            case StateChanged(state):
                states.append(state)
    result = await bridge.result(run_id)
    assert hashlib.sha256(log).hexdigest() == result.log_sha256
    assert len(log) == result.log_size_bytes
    return Seen(log, states, result)


def names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def content_on_phone(box: Box, route: str, workspace: Path, scratch: Path) -> str:
    """Give the fingerprint of the workspace as it lies on the phone, by way of a copy."""
    tree = files_of(box, route) / "pocketbuild/trees" / scan(workspace).place
    copy = Path(tempfile.mkdtemp(dir=scratch)) / "copy"
    shutil.copytree(tree, copy, symlinks=True)
    return scan(copy).fingerprint


def held_workspace(box: Box, route: str, run_id: RunId, root: Path) -> tuple[Path, Path]:
    """Make a workspace whose build goes on until a file appears; give both."""
    go = f"go-{run_id}"
    run = f"until [ -f $HOME/{go} ]; do sleep 0.05; done"
    return make_workspace(root, lines=3, run=run), files_of(box, route) / "home" / go


def await_none(find: Callable[[Box, str], list[str]], box: Box, run_id: str) -> None:
    """Wait until no such process is left, or fail after a minute: who was killed is there for moments."""
    until = time.monotonic() + 60
    while left := find(box, run_id):
        assert time.monotonic() < until, left
        time.sleep(0.05)


def readers_about(box: Box, run_id: str) -> list[str]:
    """Give the processes of the box that read the run's log."""
    return [" ".join(words) for words in processes_about(box, run_id) if "log" in words]


def processes_about(box: Box, run_id: str) -> list[list[str]]:
    """Give the words of each process of the box in whose command line the run stands."""
    found = []
    for path in (box.root / "proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            words = path.read_bytes().decode().split("\0")
            if any(run_id in word for word in words):
                found.append(words)
    return found


def living_processes(box: Box, run_id: str) -> list[str]:
    found = []
    for path in (box.root / "proc").glob("[0-9]*/environ"):
        try:
            if f"POCKETBUILD_RUN=:{run_id}:".encode() in path.read_bytes():
                found.append((path.parent / "cmdline").read_bytes().decode())
        except OSError:
            continue
    return found
