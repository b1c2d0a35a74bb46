"""Fetch an artifact in one stream and in several, on lines with and without windows.

Without windows (`delayed_ack`) it goes through adb's own server, which by default negotiates none; with
them directly. The round trip is made by a line of its own, so `several` is what the bridge would choose
there. Runs are paired, and the medians of their ratios are printed; on the lines without windows whose
round trip is 20 ms or more, several streams must be at least twice as fast, else the exit code is 1.
"""

import argparse
import hashlib
import os
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parent)]

import anyio
import structlog
from transfer_parts.slow_line import slow_line

from builder_bridge.adb import AdbConnection, connect
from builder_bridge.adb.line import round_trip_s
from builder_bridge.box import Kind, remove, start
from builder_bridge.build import Artifact, RunId
from builder_bridge.fetch import fetch_artifact
from builder_bridge.ranges import streams_for
from builder_bridge.routes.probe import pick_route
from tests.fake_prefix import files_of, lay_fake_prefix
from tests.real_adb import newest_adb, start_server

RUN, ROUTE = RunId("bench-fetch"), "shell_dir"
BAR = 2.0


async def measure(
    adb: AdbConnection, artifact: Artifact, folder: Path, reps: int
) -> tuple[int, list[float], list[float]]:
    """Give the number of streams that is chosen, and seconds in one and in so many, run by run."""
    route = await pick_route(adb, [ROUTE])
    several = streams_for(artifact.size_bytes, adb.has_windows, await round_trip_s(adb))
    seconds: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(reps):
        for is_shared in (False, True):
            streams = max(2, several) if is_shared else 1
            started = time.perf_counter()
            await fetch_artifact(route, RUN, artifact, folder / "app.apk", streams)
            seconds[is_shared].append(time.perf_counter() - started)
    return several, seconds[False], seconds[True]


async def main_async(options: argparse.Namespace) -> int:
    box = start(Kind.TINY, f"bench-{os.getpid()}", progress=print)
    missed = 0
    try:
        lay_fake_prefix(box, [ROUTE])
        content = os.urandom(options.megabytes << 20)
        artifact = Artifact(1, "app/app.apk", "apk", len(content), hashlib.sha256(content).hexdigest())
        run = files_of(box, ROUTE) / "pocketbuild/runs" / RUN
        (run / "artifacts").mkdir(parents=True)
        (run / "digest").write_text("x\n")
        (run / "artifacts/1").write_bytes(content)
        for path in [run.parent.parent, *run.parent.parent.rglob("*")]:
            os.chown(path, 2000, 2000)
        for round_trip_ms in map(float, options.round_trips.split(",")):
            for has_windows in (True, False):
                with ExitStack() as stack:
                    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
                    address = stack.enter_context(slow_line(box.host, box.port, round_trip_ms / 1000))
                    if not has_windows:
                        adb = start_server(newest_adb(), folder)
                        stack.callback(partial(adb, "kill-server"))
                        adb.connect(address)
                        os.environ["ANDROID_ADB_SERVER_PORT"] = str(adb.server_port)
                        address = f"server:{address}"
                    async with connect(address) as connection:
                        chosen, one, several = await measure(connection, artifact, folder, options.reps)
                    ratio = statistics.median(a / b for a, b in zip(one, several, strict=True))
                    pays = not has_windows and round_trip_ms >= 20
                    missed += pays and ratio < BAR
                    speeds = [len(content) / statistics.median(runs) / 1e6 for runs in (one, several)]
                    print(
                        f"{round_trip_ms:5.1f} ms, {'windows' if has_windows else 'no windows':10}  "
                        f"one stream {speeds[0]:6.1f} MB/s, {max(2, chosen)} streams {speeds[1]:6.1f} MB/s: "
                        f"{ratio:5.2f} x; chosen: {chosen}",
                        flush=True,
                    )
    finally:
        remove(box.name)
    return 1 if missed else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--reps", type=int, default=3)
    parser.add_argument("--megabytes", type=int, default=48)
    parser.add_argument("--round-trips", default="0,5,20,50", help="milliseconds, by comma")
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
    return anyio.run(main_async, parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
