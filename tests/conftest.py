"""Fixtures for the whole test tree."""

import pytest

pytest_plugins = ["tests.box.fixtures"]


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"
