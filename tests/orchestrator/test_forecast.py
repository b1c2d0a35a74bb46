"""How far a build is, judged by earlier ones: never a wrong 100 %, and nothing where nothing is known."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.progress import BuildAdvanced
from agent.tools.build import BuildOutcome, BuildSpec
from orchestrator.builder import ServiceBuilder
from orchestrator.client import open_client
from orchestrator.forecast import MAX_PERCENT, EarlierBuild, Estimate, History, estimate, history_of
from tests.fakes_provider import Watcher
from tests.orchestrator.conftest import Start
from tests.orchestrator.workspaces import make_workspace

TASKS = {":a": 1.0, ":b": 3.0, ":c": 6.0}
HISTORY = History(TASKS, 1.0)


@pytest.mark.parametrize(
    ("begun", "expected"),
    [
        ([], None),
        ([":a"], Estimate(0.0, 10.0)),
        ([":a", ":b"], Estimate(10.0, 9.0)),
        ([":a", ":b", ":b", ":c"], Estimate(40.0, 6.0)),
        ([":a", ":b", ":c", ":new"], Estimate(MAX_PERCENT, 0.0)),
        ([":new"], None),
        ([":x", ":y", ":a"], None),
        ([":x", ":a"], Estimate(0.0, 10.0)),
    ],
)
def test_a_build_is_as_far_as_the_tasks_before_the_one_at_work(
    begun: list[str], expected: Estimate | None
) -> None:
    assert estimate(HISTORY, begun) == expected


def test_nothing_is_estimated_without_a_history() -> None:
    assert history_of([]) is None
    assert history_of([EarlierBuild({":a": 0.0}, 5.0)]) is None
    assert estimate(None, [":a"]) is None


def test_a_task_takes_the_median_of_earlier_builds_and_tasks_side_by_side_take_less() -> None:
    builds = [EarlierBuild({":a": 1.0, ":b": 9.0}, 5.0), EarlierBuild({":a": 3.0}, 30.0)]
    assert history_of(builds) == History({":a": 2.0, ":b": 9.0}, 0.75)
    assert history_of([EarlierBuild({":a": 1.0}, 0.0)]) == History({":a": 1.0}, 1.0)


PATHS = st.sampled_from([":a", ":b", ":c", ":d", ":e"])


@given(
    builds=st.lists(
        st.builds(
            EarlierBuild,
            st.dictionaries(PATHS, st.floats(0, 1e4), max_size=5),
            st.floats(0, 1e4),
        ),
        max_size=3,
    ),
    begun=st.lists(PATHS, max_size=8),
)
def test_an_estimate_grows_and_never_reaches_the_end(builds: list[EarlierBuild], begun: list[str]) -> None:
    history = history_of(builds)
    told = [estimate(history, begun[:count]) for count in range(len(begun) + 1)]
    known = [each for each in told if each is not None]
    assert all(0 <= each.percent <= MAX_PERCENT and each.remaining_s >= 0 for each in known)
    assert history is not None or not known


@pytest.mark.anyio
async def test_a_builds_progress_is_told_from_the_builds_before_it(start: Start, projects: Path) -> None:
    spec = BuildSpec(tasks=("assembleDebug",))
    async with start("p1") as running, open_client(running.url) as client:
        percents = []
        for text in ("one", "two"):
            workspace, watcher = make_workspace(projects / "w", text), Watcher()
            builder = ServiceBuilder(client)
            report = await builder.wait(await builder.submit(workspace, spec), watcher)
            assert report.outcome is BuildOutcome.GREEN
            steps = [step for step in watcher.seen if isinstance(step, BuildAdvanced) and step.task]
            percents.append({step.task: (step.percent, step.remaining_s) for step in steps})
        tasks = (":app:preBuild", ":app:assembleDebug")
        assert percents[0] == dict.fromkeys(tasks, (None, None))
        assert set(percents[1]) == set(tasks)
        for percent, remaining_s in percents[1].values():
            assert percent == 0.0
            assert 0 < (remaining_s or 0.0) <= 3.25
