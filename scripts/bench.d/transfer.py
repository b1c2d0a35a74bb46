"""Move files, commands and output between this host and adbd: ours against adb, adb-shell, adbutils.

Every row has two bars: its time against adb's (paired runs, median) and its CPU time, which must not be
more than that of adb's client and server together. On a line that is full the time can only be adb's
own, so 2 % are allowed for the clock there; CPU times under 20 ms are below what /proc can tell apart.
The exit code is 1 when a row misses a bar. `bare` is the floor for pushing: a blocking client that can
do nothing else.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parent)]

import anyio.from_thread
import structlog
from transfer_parts.peers import AdbShell, AdbUtils, Bare, Floor, Google, Ours, Peer
from transfer_parts.rows import PLACE, ROUND_TRIPS, Row, make_rows
from transfer_parts.slow_line import slow_line

from builder_bridge.adb import connect
from builder_bridge.box import Box, Kind, remove, start
from tests.real_adb import RealAdb, newest_adb, start_server

CLOCK_ERROR = 0.02
CPU_ERROR_S = 0.02
TUNED = {"ADB_BURST_MODE": "1", "ADB_DELAYED_ACK": "1"}


@dataclass(frozen=True)
class Line:
    """A line between host and phone, and the least that ours must be, times adb, for bulk on it.

    `bulk` scales the large payloads, so that a slow line does not take all evening.
    """

    name: str
    round_trip_s: float = 0.0
    bytes_per_s: float = float("inf")
    is_mtu_1500: bool = False
    push_bar: float = 1.0
    pull_bar: float = 1.0
    bulk: float = 1.0

    @property
    def is_slow(self) -> bool:
        return bool(self.round_trip_s) or self.bytes_per_s < float("inf")


LINES = [
    Line("loopback", push_bar=2.0),
    Line("mtu 1500", is_mtu_1500=True),
    Line("20 ms", round_trip_s=0.02, push_bar=4.0, pull_bar=4.0, bulk=0.5),
    Line("10 MB/s", bytes_per_s=10e6, bulk=0.2),
]


@dataclass(frozen=True)
class Measured:
    seconds: float
    cpu_s: float


@contextmanager
def open_peers(
    portal: anyio.from_thread.BlockingPortal, address: str, names: list[str]
) -> Iterator[list[Peer]]:
    """Connect every client that was asked for to the phone at an address."""
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        peers: list[Peer] = []
        if "ours" in names:
            adb = stack.enter_context(portal.wrap_async_context_manager(connect(address)))
            peers.append(Ours(portal, adb))
        if "adb" in names or "adbutils" in names:
            google = Google(stack.enter_context(run_server(home, {})), address)
            peers += [google] if "adb" in names else []
            peers += [AdbUtils(google)] if "adbutils" in names else []
        if "tuned" in names:
            peers.append(Google(stack.enter_context(run_server(home, TUNED)), address, "adb tuned"))
        if "adb-shell" in names:
            peers.append(AdbShell(address))
        yield peers


@contextmanager
def run_server(home: Path, environment: dict[str, str]) -> Iterator[RealAdb]:
    """Run an adb server of the bench's own."""
    before = {name: os.environ.get(name) for name in environment}
    os.environ.update(environment)
    try:
        adb = start_server(newest_adb(), home)
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
    try:
        yield adb
    finally:
        adb("kill-server")


def measure(peer: Floor, row: Row, work: Callable[[], object]) -> Measured:
    row.prepare()
    cpu_s, started = peer.cpu_s(), time.perf_counter()
    work()
    return Measured(time.perf_counter() - started, peer.cpu_s() - cpu_s)


def bar_of(line: Line, row: Row) -> float:
    return {"push": line.push_bar, "pull": line.pull_bar}.get(row.kind, 1.0)


