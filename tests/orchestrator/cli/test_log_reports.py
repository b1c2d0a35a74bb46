"""`pocketbuild log explain --reports`: Gradle's own reports win over the console where both speak."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from orchestrator.cli.log import log

CONSOLE = """> Task :app:testDebugUnitTest FAILED

org.sample.SumTest > adds FAILED
    java.lang.AssertionError at SumTest.java:12

2 tests completed, 1 failed

FAILURE: Build failed with an exception.

* What went wrong:
Execution failed for task ':app:testDebugUnitTest'.
> There were failing tests. See the report at: file:///b/app/build/reports/tests/index.html

BUILD FAILED in 3s
"""
RESULTS = """<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="org.sample.SumTest" tests="2" skipped="0" failures="1" errors="0" time="0.1">
  <testcase name="subtracts" classname="org.sample.SumTest" time="0.04"/>
  <testcase name="adds" classname="org.sample.SumTest" time="0.06">
    <failure message="expected:&lt;3&gt; but was:&lt;4&gt;" type="java.lang.AssertionError">
java.lang.AssertionError: expected:&lt;3&gt; but was:&lt;4&gt;
\tat org.junit.Assert.fail(Assert.java:89)
\tat org.sample.SumTest.adds(SumTest.java:12)
</failure>
  </testcase>
</testsuite>
"""
LINT = {
    "version": "2.1.0",
    "runs": [
        {
            "tool": {"driver": {"name": "Android Lint"}},
            "results": [
                {
                    "ruleId": "HardcodedText",
                    "level": "warning",
                    "message": {"text": "Hardcoded string"},
                    "locations": [
                        {
                            "physicalLocation": {
                                "artifactLocation": {"uri": "app/src/main/res/layout/main.xml"},
                                "region": {"startLine": 7, "startColumn": 9},
                            }
                        }
                    ],
                }
            ],
        }
    ],
}


@pytest.fixture
def build(tmp_path: Path) -> Path:
    """A build's folder with its log and the reports that Gradle and lint left beside it."""
    results = tmp_path / "app/build/test-results/testDebugUnitTest"
    results.mkdir(parents=True)
    (results / "TEST-org.sample.SumTest.xml").write_text(RESULTS)
    (tmp_path / "app/build/reports").mkdir()
    (tmp_path / "app/build/reports/lint-results-debug.sarif").write_text(json.dumps(LINT))
    (tmp_path / "build.log").write_text(CONSOLE)
    return tmp_path


def explain(build: Path, *options: str) -> str:
    done = CliRunner().invoke(log, ["explain", str(build / "build.log"), *options], catch_exceptions=False)
    assert done.exit_code == 0
    return done.output


def problems(build: Path, *options: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(explain(build, "--json", *options))["problems"]
    return found


def test_without_reports_the_console_speaks_alone(build: Path) -> None:
    assert [problem["tool"] for problem in problems(build)] == ["test"]


def test_test_results_say_what_was_expected_and_lint_adds_what_it_found(build: Path) -> None:
    failed, hint = problems(build, "--reports", str(build))
    assert (failed["tool"], failed["file"], failed["line"]) == ("test", "SumTest.java", 12)
    assert "expected:<3> but was:<4>" in failed["message"]
    assert (hint["tool"], hint["severity"], hint["line"], hint["column"]) == ("lint", "warning", 7, 9)


def test_junit_output_holds_the_passed_tests_too(build: Path) -> None:
    assert 'name="subtracts"' in explain(build, "--format", "junit", "--reports", str(build))


def test_reports_that_are_none_change_nothing(build: Path) -> None:
    before = problems(build)
    for report in build.rglob("*.xml"):
        report.write_text("<html>")
    for report in build.rglob("*.sarif"):
        report.write_text("{")
    told = explain(build, "--json", "--reports", str(build))
    assert told.startswith("passed over: ")
    assert "TEST-org.sample.SumTest.xml: test results are not well-formed XML" in told
    assert json.loads(told.splitlines()[-1])["problems"] == before
