"""An agent that is killed anywhere, even twice, goes on to the same end with each effect once."""

from pathlib import Path

from tests.agent.kill_points import check_ends, points_of
from tests.orchestrator.processes import kill, start_service

POINTS = 20


def test_a_killed_run_ends_as_an_undisturbed_one_and_builds_once(tmp_path: Path) -> None:
    phones = tmp_path / "phones"
    (phones / "p1").mkdir(parents=True)
    process, url = start_service(
        tmp_path / "data",
        phones,
        phones=[{"address": "p1"}],
        workspace_roots=[str(tmp_path)],
        dispatch_poll_s=0.1,
    )
    try:
        points = points_of(tmp_path, POINTS, url)
    finally:
        kill(process)
    assert len(points) == POINTS
    assert sum(point["deaths"] for point in points) >= POINTS - 4
    check_ends(points)
    starts = (phones / "p1/starts.log").read_text().splitlines()
    assert len(starts) == len(set(starts)) == 2 * POINTS
