"""Move files, commands and output between this host and adbd: ours against adb, adb-shell, adbutils."""

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
from pathlib import Path, PurePosixPath

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parent)]

import anyio.from_thread
import structlog
from transfer_parts.peers import AdbShell, AdbUtils, Google, Ours, Peer
from transfer_parts.slow_line import slow_line

from builder_bridge.adb import connect
from builder_bridge.box import Box, Kind, remove, start
from tests.real_adb import RealAdb, newest_adb, start_server

PLACE = PurePosixPath("/data/local/tmp/bench")
ROUND_TRIPS = 20
TUNED = {"ADB_BURST_MODE": "1", "ADB_DELAYED_ACK": "1"}


@dataclass(frozen=True)
class Line:
    """A line between host and phone, and the least that ours must be, times adb, for bulk on it."""

    name: str
    round_trip_s: float = 0.0
    bytes_per_s: float = float("inf")
    is_mtu_1500: bool = False
    push_bar: float = 1.0
    pull_bar: float = 1.0


LINES = [
    Line("loopback", push_bar=2.0),
    Line("mtu 1500", is_mtu_1500=True, push_bar=1.0),
    Line("20 ms", round_trip_s=0.02, push_bar=4.0, pull_bar=4.0),
    Line("10 MB/s", bytes_per_s=10e6),
]


@dataclass(frozen=True)
class Row:
    """One thing to do; `size_bytes` 0 counts calls instead of bytes."""

    name: str
    size_bytes: int
    work: Callable[[Peer], object]
    prepare: Callable[[], object] = lambda: None


@dataclass(frozen=True)
class Measured:
    seconds: float
    cpu_s: float


def make_rows(folder: Path, scale: float) -> list[Row]:
    """Lay out the files and say what is done with them."""
    large, packed, many, sources = (
        folder / "large",
        folder / "packed.zip",
        folder / "many",
        folder / "sources",
    )
    large.write_bytes(os.urandom(int((100 << 20) * scale)))
    packed.write_bytes(os.urandom(int((50 << 20) * scale)))
    many_count = int(2000 * scale)
    for number in range(many_count):
        path = many / f"d{number % 20}" / f"f{number}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.urandom(4096))
    source_bytes = 0
    for path in sorted(Path(os.__file__).parent.rglob("*.py")):
        if source_bytes > 15e6 * scale:
            break
        place = sources / f"{source_bytes}.py"
        place.parent.mkdir(exist_ok=True)
        place.write_bytes(path.read_bytes())
        source_bytes += path.stat().st_size
    out_bytes = int((200 << 20) * scale)

    def read_output(peer: Peer) -> None:
        size_bytes = peer.stdout_bytes(f"head -c {out_bytes} /dev/zero")
        assert size_bytes == out_bytes, (peer.name, size_bytes)

    return [
        Row("push 100 MB", large.stat().st_size, lambda peer: peer.push(large, PLACE / "large")),
        Row(
            "pull 100 MB",
            large.stat().st_size,
            lambda peer: peer.pull(PLACE / "large", folder / "back"),
            partial((folder / "back").unlink, missing_ok=True),
        ),
        Row("push 50 MB zip", packed.stat().st_size, lambda peer: peer.push(packed, PLACE / "packed.zip")),
        Row("push 2,000 x 4 KB", 4096 * many_count, lambda peer: peer.push_tree(many, PLACE)),
        Row("push 15 MB of sources", source_bytes, lambda peer: peer.push_tree(sources, PLACE)),
        Row("shell round trip", 0, lambda peer: [peer.shell("true") for _ in range(ROUND_TRIPS)]),
        Row("stdout 200 MB", out_bytes, read_output),
    ]


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


def measure(peer: Peer, row: Row) -> Measured:
    row.prepare()
    cpu_s, started = peer.cpu_s(), time.perf_counter()
    row.work(peer)
    return Measured(time.perf_counter() - started, peer.cpu_s() - cpu_s)