def report(line: Line, row: Row, results: dict[str, list[Measured]]) -> dict[str, object]:
    """Print one row and give it for the JSON file: medians, and ratios of paired runs."""
    found: dict[str, object] = {"line": line.name, "row": row.name}
    seconds = {name: statistics.median(run.seconds for run in runs) for name, runs in results.items()}
    cpu_s = {name: statistics.mean(run.cpu_s for run in runs) for name, runs in results.items()}
    texts = []
    for name in results:
        found[name] = {"seconds": seconds[name], "cpu_s": cpu_s[name]}
        speed = f"{row.size_bytes / seconds[name] / 1e6:7.1f} MB/s"
        if not row.size_bytes:
            speed = f"{seconds[name] / ROUND_TRIPS * 1e3:7.2f} ms"
        texts.append(f"{name} {speed} cpu {cpu_s[name]:5.3f} s")
    verdict = ""
    if "ours" in results and "bare" in results:
        found["share_of_floor"] = share = paired_ratio(results["bare"], results["ours"])
        texts.append(f"{share:.0%} of the floor")
    if "ours" in results and "adb" in results:
        bar, ratio = bar_of(line, row), paired_ratio(results["adb"], results["ours"])
        cpu_ratio = cpu_s["ours"] / max(0.01, cpu_s["adb"])
        is_quick = ratio >= bar * (1 - CLOCK_ERROR if line.bytes_per_s < float("inf") else 1)
        is_lean = cpu_ratio <= 1 or cpu_s["ours"] - cpu_s["adb"] < CPU_ERROR_S
        found |= {"ratio": ratio, "bar": bar, "cpu_ratio": cpu_ratio, "is_reached": is_quick and is_lean}
        verdict = (
            f"{ratio:6.2f} x adb ({'ok' if is_quick else 'UNDER'} {bar:g}), "
            f"cpu {cpu_ratio:4.2f} x ({'ok' if is_lean else 'OVER'} 1)  "
        )
    print(f"{line.name:9} {row.name:22} {verdict}| {' | '.join(texts)}", flush=True)
    return found


def paired_ratio(above: list[Measured], below: list[Measured]) -> float:
    return statistics.median(one.seconds / other.seconds for one, other in zip(above, below, strict=True))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--reps", type=int, default=7, help="runs of each row; slow lines take at most 3")
    parser.add_argument("--scale", type=float, default=1.0, help="size of the payloads, times the named one")
    parser.add_argument("--lines", default="", help="some of: " + ", ".join(line.name for line in LINES))
    parser.add_argument("--rows", default="", help="only rows that contain one of these words, by comma")
    parser.add_argument(
        "--peers", default="ours,adb,bare", help="some of: ours,adb,bare,tuned,adb-shell,adbutils"
    )
    parser.add_argument("--json", type=Path, help="write all figures there")
    options = parser.parse_args()
    structlog.configure(processors=[structlog.processors.JSONRenderer()], logger_factory=lambda *_: _Silent())
    lines = [line for line in LINES if not options.lines or line.name in options.lines.split(",")]
    figures: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as folder, anyio.from_thread.start_blocking_portal() as portal:
        for line in lines:
            rows = make_rows(Path(folder) / line.name.replace("/", " "), options.scale, line.bulk)
            chosen = [row for row in rows if any(word in row.name for word in options.rows.split(","))]
            figures += measure_line(portal, line, chosen, options.peers.split(","), options.reps)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    judged = [found for found in figures if "is_reached" in found]
    reached = sum(bool(found["is_reached"]) for found in judged)
    print(f"{reached} of {len(judged)} rows reach their bars")
    return 1 if reached < len(judged) else 0


def measure_line(
    portal: anyio.from_thread.BlockingPortal, line: Line, rows: list[Row], names: list[str], reps: int
) -> list[dict[str, object]]:
    box = start(Kind.TINY, f"bench-{os.getpid()}", mtu_1500=line.is_mtu_1500, progress=print)
    try:
        with open_line(box, line) as address, open_peers(portal, address, names) as peers:
            portal.call(partial(_prepare, box.serial))
            floors = [Bare(address)] if "bare" in names and not line.is_slow else []
            figures = []
            for row in rows:
                works: list[tuple[Floor, Callable[[], object]]] = [
                    (peer, partial(row.work, peer)) for peer in peers
                ]
                works += [(floor, partial(row.floor, floor)) for floor in floors if row.floor]
                results: dict[str, list[Measured]] = {peer.name: [] for peer, _ in works}
                if not line.is_slow:  # the first run of all finds cold caches
                    for peer, work in works:
                        measure(peer, row, work)
                for _ in range(min(reps, 3) if line.is_slow else reps):
                    for peer, work in works:
                        results[peer.name].append(measure(peer, row, work))
                figures.append(report(line, row, results))
            return figures
    finally:
        remove(box.name)


@contextmanager
def open_line(box: Box, line: Line) -> Iterator[str]:
    if line.round_trip_s or line.bytes_per_s < float("inf"):
        with slow_line(box.host, box.port, line.round_trip_s, line.bytes_per_s) as address:
            yield address
    else:
        yield box.serial


async def _prepare(serial: str) -> None:
    from builder_bridge.adb import shell

    async with connect(serial) as adb:
        assert (await shell.run(adb, f"mkdir -p {PLACE}")).exit_code == 0


class _Silent:
    def msg(self, message: object) -> None: ...

    info = debug = warning = error = msg


if __name__ == "__main__":
    sys.exit(main())
