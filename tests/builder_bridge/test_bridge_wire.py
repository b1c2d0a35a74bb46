"""What goes over the wire: everything once, after that what changed, and next to nothing else."""

from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from builder_bridge.adb import connect
from builder_bridge.box import Box
from builder_bridge.bridge import Bridge, open_bridge
from builder_bridge.build import BuildSpec, BuildState, RunId, StateChanged
from builder_bridge.workspace.scan import scan
from tests.chaos import Chaos, open_chaos
from tests.fake_prefix import make_workspace

pytestmark = [pytest.mark.box, pytest.mark.anyio]
FILES = 10_000


async def bytes_until_gradle(chaos: Chaos, bridge: Bridge, run_id: RunId, workspace: Path) -> int:
    """Give how many bytes went both ways from the scan until Gradle was started."""
    before = chaos.up_bytes + chaos.down_bytes
    await bridge.submit(run_id, BuildSpec(), await anyio.to_thread.run_sync(scan, workspace))
    sent = 0
    async for event in bridge.follow(run_id):
        if event == StateChanged(BuildState.RUNNING):
            sent = chaos.up_bytes + chaos.down_bytes - before
    assert (await bridge.result(run_id)).is_success
    return sent


async def test_one_changed_file_of_ten_thousand_costs_little_and_none_costs_next_to_nothing(
    fake_box: Box, new_run: Callable[[], RunId], tmp_path: Path
) -> None:
    workspace = make_workspace(tmp_path / "workspace", lines=1)
    fill(workspace)
    async with (
        open_chaos(fake_box.host, fake_box.port) as chaos,
        connect(chaos.address) as adb,
        open_bridge(adb, ("run_as",), memory=tmp_path / "memory") as bridge,
    ):
        await bytes_until_gradle(chaos, bridge, new_run(), workspace)
        # The pings of a slow moment are on the wire, too; a quiet hand-off of three shows what it needs.
        unchanged = [await bytes_until_gradle(chaos, bridge, new_run(), workspace) for _ in range(3)]
        assert min(unchanged) < 4 << 10
        (workspace / "app/src/p7/F7.java").write_text("class F7 { int changed; }")
        assert await bytes_until_gradle(chaos, bridge, new_run(), workspace) < 64 << 10


def fill(workspace: Path) -> None:
    for number in range(FILES):
        path = workspace / f"app/src/p{number % 100}/F{number}.java"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"class F{number} {{ }}")
