"""Builds under faults: what goes wrong, at which stage, and what must be true afterwards.

A cell is one fault at one stage of one build over one route, against a real adbd, with a script
where Gradle would be. Afterwards the build has come back whole, or its state is named; in any case
the log here is, byte for byte, the phone's, and Gradle was started at most once for a run.
"""

import itertools
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio
from anyio.to_thread import run_sync

from builder_bridge.box import Box, reboot, restart_adbd
from builder_bridge.build import BuildState
from tests.chaos import Chaos, Faults, open_chaos
from tests.fake_prefix import FOLDERS
from tests.handoff_job import LIMIT_S, Job

STAGES = ("upload", "unpack", "gradle", "collect", "fetch")
FAULTS = (
    "cut", "stall", "black_hole", "one_byte", "latency", "adbd_spared", "adbd_killed", "reboot", "disk_full",
    "host_killed",
)  # fmt: skip
PAYLOAD_BYTES = 8 << 20
STALL_S = 30.0
_FULL_AT_MB = {"upload": 4, "unpack": 12, "gradle": 30, "collect": 26}


@dataclass(frozen=True)
class Cell:
    """One fault at one stage."""

    fault: str
    stage: str
    route: str = "run_as"


@dataclass(frozen=True)
class Report:
    """What a build under faults came to; `wrong` is empty where all is well."""

    cell: Cell
    outcome: str
    seconds: float
    wrong: str = ""


def cells() -> list[Cell]:
    """Give the whole table, each row over one of the routes in turn."""
    routes = itertools.cycle(FOLDERS)
    return [Cell(fault, stage, next(routes)) for fault in FAULTS for stage in STAGES]


def needs_killing_init(cell: Cell) -> bool:
    """Whether the box must be one whose init ends adbd's children with adbd."""
    return cell.fault == "adbd_killed"


async def run_cell(cell: Cell, box: Box, scratch: Path) -> Report:
    """Build once, let the fault happen when the stage is reached, and judge what came of it."""
    conf: dict[str, object] = {"lines": 15, "pause": 0.1}
    if cell.fault == "disk_full" and cell.stage == "gradle":
        conf["run"] = "dd if=/dev/zero of=fill bs=1048576 count=64 2>&1 || exit 1"
    size = 50 << 10 if cell.fault == "one_byte" else PAYLOAD_BYTES
    job = Job(box, cell.route, scratch, conf, size)
    began_s = time.monotonic()
    with _small_disks(cell, job):
        async with open_chaos(box.host, box.port) as chaos:
            with anyio.move_on_after(LIMIT_S) as scope:
                if cell.fault == "host_killed":
                    outcome = await _drive_in_a_process_that_is_killed(cell, job, chaos)
                else:
                    outcome = await _drive_under(cell, job, chaos)
        if scope.cancelled_caught:
            outcome = "hung"
        wrong = await run_sync(job.judge, outcome, _expected(cell, has_begun=job.had_begun))
    return Report(cell, outcome, time.monotonic() - began_s, wrong)


def _expected(cell: Cell, *, has_begun: bool) -> set[str]:
    """Give the ends that are right; a machine may have been past the stage when the fault came."""
    if cell.fault == "disk_full":
        return {"host_low_storage"} if cell.stage == "fetch" else {"preflight_low_storage", "failed"}
    if cell.fault in ("adbd_killed", "reboot"):
        return {"done", "lost"} if has_begun and cell.stage != "fetch" else {"done"}
    return {"done"}


async def _drive_under(cell: Cell, job: Job, chaos: Chaos) -> str:
    ping_s = 1.0 if cell.fault == "black_hole" else 10.0
    outcome = "unfinished"

    async def build() -> None:
        nonlocal outcome
        outcome = await job.drive(chaos.address, ping_s)
        tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(build)
        if cell.fault != "disk_full":
            await run_sync(job.await_stage, cell.stage, abandon_on_cancel=True)
            await _happen(cell.fault, job, chaos)
            job.had_begun = await run_sync(job.has_begun)
    return outcome


async def _happen(fault: str, job: Job, chaos: Chaos) -> None:
    match fault:
        case "cut":
            chaos.cut()
        case "stall":
            pid = job.box.adbd_pid
            assert pid is not None
            os.kill(pid, signal.SIGSTOP)
            try:
                await anyio.sleep(STALL_S)
            finally:
                os.kill(pid, signal.SIGCONT)
        case "black_hole":
            chaos.go_silent()
        case "one_byte":
            chaos.faults = Faults(segment_bytes=1)
            chaos.cut()
        case "latency":
            chaos.faults = Faults(latency_s=0.2)
            chaos.cut()
        case "adbd_spared" | "adbd_killed":
            await run_sync(restart_adbd, job.box.name)
        case "reboot":
            await run_sync(reboot, job.box.name)


