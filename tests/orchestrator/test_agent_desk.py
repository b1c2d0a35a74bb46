from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import anyio
import pytest

from agent.approval import Mode
from agent.budget import Budget
from agent.runner import Verify
from agent.tools.build import Builder
from orchestrator.access import Principal
from orchestrator.agent_desk import AgentDesk
from orchestrator.agent_list import RunFilter
from orchestrator.agent_order import AgentOrder, Change
from orchestrator.agent_run import ModelChoice
from orchestrator.bell import Bells
from orchestrator.settings import load_settings

pytestmark = pytest.mark.anyio
ANN = Principal("ann", frozenset())


def broken(phone: str | None) -> AbstractAsyncContextManager[Builder]:
    raise OSError("no builder")


async def test_a_run_whose_builder_can_not_be_had_does_not_stay_at_work(tmp_path: Path) -> None:
    settings = load_settings(data_dir=tmp_path / "data").settings
    order = AgentOrder("Build it", tmp_path, ModelChoice(), Mode.YES, Verify.NEVER, Budget())
    async with anyio.create_task_group() as tasks:
        desk = AgentDesk(settings, tasks, Bells())
        with pytest.raises(OSError, match="no builder"):
            await desk.begin(ANN, order, broken)
        (run,) = await desk.list_runs(RunFilter())
        assert run["state"] == "interrupted"
        for _ in range(2):
            with pytest.raises(OSError, match="no builder"):
                await desk.resume(ANN, run["id"], Change(), broken)
        assert desk.describe(ANN, run["id"])["state"] == "interrupted"


async def test_a_run_that_is_cancelled_before_it_begins_does_not_stay_at_work(tmp_path: Path) -> None:
    settings = load_settings(data_dir=tmp_path / "data").settings
    order = AgentOrder("Build it", tmp_path, ModelChoice(), Mode.YES, Verify.NEVER, Budget())
    is_asked, is_closed = anyio.Event(), anyio.Event()

    @asynccontextmanager
    async def slow(phone: str | None) -> AsyncIterator[Builder]:
        try:
            is_asked.set()
            await anyio.sleep_forever()
            raise AssertionError
            yield
        finally:
            is_closed.set()

    async with anyio.create_task_group() as tasks:
        desk = AgentDesk(settings, tasks, Bells())
        async with anyio.create_task_group() as asker:
            asker.start_soon(desk.begin, ANN, order, slow)
            await is_asked.wait()
            asker.cancel_scope.cancel()
        assert is_closed.is_set()
        (run,) = await desk.list_runs(RunFilter())
        assert run["state"] == "interrupted"
