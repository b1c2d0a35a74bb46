"""Gradle's own reports beside a log, by their names: test results, lint's SARIF, the problems report."""

from collections.abc import Iterable
from dataclasses import dataclass

from builder_bridge.log.junit import TestResult, TestXmlFault, problem_of, read_test_xml
from builder_bridge.log.lint_sarif import read_lint_sarif
from builder_bridge.log.problem import LogReport, Problem
from builder_bridge.log.problems_report import read_problems_report
from builder_bridge.log.structured import with_problems


@dataclass(frozen=True, slots=True)
class Reports:
    """What reports say: all test results, passed ones too, and the problems of lint and of Gradle.

    `passed_over` says of each test result that could not be read why.
    """

    results: tuple[TestResult, ...] = ()
    problems: tuple[Problem, ...] = ()
    passed_over: tuple[str, ...] = ()


def read_reports(files: Iterable[tuple[str, bytes]]) -> Reports:
    """Read files by their paths, as `is_report` tells them apart; others, and what is none, are left out."""
    results: list[TestResult] = []
    found: dict[str, list[Problem]] = {"lint": [], "problems": []}
    passed_over: list[str] = []
    for path, data in files:
        match kind_of(path):
            case "test":
                try:
                    results += read_test_xml(data)
                except TestXmlFault as fault:
                    passed_over.append(f"{path}: {fault}")
            case "lint":
                found["lint"] += read_lint_sarif(data)
            case "problems":
                found["problems"] += read_problems_report(data)
            case _:
                pass
    return Reports(tuple(results), (*found["lint"], *found["problems"]), tuple(passed_over))


def kind_of(path: str) -> str | None:
    """Say what a file is by its path with forward slashes: `test`, `lint`, `problems`, None for no report."""
    *folders, name = path.split("/")
    if name.endswith(".xml") and "test-results" in folders:
        return "test"
    if name.endswith(".sarif"):
        return "lint"
    return "problems" if name == "problems-report.html" else None


def with_reports(report: LogReport, reports: Reports) -> LogReport:
    """Let reports win over the console where both speak."""
    failed = [problem for result in reports.results if (problem := problem_of(result))]
    return with_problems(report, [*failed, *reports.problems])
