from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from builder_bridge.errors import BridgeError, PhoneLost, PhoneUnavailable
from orchestrator.engine.phone import PhoneLines

pytestmark = pytest.mark.anyio


class Opener:
    """Opens phones that are plain objects, or raises what it is told to."""

    def __init__(self, *faults: Exception | None) -> None:
        self.faults = list(faults)
        self.opened = self.closed = 0

    @asynccontextmanager
    async def __call__(self, address: str, route: str | None) -> AsyncIterator[Any]:
        fault = self.faults.pop(0) if self.faults else None
        if fault is not None:
            raise fault
        self.opened += 1
        yield object()
        self.closed += 1


async def test_one_connection_is_lent_to_all_until_a_fault_drops_it() -> None:
    opener = Opener()
    async with anyio.create_task_group() as tasks:
        lines = PhoneLines(opener, tasks)
        async with lines.use("p", None) as first, lines.use("p", None) as second:
            assert first is second
        with pytest.raises(PhoneLost):
            async with lines.use("p", None):
                raise PhoneLost("pulled")
        async with lines.use("p", None) as third:
            assert third is not first
        assert (opener.opened, opener.closed) == (2, 1)
        lines.drop("p")
    assert opener.closed == 2


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (PhoneUnavailable("no"), PhoneUnavailable),
        (ExceptionGroup("tasks", [ExceptionGroup("inner", [PhoneUnavailable("no")])]), PhoneUnavailable),
        (ValueError("a defect"), PhoneLost),
    ],
)
async def test_whatever_opening_raises_is_the_users_fault_to_see_and_harms_nobody_else(
    fault: Exception, expected: type[BridgeError]
) -> None:
    opener = Opener(fault)
    async with anyio.create_task_group() as tasks:
        lines = PhoneLines(opener, tasks)
        with pytest.raises(expected):
            async with lines.use("p", None):
                pass
        async with lines.use("p", None):
            assert opener.opened == 1
        lines.drop("p")
