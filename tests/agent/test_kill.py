"""An agent that is killed anywhere, even twice, goes on to the same end with each effect once."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
POINTS = 24


@pytest.fixture(scope="module", params=[1])
def points(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.agent.kill_points",
            tmp_path_factory.mktemp("kill"),
            str(request.param),
            str(POINTS),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def test_a_killed_run_ends_as_an_undisturbed_one(points: list[dict[str, Any]]) -> None:
    assert len(points) == POINTS
    assert sum(point["deaths"] for point in points) >= 20
    for point in points:
        assert (point["reason"], point["turns"], point["mismatches"]) == ("green", 5, []), point
        assert "= 42;" in point["files"]["app/src/main/java/Main.java"]
        assert point["files"]["build.gradle"] == "// no plugins\n// patched\n"
        assert point["files"]["new.txt"] == "new\n"
        assert point["gone"], point


def test_a_killed_run_builds_and_commits_each_state_once(points: list[dict[str, Any]]) -> None:
    for point in points:
        assert point["commits"] == ["Mend the answer", "start"], point
        assert point["is_clean"], point
        assert len(point["built"]) == len(set(point["built"])) == 2, point
