"""Runs of the agent are kept by age and size; what is at work or waits for a build is never touched."""

import os
import time
from pathlib import Path
from typing import Any

import pytest

from agent.entries import Starting
from agent.redact import Redactor
from agent.transcript import FILE_NAME, Transcript
from orchestrator.agent_keys import FOLDER as KEYS
from orchestrator.agent_keys import claim
from orchestrator.engine.janitor import SWEPT_FILE
from orchestrator.engine.retention import DAY_S
from tests.orchestrator.conftest import Running, Start
from tests.orchestrator.test_agent_list import keep, run_id_of, stopped
from tests.orchestrator.test_builds import ended, submit, until
from tests.orchestrator.waiting import eventually
from tests.orchestrator.workspaces import make_workspace

pytestmark = pytest.mark.anyio
BUILD = "8f14e45fceea167a5a36-1"


def age(path: Path, days: float) -> None:
    then_s = time.time() - days * DAY_S
    os.utime(path, (then_s, then_s))


def keep_old(data: Path, number: int, *entries: Any, days: float) -> str:
    run_id = keep(data, number, *entries)
    age(data / "agents" / run_id / FILE_NAME, days)
    return run_id


async def sweep(running: Running, *, dry_run: bool) -> dict[str, int]:
    answer = await running.http.post("/v1/retention", params={"dry_run": dry_run})
    assert answer.status_code == 200, answer.text
    return {run["id"]: run["size_bytes"] for run in answer.json()["agent_runs"]}


async def listed(running: Running) -> set[str]:
    return {run["id"] for run in (await running.http.get("/v1/runs")).json()["runs"]}


async def test_old_runs_go_with_all_that_was_kept_of_them_and_a_dry_run_says_which_and_how_much(
    start: Start,
) -> None:
    async with start(retention={"agent_max_age_days": 10}) as running:
        data = running.settings.data_dir
        old = keep_old(data, 1, stopped("green"), days=11)
        put_down = keep_old(data, 2, stopped("interrupted"), days=12)
        young = keep_old(data, 3, stopped("green"), days=9)
        undo = data / "agents" / old / "edits/1/before-0"
        undo.parent.mkdir(parents=True)
        undo.write_bytes(bytes(70_000))
        claim(data, "local", "old-key", "0" * 64, old)
        claim(data, "local", "young-key", "0" * 64, young)
        for note in (data / KEYS).iterdir():
            age(note, 9)
        never_begun, begins = run_id_of(4), run_id_of(5)
        for run_id, days in ((never_begun, 11), (begins, 0)):
            (data / "agents" / run_id).mkdir()
            age(data / "agents" / run_id, days)
        told = await sweep(running, dry_run=True)
        assert set(told) == {old, put_down, never_begun}
        assert told[old] > 70_000 > told[put_down] > 100
        assert await listed(running) == {old, put_down, young, never_begun, begins}
        assert await sweep(running, dry_run=False) == told
        assert await listed(running) == {young, begins}
        assert not list((data / "scratch").iterdir())
        assert len(list((data / KEYS).iterdir())) == 1
        assert await sweep(running, dry_run=True) == {}


async def test_the_oldest_go_until_the_rest_fits(start: Start) -> None:
    async with start(retention={"agent_max_age_days": None, "agent_max_bytes": 100_000}) as running:
        data = running.settings.data_dir
        kept = [keep_old(data, number, stopped("green"), days=10 - number) for number in range(4)]
        for run_id in kept:
            (data / "agents" / run_id / "outputs").mkdir()
            (data / "agents" / run_id / "outputs/1.txt").write_bytes(bytes(40_000))
        assert set(await sweep(running, dry_run=False)) == set(kept[:2])
        assert await listed(running) == set(kept[2:])


async def test_a_run_at_work_and_one_whose_build_runs_are_never_touched(start: Start, projects: Path) -> None:
    async with start("p1", retention={"agent_max_age_days": 1}) as running:
        data = running.settings.data_dir
        live = (await submit(running, make_workspace(projects / "w", held_attempt=1)))["id"]
        await until(running, live, "gradle")
        waits = keep_old(data, 1, Starting("c1", {"build_id": live}), days=9)
        other = keep_old(data, 2, Starting("c1", {"build_id": BUILD}), days=9)
        at_work = keep(data, 3)
        with Transcript(data / "agents" / at_work, Redactor()):
            age(data / "agents" / at_work / FILE_NAME, 9)
            assert set(await sweep(running, dry_run=True)) == {other}
            assert set(await sweep(running, dry_run=False)) == {other}
        next(running.phones.glob(f"*/runs/{live}-1/hold")).unlink()
        await ended(running, live)
        assert set(await sweep(running, dry_run=False)) == {waits, at_work}


async def test_what_is_due_is_removed_soon_after_a_start_however_short_services_live(start: Start) -> None:
    settings = {"retention": {"every_s": 3600.0, "agent_max_age_days": 1}}
    async with start(**settings) as running:
        data = running.settings.data_dir
    old = keep_old(data, 1, stopped("green"), days=9)
    age(data / SWEPT_FILE, 1)
    async with start(**settings) as running:
        assert await listed(running) == {old}, "not at once: who started the service waits for something"
    # Each start counts from the last sweep, and the time between sweeps is an upper bound of the wait.
    async with start(retention={"every_s": 0.05, "agent_max_age_days": 1}) as running:

        async def is_gone() -> bool:
            return not await listed(running)

        await eventually(is_gone)
