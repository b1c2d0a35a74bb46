"""The reports that a build's tasks wrote come with it: into the digest, and as one JUnit file."""

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.builder import choose_artifact
from tests.orchestrator.cli.test_log_reports import CONSOLE, LINT, RESULTS
from tests.orchestrator.conftest import Running, Start
from tests.orchestrator.test_builds import ended, submit
from tests.orchestrator.workspaces import make_workspace

pytestmark = pytest.mark.anyio
REPORTS = {
    "app/build/test-results/testDebugUnitTest/TEST-org.sample.SumTest.xml": RESULTS,
    "app/build/reports/lint-results-debug.sarif": json.dumps(LINT).replace('"warning"', '"error"'),
    "build/reports/problems/problems-report.html": "<html>no report</html>",
}
FAILED: dict[str, Any] = {"exit_code": 1, "lines": CONSOLE.splitlines(), "reports": REPORTS}


async def digest_of(running: Running, build_id: str) -> dict[str, Any]:
    body: dict[str, Any] = (await running.http.get(f"/v1/builds/{build_id}/digest")).json()
    return body


async def test_a_digest_names_failed_tests_and_lint_findings_and_junit_is_an_artifact(
    start: Start, projects: Path
) -> None:
    workspace = make_workspace(projects / "w", **FAILED)
    (workspace / "app/src/main/res/layout").mkdir(parents=True)
    (workspace / "app/src/main/res/layout/main.xml").write_text("\n" * 6 + '<TextView text="hard coded"/>\n')
    async with start("p1") as running:
        build_id = (await submit(running, workspace))["id"]
        build = await ended(running, build_id)
        assert build["outcome"] == "failed"
        digest = await digest_of(running, build_id)
        assert "expected:<3> but was:<4>" in digest["text"]
        assert "app/src/main/res/layout/main.xml:7" in digest["text"]
        assert 'text="hard coded"' in digest["text"], "the line of the workspace stands beside the finding"
        assert digest["digest"]["facts"]["reports"] == "3"
        [junit] = build["artifacts"]
        assert (junit["path"], junit["kind"]) == ("junit.xml", "junit")
        written = (await running.http.get(f"/v1/builds/{build_id}/artifacts/{junit['number']}")).text
        assert 'tests="2" failures="1"' in written
        assert 'name="subtracts"' in written
        kept = running.service.stores.logs
        assert set(kept.reports(f"{build_id}-1")) == set(REPORTS)
        before = kept.kept_bytes(f"{build_id}-1")
        kept.remove(f"{build_id}-1")
        assert (before > 0, kept.kept_bytes(f"{build_id}-1"), kept.reports(f"{build_id}-1")) == (True, 0, {})


async def test_a_green_build_with_tests_has_its_package_and_their_results(
    start: Start, projects: Path
) -> None:
    passed = {
        "build/test-results/test/TEST-a.xml": '<testsuite><testcase name="a" classname="A"/></testsuite>'
    }
    workspace = make_workspace(projects / "w", reports=passed)
    async with start("p1") as running:
        build = await ended(running, (await submit(running, workspace))["id"])
        assert [(each["number"], each["kind"]) for each in build["artifacts"]] == [(0, "apk"), (1, "junit")]
        assert choose_artifact(build["artifacts"], None)["kind"] == "apk"
        assert choose_artifact(build["artifacts"], "junit.xml")["kind"] == "junit"


async def test_a_build_is_not_given_up_for_want_of_its_reports(start: Start, projects: Path) -> None:
    workspace = make_workspace(projects / "w", **FAILED)
    async with start("p1") as running:
        (running.phones / "p1/mute").touch()
        build = await ended(running, (await submit(running, workspace))["id"])
        assert (build["outcome"], build["artifacts"]) == ("failed", [])
        assert "org.sample.SumTest" in (await digest_of(running, build["id"]))["text"]
