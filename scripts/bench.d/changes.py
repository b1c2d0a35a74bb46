"""Hand over a workspace of 10,000 files, then one changed file, then nothing: bytes and time to Gradle."""

import sys
import tempfile
import time
from pathlib import Path

import anyio
import structlog

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT))

from builder_bridge.adb import connect
from builder_bridge.box import Kind, remove, start
from builder_bridge.bridge import Bridge, open_bridge
from builder_bridge.build import BuildSpec, BuildState, RunId, StateChanged
from builder_bridge.workspace.hashes import HashCache
from builder_bridge.workspace.scan import scan
from tests.chaos import Chaos, open_chaos
from tests.fake_prefix import lay_fake_prefix, make_workspace

NAME = "bench-changes"
FILES = 10_000
TRIES = 5


def main() -> int:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    box = start(Kind.TINY, NAME, progress=print)
    try:
        lay_fake_prefix(box)
        with tempfile.TemporaryDirectory() as scratch:
            return anyio.run(measure, box.host, box.port, Path(scratch))
    finally:
        remove(NAME)


async def measure(host: str, port: int, scratch: Path) -> int:
    workspace = make_workspace(scratch / "workspace", lines=1)
    files = fill(workspace)
    await anyio.sleep(2.5)  # digests are remembered only of files that have been still for two seconds
    passed = True
    async with (
        open_chaos(host, port) as chaos,
        connect(chaos.address) as adb,
        open_bridge(adb, ("run_as",), memory=scratch / "memory") as bridge,
    ):
        size, seconds = await hand_over(chaos, bridge, workspace, scratch)
        print(f"first, {FILES} files: {size:,} bytes, {seconds:.2f} s to Gradle's start")
        for name, limit, is_changing in (("one file changed", 64 << 10, True), ("unchanged", 4 << 10, False)):
            tries = []
            for number in range(TRIES):
                if is_changing:
                    files[number].write_text(f"class Changed{number} {{ }}")
                tries.append(await hand_over(chaos, bridge, workspace, scratch))
            size = max(size for size, _ in tries)
            seconds = sorted(seconds for _, seconds in tries)[TRIES // 2]
            told = f"{size:,} bytes (bar {limit:,}), {seconds:.2f} s to Gradle's start (bar 1.00), median"
            print(f"{name}: {told}")
            passed &= size < limit and seconds < 1.0
    return 0 if passed else 1


def fill(workspace: Path) -> list[Path]:
    files = []
    for number in range(FILES):
        path = workspace / f"app/src/p{number % 100}/F{number}.java"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"class F{number} {{ }}")
        files.append(path)
    return files


async def hand_over(chaos: Chaos, bridge: Bridge, workspace: Path, scratch: Path) -> tuple[int, float]:
    """Scan, submit and follow; give bytes both ways and seconds until Gradle was started."""
    before, began_s = chaos.up_bytes + chaos.down_bytes, time.perf_counter()
    hashes = HashCache(scratch / "hashes.json")
    snapshot = scan(workspace, hashes=hashes)
    hashes.save()
    run_id = RunId(f"r-{time.time_ns()}")
    await bridge.submit(run_id, BuildSpec(), snapshot)
    size, seconds = 0, 0.0
    async for event in bridge.follow(run_id):
        if event == StateChanged(BuildState.RUNNING):
            size = chaos.up_bytes + chaos.down_bytes - before
            seconds = time.perf_counter() - began_s
    assert (await bridge.result(run_id)).is_success
    return size, seconds


if __name__ == "__main__":
    sys.exit(main())
