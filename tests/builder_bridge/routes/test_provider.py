"""Route `provider` against a stand-in for the companion that answers as Android's `content` does."""

import hashlib
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import anyio
import pytest

from builder_bridge.adb import connect
from builder_bridge.box import Box
from builder_bridge.bridge import open_bridge
from builder_bridge.build import BuildSpec, LogChunk, RunId
from builder_bridge.errors import RouteUnavailable
from builder_bridge.workspace.scan import scan
from tests.fake_prefix import make_workspace

pytestmark = [pytest.mark.box, pytest.mark.anyio]
CASE = Path(__file__).parent.parent.parent / "cases/bridge/content"


@pytest.fixture
def box_with_companion(fake_box: Box) -> Iterator[Box]:
    program = fake_box.root / "system/bin/content"
    shutil.copyfile(CASE, program)
    program.chmod(0o755)
    yield fake_box
    program.unlink()


async def test_a_companions_provider_carries_a_build(
    box_with_companion: Box, new_run: Callable[[], RunId], tmp_path: Path
) -> None:
    workspace = make_workspace(tmp_path / "workspace", lines=3, pause=0.5)
    run_id, log = new_run(), b""
    async with connect(box_with_companion.serial) as adb:
        async with open_bridge(adb, ("shell_dir",), memory=tmp_path / "memory"):
            pass  # the companion would bring its own runner
        async with open_bridge(adb, ("provider",), memory=tmp_path / "memory") as bridge:
            await bridge.submit(run_id, BuildSpec(), await anyio.to_thread.run_sync(scan, workspace))
            async for event in bridge.follow(run_id):
                if isinstance(event, LogChunk):
                    log += event.data
            result = await bridge.result(run_id)
            (artifact,) = result.artifacts
            fetched = await bridge.fetch(run_id, artifact, tmp_path / "app.apk")
    assert result.is_success
    assert result.facts["route"] == "provider"
    assert hashlib.sha256(log).hexdigest() == result.log_sha256
    assert fetched.read_bytes() == b"first\nsecond\n"


async def test_a_phone_without_the_companion_says_so(fake_box: Box) -> None:
    async with connect(fake_box.serial) as adb:
        with pytest.raises(RouteUnavailable, match="Route provider"):
            async with open_bridge(adb, ("provider",)):
                pass
