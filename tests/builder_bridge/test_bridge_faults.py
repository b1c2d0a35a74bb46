"""A seeded part of the chaos table; `scripts/bench chaos` runs all of it and 200 random builds."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from builder_bridge.box import Box, Kind, find, remove, start
from tests.box.fixtures import require_box, unique_name
from tests.fake_prefix import lay_fake_prefix
from tests.handoff_chaos import Cell, run_cell, run_random

pytestmark = [pytest.mark.box, pytest.mark.slow, pytest.mark.xdist_group("handoff-chaos")]
KILLING = [Cell("adbd_killed", "gradle", "run_as"), Cell("adbd_killed", "upload", "shell_dir")]
SPARING = [
    Cell("cut", "upload", "run_as"),
    Cell("cut", "fetch", "run_as"),
    Cell("black_hole", "gradle", "shell_dir"),
    Cell("adbd_spared", "collect", "run_as"),
    Cell("reboot", "gradle", "run_as"),
    Cell("disk_full", "upload", "shell_dir"),
    Cell("disk_full", "gradle", "run_as"),
    Cell("disk_full", "collect", "shell_dir"),
    Cell("disk_full", "fetch", "run_as"),
    Cell("host_killed", "gradle", "shell_dir"),
]
SEED = 20_26


@pytest.fixture
def scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="pocketbuild-") as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def sparing_box() -> Iterator[Box]:
    yield from box_of_its_own(kill_children=False)


@pytest.fixture(scope="module")
def killing_box() -> Iterator[Box]:
    yield from box_of_its_own(kill_children=True)


def box_of_its_own(*, kill_children: bool) -> Iterator[Box]:
    require_box()
    name = unique_name()
    try:
        box = start(Kind.TINY, name, kill_children=kill_children)
        lay_fake_prefix(box)
        yield box
    finally:
        remove(name)


@pytest.mark.parametrize("cell", SPARING, ids=lambda cell: f"{cell.fault}-{cell.stage}")
def test_a_build_comes_through_or_its_end_is_named(sparing_box: Box, cell: Cell, scratch: Path) -> None:
    report = anyio.run(run_cell, cell, found(sparing_box), scratch)
    assert report.wrong == ""


@pytest.mark.parametrize("cell", KILLING, ids=lambda cell: f"{cell.fault}-{cell.stage}")
def test_where_adbds_end_ends_the_build_it_is_lost_by_name(
    killing_box: Box, cell: Cell, scratch: Path
) -> None:
    report = anyio.run(run_cell, cell, found(killing_box), scratch)
    assert report.wrong == ""


@pytest.mark.parametrize("number", range(3))
def test_builds_under_random_faults_are_neither_lost_nor_doubled(
    sparing_box: Box, number: int, scratch: Path
) -> None:
    report = anyio.run(run_random, number, SEED, found(sparing_box), scratch)
    assert report.wrong == ""


def found(box: Box) -> Box:
    """Give the box as it is now: a reboot makes it another process."""
    now = find(box.name)
    assert now is not None
    return now
