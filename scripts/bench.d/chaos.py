"""Break connections, phones and disks at every stage of a build, then 200 builds at random."""

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

import anyio
import structlog

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT))

from builder_bridge.box import Box, Kind, find, remove, start
from tests.fake_prefix import lay_fake_prefix
from tests.handoff_chaos import Cell, cells, needs_killing_init, run_cell, run_random

SLOW_FAULTS = frozenset({"stall", "one_byte"})
BOXES = {False: "bench-chaos", True: "bench-chaos-killing"}
"""By whether init ends adbd's children with adbd."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="of the random builds")
    parser.add_argument("--builds", type=int, default=200, help="how many random builds")
    parser.add_argument("--slice", action="store_true", help="a seeded part of it, in under three minutes")
    options = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    table = cells()
    builds = options.builds
    if options.slice:
        quick = [cell for cell in table if cell.fault not in SLOW_FAULTS]
        table = random.Random(options.seed).sample(quick, 8)
        builds = 12
    try:
        for kills in BOXES:
            lay_fake_prefix(start(Kind.TINY, BOXES[kills], kill_children=kills, progress=print))
        with tempfile.TemporaryDirectory(prefix="pocketbuild-chaos-") as scratch:
            wrong = run_table(table, Path(scratch)) + run_randomly(builds, options.seed, Path(scratch))
    finally:
        for name in BOXES.values():
            remove(name)
    print("all green" if not wrong else f"{wrong} WRONG")
    return 1 if wrong else 0


def box_of(kills: bool) -> Box:
    box = find(BOXES[kills])
    assert box is not None
    return box


def run_table(table: list[Cell], scratch: Path) -> int:
    wrong = 0
    print(f"{'fault':12} {'stage':8} {'route':10} {'ended as':22} {'seconds':>7}")
    for cell in table:
        report = anyio.run(run_cell, cell, box_of(needs_killing_init(cell)), scratch)
        wrong += bool(report.wrong)
        row = f"{cell.fault:12} {cell.stage:8} {cell.route:10} {report.outcome:22} {report.seconds:7.1f}"
        print(row, report.wrong or "ok", flush=True)
    return wrong


def run_randomly(builds: int, seed: int, scratch: Path) -> int:
    began_s, wrong, lost_runs, doubled, happened = time.monotonic(), 0, 0, 0, 0
    for number in range(builds):
        report = anyio.run(run_random, number, seed, box_of(bool(number % 2)), scratch)
        wrong += bool(report.wrong)
        doubled += "started" in report.wrong
        lost_runs += report.lost_runs
        happened += len(report.faults)
        if report.wrong:
            print(f"build {number} of seed {seed} under {report.faults}: {report.wrong}", flush=True)
    print(
        f"{builds} random builds of seed {seed} in {time.monotonic() - began_s:.0f} s: {happened} faults,"
        f" {lost_runs} runs lost by name and begun anew, {wrong} builds lost or wrong, {doubled} built twice"
    )
    return wrong


if __name__ == "__main__":
    sys.exit(main())