async def _drive_in_a_process_that_is_killed(cell: Cell, job: Job, chaos: Chaos) -> str:
    command = [sys.executable, "-m", "tests.handoff_job", chaos.address, *job.words()]
    async with await anyio.open_process(command, stdout=None, stderr=None) as first:
        await run_sync(job.await_stage, cell.stage, abandon_on_cancel=True)
        first.kill()
    done = await anyio.run_process(command, check=False, stderr=None)
    return done.stdout.decode().strip().rpartition("\n")[2]


@contextmanager
def _small_disks(cell: Cell, job: Job) -> Iterator[None]:
    """Let a disk be too small for the stage: a small file system over the runs, or over the output."""
    if cell.fault != "disk_full":
        yield
        return
    folder, uid = FOLDERS[cell.route]
    if cell.stage == "fetch":
        target, options, enter = job.out, "size=4m", []
    else:
        target = job.box.folder / "merged" / folder / "pocketbuild"
        options = f"size={_FULL_AT_MB[cell.stage]}m,mode=700,uid={uid},gid={uid}"
        enter = ["nsenter", "-t", str(job.box.init.pid), "-m", "--"]
    subprocess.run([*enter, "mkdir", "-p", target], check=True)
    subprocess.run([*enter, "chown", f"{uid}:{uid}", target], check=True)
    subprocess.run([*enter, "mount", "-t", "tmpfs", "-o", options, "tmpfs", target], check=True)
    try:
        yield
    finally:
        subprocess.run([*enter, "umount", "-l", target], check=True)


@dataclass(frozen=True)
class RandomReport:
    """What one build under random faults came to."""

    number: int
    faults: tuple[str, ...]
    runs: int
    lost_runs: int
    wrong: str


_RANDOM_FAULTS = ("cut", "cut", "cut", "fin", "black_hole", "one_byte", "latency", "adbd", "adbd", "reboot")


async def run_random(number: int, seed: int, box: Box, scratch: Path) -> RandomReport:
    """Build a small project while up to three random faults happen at random moments.

    A run that is lost with its process is begun anew under another id, as the service does. Half of
    the builds follow an earlier one of the same workspace, so that only a change is handed over.
    """
    chance = random.Random(f"{seed}/{number}")
    faults = tuple(chance.choice(_RANDOM_FAULTS) for _ in range(chance.randint(1, 3)))
    route = chance.choice(sorted(FOLDERS))
    planned = [(fault, chance.uniform(0, 1.2)) for fault in faults]
    is_change = chance.random() < 0.5
    lost_runs = 0
    for attempt in range(1, 6):
        run = f"x-{os.getpid()}-{number}-{attempt}"
        job = Job(box, route, scratch, {"lines": 10, "pause": 0.05}, 100_000, run)
        if is_change:
            with anyio.move_on_after(LIMIT_S):
                await job.build_before()
        async with open_chaos(box.host, box.port) as chaos:
            with anyio.move_on_after(LIMIT_S):
                outcome = await _drive_among(job, chaos, planned)
        expected = {"done", "lost"}
        wrong = await run_sync(job.judge, outcome, expected)
        if outcome != BuildState.LOST or wrong:
            return RandomReport(number, faults, attempt, lost_runs, wrong)
        lost_runs += 1
        planned = planned[1:]
    return RandomReport(number, faults, attempt, lost_runs, "lost again and again")


async def _drive_among(job: Job, chaos: Chaos, planned: list[tuple[str, float]]) -> str:
    outcome = "hung"

    async def build() -> None:
        nonlocal outcome
        outcome = await job.drive(chaos.address, 1.0)
        tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(build)
        for fault, wait_s in planned:
            await anyio.sleep(wait_s)
            match fault:
                case "fin":
                    chaos.cut(with_fin=True)
                case "adbd":
                    with anyio.CancelScope(shield=True):
                        await run_sync(restart_adbd, job.box.name)
                case "reboot":
                    with anyio.CancelScope(shield=True):
                        await run_sync(partial(reboot, job.box.name))
                case "one_byte":
                    chaos.faults = Faults(segment_bytes=7)
                    chaos.cut()
                case "latency":
                    chaos.faults = Faults(latency_s=0.05)
                    chaos.cut()
                case _:
                    await _happen(fault, job, chaos)
    return outcome
