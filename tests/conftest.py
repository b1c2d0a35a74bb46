"""Fixtures for the whole test tree."""

import hypothesis
import pytest

pytest_plugins = ["tests.box.fixtures"]

# A busy machine is no finding, and a run of the tests says the same as the one before: what is found by
# chance is found by the fuzz targets, which name their seed.
hypothesis.settings.register_profile(
    "steady",
    deadline=None,
    derandomize=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow, hypothesis.HealthCheck.data_too_large],
)
hypothesis.settings.load_profile("steady")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"
