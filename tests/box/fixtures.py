"""Boxes for tests: one of each kind for a worker's session, and as many more as a test asks for.

Names hold the worker's process id, so any number of sessions run side by side; what a killed
session left behind is removed by the next. They hold a word of chance, too: in a new container the
same process ids come again, and the files of an earlier box are none of ours. A test that uses one
of these bears the mark `box`.
"""

import itertools
import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from builder_bridge.box import Box, Kind, Mode, boxes, remove, start
from builder_bridge.box.host import missing_from_host

BoxFactory = Callable[..., Box]
_numbers = itertools.count()
_WORD = secrets.token_hex(3)


@pytest.fixture(scope="session")
def tiny_box() -> Iterator[Box]:
    """A running box with adbd and the device's tools, shared by the session: leave no mess in it."""
    yield from _session_box(Kind.TINY)


@pytest.fixture(scope="session")
def agp_box() -> Iterator[Box]:
    """A running box with the builder prefix, shared by the session: leave no mess in it."""
    yield from _session_box(Kind.AGP)


@pytest.fixture
def box_factory() -> Iterator[BoxFactory]:
    """Start boxes of the test's own: `box_factory(kind, mode=…, kill_children=…, mtu_1500=…, port=…)`."""
    require_box()
    names: list[str] = []

    def make(
        kind: Kind = Kind.TINY,
        *,
        port: int | None = None,
        mode: Mode = Mode.PLAIN,
        kill_children: bool = False,
        mtu_1500: bool = False,
    ) -> Box:
        names.append(unique_name())
        return start(
            kind,
            names[-1],
            port=port,
            mode=mode,
            kill_children=kill_children,
            mtu_1500=mtu_1500,
            progress=print,
        )

    yield make
    for name in names:
        remove(name)


def require_box() -> None:
    """Skip the test where no box can run, or fail it where POCKETBUILD_REQUIRE_BOX=1 says it must."""
    missing = missing_from_host(network_namespace=True)
    if not missing:
        return
    reason = "The phone in a box cannot run here: " + "; ".join(missing)
    if os.environ.get("POCKETBUILD_REQUIRE_BOX") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


def _session_box(kind: Kind) -> Iterator[Box]:
    require_box()
    _remove_what_killed_sessions_left()
    name = unique_name()
    try:
        yield start(kind, name, progress=print)
    finally:
        remove(name)


def unique_name() -> str:
    """Name a box that no other session has, or had before it was killed."""
    return f"test-{os.getpid()}-{_WORD}-{next(_numbers)}"


def _remove_what_killed_sessions_left() -> None:
    for box in boxes():
        start_word, _, rest = box.name.partition("-")
        pid = rest.partition("-")[0]
        if start_word == "test" and pid.isdigit() and not Path(f"/proc/{pid}").exists():
            remove(box.name)