def bar_of(line: Line, row: Row) -> float:
    if row.name.startswith(("push 100", "push 50")):
        return line.push_bar
    return line.pull_bar if row.name.startswith("pull") else 1.0


def report(line: Line, row: Row, results: dict[str, list[Measured]]) -> dict[str, object]:
    """Print one row and give it for the JSON file: medians, and ratios of paired runs."""
    found: dict[str, object] = {"line": line.name, "row": row.name}
    texts = []
    for name, runs in results.items():
        seconds = statistics.median(run.seconds for run in runs)
        cpu_s = statistics.median(run.cpu_s for run in runs)
        speed = (
            f"{row.size_bytes / seconds / 1e6:7.1f} MB/s"
            if row.size_bytes
            else f"{seconds / ROUND_TRIPS * 1e3:7.2f} ms"
        )
        found[name] = {"seconds": seconds, "cpu_s": cpu_s}
        texts.append(f"{name} {speed} cpu {cpu_s:5.2f} s")
    verdict = ""
    if "ours" in results and "adb" in results:
        pairs = list(zip(results["ours"], results["adb"], strict=True))
        ratio = statistics.median(adb.seconds / ours.seconds for ours, adb in pairs)
        cpu_ratio = statistics.median(ours.cpu_s for ours, _ in pairs) / max(
            0.01, statistics.median(adb.cpu_s for _, adb in pairs)
        )
        bar = bar_of(line, row)
        found |= {"ratio": ratio, "bar": bar, "cpu_ratio": cpu_ratio}
        verdict = (
            f"{ratio:6.2f} x adb ({'ok' if ratio >= bar else 'UNDER'} {bar:g}), cpu {cpu_ratio:4.2f} x  "
        )
    print(f"{line.name:9} {row.name:22} {verdict}| {' | '.join(texts)}", flush=True)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reps", type=int, default=5, help="runs of each row; slow lines take at most 3")
    parser.add_argument("--scale", type=float, default=1.0, help="size of the payloads, times the named one")
    parser.add_argument("--lines", default="", help="some of: " + ", ".join(line.name for line in LINES))
    parser.add_argument("--rows", default="", help="only rows that contain one of these words, by comma")
    parser.add_argument(
        "--peers", default="ours,adb,tuned", help="some of: ours,adb,tuned,adb-shell,adbutils"
    )
    parser.add_argument("--json", type=Path, help="write all figures there")
    options = parser.parse_args()
    structlog.configure(processors=[structlog.processors.JSONRenderer()], logger_factory=lambda *_: _Silent())
    lines = [line for line in LINES if not options.lines or line.name in options.lines.split(",")]
    figures: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as folder, anyio.from_thread.start_blocking_portal() as portal:
        rows = [
            row
            for row in make_rows(Path(folder), options.scale)
            if not options.rows or any(word in row.name for word in options.rows.split(","))
        ]
        for line in lines:
            figures += measure_line(portal, line, rows, options.peers.split(","), options.reps)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    under = [
        found for found in figures if float(str(found.get("ratio", 9))) < float(str(found.get("bar", 0)))
    ]
    print(f"{len(figures) - len(under)} of {len(figures)} rows reach their bars")
    return 1 if under else 0


def measure_line(
    portal: anyio.from_thread.BlockingPortal, line: Line, rows: list[Row], names: list[str], reps: int
) -> list[dict[str, object]]:
    box = start(Kind.TINY, f"bench-{os.getpid()}", mtu_1500=line.is_mtu_1500, progress=print)
    try:
        with open_line(box, line) as address, open_peers(portal, address, names) as peers:
            portal.call(partial(_prepare, box.serial))
            figures = []
            for row in rows:
                is_slow = line.bytes_per_s < 1e9 or line.round_trip_s
                results: dict[str, list[Measured]] = {peer.name: [] for peer in peers}
                for _ in range(min(reps, 3) if is_slow else reps):
                    for peer in peers:
                        results[peer.name].append(measure(peer, row))
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
