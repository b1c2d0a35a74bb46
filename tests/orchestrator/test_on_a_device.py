"""The service over a real adbd and the real runner, with a script where Gradle would be.

What fake phones cannot show: that the words of the service are words that a phone's shell takes.
"""

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from builder_bridge.box import Box
from orchestrator.app import create_app
from orchestrator.engine import lease
from orchestrator.engine.bridges import open_phone
from orchestrator.serving import serving
from orchestrator.settings import load_settings
from orchestrator.store import phones as phone_store
from tests.fake_prefix import lay_fake_prefix, make_workspace, starts_of
from tests.orchestrator.cli.test_build import ROOT
from tests.orchestrator.conftest import Running
from tests.orchestrator.test_builds import ended, submit, until
from tests.orchestrator.waiting import eventually

pytestmark = [pytest.mark.box, pytest.mark.anyio]
Held = Callable[[str], tuple[Path, Path]]


@pytest.fixture
def phone(tiny_box: Box) -> Box:
    lay_fake_prefix(tiny_box)
    return tiny_box


@pytest.fixture
def held(phone: Box, tmp_path: Path) -> Held:
    """Make a workspace whose build ends when a file appears on the device; gives both."""

    def make(name: str) -> tuple[Path, Path]:
        go = f"data/local/tmp/go-{uuid.uuid4().hex}"
        run = f"while [ ! -f /{go} ]; do sleep 0.05; done; rm -f /{go}"
        return make_workspace(tmp_path / name, lines=3, run=run), phone.root / go

    return make


@pytest.fixture
async def running(phone: Box, tmp_path: Path) -> AsyncIterator[Running]:
    async with _service(phone, tmp_path) as running:
        yield running


@asynccontextmanager
async def _service(phone: Box, folder: Path) -> AsyncIterator[Running]:
    phones = [{"address": phone.serial}]
    settings = load_settings(
        data_dir=folder / "data", workspace_roots=[str(folder)], phones=phones, dispatch_poll_s=0.1
    ).settings
    app = create_app(settings, open_phone)
    async with serving(app, "127.0.0.1", 0) as url, httpx.AsyncClient(base_url=url, timeout=60) as http:
        yield Running(url, http, app.state.service, settings, folder)


async def test_a_deadline_ends_a_run_on_the_device_and_the_phone_builds_on(
    running: Running, held: Held, tmp_path: Path
) -> None:
    workspace, _ = held("slow")
    slow = await ended(running, (await submit(running, workspace, deadline_s=1.0))["id"])
    assert (slow["outcome"], slow["cause"]) == ("timed_out", "timed-out")
    quick = await submit(running, make_workspace(tmp_path / "quick"), route="shell_dir")
    build = await ended(running, quick["id"])
    assert (build["outcome"], build["runs"][0]["route"]) == ("succeeded", "shell_dir")
    [seen] = (await running.http.get("/v1/phones")).json()["phones"]
    assert (seen["health"]["battery_percent"], seen["health"]["unknown"]) == (87, [])


async def test_a_run_that_was_given_up_is_ended_on_the_device_before_the_phone_is_used(
    running: Running, held: Held, phone: Box
) -> None:
    workspace, _ = held("given-up")
    build_id = (await submit(running, workspace, route="shell_dir"))["id"]
    await until(running, build_id, "gradle")
    stores = running.service.stores
    await stores.database.run(lambda c: lease.fence(c, build_id, f"{build_id}-1"))
    stores.bells.ring("phones")

    async def is_cleared() -> bool:
        known: Any = await stores.database.read(lambda c: phone_store.get(c, phone.serial))
        return known is not None and known.stop_run is None and known.state == "online"

    await eventually(is_cleared)
    assert (await ended(running, build_id))["outcome"] == "cancelled"


def test_ctrl_c_leaves_the_build_on_the_phone_and_says_nothing_but_that(
    held: Held, phone: Box, tmp_path: Path
) -> None:
    workspace, go = held("kept")
    program = [sys.executable, "-m", "orchestrator", "build", str(workspace), "--device", phone.serial]
    environment = {**os.environ, "POCKETBUILD_DATA_DIR": str(tmp_path / "data"), "PYTHONPATH": str(ROOT)}
    said = []
    with subprocess.Popen(
        program,
        cwd=tmp_path,
        env=environment,
        text=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        # What a shell started in the background ignores this signal, and so would all that it starts.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    ) as first:
        for line in first.stderr or ():
            said.append(line.strip())
            if said[-1].endswith("running"):
                first.send_signal(signal.SIGINT)
    assert first.returncode == 130, said
    stopped_at = next(number for number, line in enumerate(said) if line.endswith("running"))
    told = [line for line in said[stopped_at + 1 :] if line]
    assert len(told) == 1, told
    assert "goes on; run the command again to take it up" in told[0]
    go.touch()
    again = subprocess.run(
        program, cwd=tmp_path, env=environment, text=True, capture_output=True, timeout=240, check=False
    )
    assert again.returncode == 0, again.stderr
    assert " joined" in again.stderr
    build_id = told[0].split()[1]
    assert [run for run in starts_of(phone, "run_as") if run.startswith(build_id)] == [f"{build_id}-1"]


async def test_reports_of_a_run_come_from_the_device_into_digest_and_junit(
    running: Running, tmp_path: Path
) -> None:
    result = '<testcase name="adds" classname="SumTest"><failure message="expected 3">at SumTest</failure>'
    folder = "app/build/test-results/test"
    written = f"<testsuite>{result}</testcase></testsuite>".replace('"', '\\"')
    run = f'mkdir -p {folder}; echo "{written}" >{folder}/TEST-SumTest.xml'
    workspace = make_workspace(tmp_path / "tested", lines=3, code=1, run=run)
    build = await ended(running, (await submit(running, workspace))["id"])
    assert build["outcome"] == "failed"
    digest = (await running.http.get(f"/v1/builds/{build['id']}/digest")).json()
    assert "SumTest > adds" in digest["text"]
    assert digest["digest"]["facts"]["route"] == "run_as"
    [junit] = [each for each in build["artifacts"] if each["kind"] == "junit"]
    text = (await running.http.get(f"/v1/builds/{build['id']}/artifacts/{junit['number']}")).text
    assert 'tests="1" failures="1"' in text
