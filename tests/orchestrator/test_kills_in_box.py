"""One build on a real adbd and the real runner, whose service is killed at every stage of it.

Each stage is held where it is until the service has been killed and started again: the transfers by a
stall on the way, what happens on the device by a tool or a script that waits for a file.
"""

import hashlib
import os
import random
import subprocess
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from anyio import to_thread

from builder_bridge.box import Box
from tests.chaos import Faults, open_chaos
from tests.fake_prefix import FOLDERS, files_of, lay_fake_prefix, make_workspace, starts_of
from tests.orchestrator.processes import kill, start_service
from tests.orchestrator.waiting import eventually

pytestmark = [pytest.mark.box, pytest.mark.slow, pytest.mark.anyio]
ROUTE = "shell_dir"
PAYLOAD_BYTES = 6 << 20
FIRST_BYTES = 1 << 20
UNZIP = """#!/system/bin/sh
while [ -f "${0%/bin/unzip}/hold-unpack" ]; do sleep 0.05; done
exec unzip "$@"
"""
STAT = """#!/system/bin/sh
while [ -f "$PREFIX/hold-collect" ]; do sleep 0.05; done
exec /system/bin/stat "$@"
"""


@pytest.fixture
def prefix(tiny_box: Box) -> Iterator[Path]:
    """Lay a prefix whose unzip and stat wait while there is a file; give the prefix on this host."""
    yield hold_on_device(tiny_box)
    lay_fake_prefix(tiny_box)  # others build on this phone, too


def hold_on_device(box: Box) -> Path:
    lay_fake_prefix(box)
    prefix = files_of(box, ROUTE) / "usr"
    for name, text in (("unzip", UNZIP), ("stat", STAT)):
        tool = prefix / "bin" / name
        tool.write_text(text)
        tool.chmod(0o755)
        os.chown(tool, FOLDERS[ROUTE][1], FOLDERS[ROUTE][1])
    for stage in ("unpack", "collect"):
        (prefix / f"hold-{stage}").touch()
    return prefix


class Killed:
    """A service that is killed and started again on the same data."""

    def __init__(self, folder: Path, address: str) -> None:
        self._data = folder / "data"
        self._settings: dict[str, Any] = {
            "phones": [{"address": address, "route": ROUTE}],
            "workspace_roots": [str(folder)],
            "dispatch_poll_s": 0.1,
        }
        self._process: subprocess.Popen[bytes] | None = None
        self.url = ""

    async def start(self) -> None:
        self._process, self.url = await to_thread.run_sync(
            lambda: start_service(self._data, None, **self._settings)
        )

    def kill(self) -> None:
        if self._process is not None:
            kill(self._process)
            self._process = None


async def test_a_build_outlives_a_service_that_is_killed_at_every_stage_of_it(
    tiny_box: Box, prefix: Path, tmp_path: Path
) -> None:
    go = f"data/local/tmp/go-{uuid.uuid4().hex}"
    workspace = make_workspace(tmp_path / "w", run=f"while [ ! -f /{go} ]; do sleep 0.05; done")
    payload = random.Random(1).randbytes(PAYLOAD_BYTES)
    (workspace / "app/src/c.txt").write_bytes(payload)
    async with (
        open_chaos("127.0.0.1", tiny_box.port, Faults(stall_up=(FIRST_BYTES, 3600.0))) as way,
        httpx.AsyncClient(timeout=60) as http,
    ):
        service = Killed(tmp_path, way.address)
        await service.start()
        try:
            answer = await http.post(f"{service.url}/v1/builds", json={"path": str(workspace)})
            build_id = answer.raise_for_status().json()["id"]

            async def build() -> dict[str, Any]:
                body: dict[str, Any] = (await http.get(f"{service.url}/v1/builds/{build_id}")).json()
                assert body["outcome"] in (None, "succeeded"), body
                return body

            async def killed_at(stage: str, up_bytes: int = 0, down_bytes: int = 0) -> None:
                async def is_there() -> bool:
                    is_moved = way.up_bytes >= up_bytes and way.down_bytes >= down_bytes
                    return is_moved and (await build())["stage"] == stage

                await eventually(is_there)
                service.kill()
                way.cut()  # the kernel of a killed process hangs up; the stalled way would never tell

            await killed_at("upload", up_bytes=FIRST_BYTES)
            way.faults = Faults()
            await service.start()
            await killed_at("unpack")
            await service.start()
            (prefix / "hold-unpack").unlink()
            await killed_at("gradle")
            await service.start()
            (tiny_box.root / go).touch()
            await killed_at("collect")
            way.faults = Faults(stall_down=(FIRST_BYTES, 3600.0))
            await service.start()
            (prefix / "hold-collect").unlink()
            await killed_at("fetch", down_bytes=way.down_bytes + FIRST_BYTES)
            way.faults = Faults()
            await service.start()

            async def is_over() -> bool:
                return bool((await build())["state"] == "finished")

            await eventually(is_over)
            ended = await build()
            base = f"{service.url}/v1/builds/{build_id}"
            log = (await http.get(f"{base}/log")).content
            apk = (await http.get(f"{base}/artifacts/0")).content
            phones = (await http.get(f"{service.url}/v1/phones")).json()["phones"]
        finally:
            service.kill()
    assert (ended["outcome"], ended["attempt"]) == ("succeeded", 1)
    run_id = f"{build_id}-1"
    assert Counter(starts_of(tiny_box, ROUTE))[run_id] == 1
    on_device = await anyio.Path(
        files_of(tiny_box, ROUTE) / "pocketbuild/runs" / run_id / "build.log"
    ).read_bytes()
    assert log == on_device
    assert hashlib.sha256(log).hexdigest() == ended["runs"][0]["log_sha256"]
    assert apk == b"first\nsecond\n" + payload
    assert hashlib.sha256(apk).hexdigest() == ended["artifacts"][0]["sha256"]
    assert [phone["is_busy"] for phone in phones] == [False]
