"""A tiny box with a fake prefix on both routes, shared by a worker's tests of the hand-off."""

import itertools
import os
from collections.abc import Callable

import pytest

from builder_bridge.box import Box
from builder_bridge.build import RunId
from tests.fake_prefix import lay_fake_prefix

_numbers = itertools.count()


@pytest.fixture(scope="session")
def fake_box(tiny_box: Box) -> Box:
    """The session's tiny box, with a script for Gradle in both prefixes."""
    lay_fake_prefix(tiny_box)
    return tiny_box


@pytest.fixture
def new_run() -> Callable[[], RunId]:
    """Name runs that no other test uses."""
    return lambda: RunId(f"r-{os.getpid()}-{next(_numbers)}")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
