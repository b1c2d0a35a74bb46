"""Gradle's own reports beside a log: events, test results, lint's SARIF, the problems report."""

from collections.abc import Iterator
from pathlib import Path

import click

from builder_bridge.log.events import read_events
from builder_bridge.log.junit import TestResult, TestXmlFault, problem_of, read_test_xml
from builder_bridge.log.lint_sarif import read_lint_sarif
from builder_bridge.log.problem import LogReport, Problem
from builder_bridge.log.problems_report import read_problems_report
from builder_bridge.log.structured import with_events, with_problems

MAX_FILES = 5_000
"""Reports of one kind that are read."""

MAX_FILE_BYTES = 64 << 20
"""The longest report that is read; a longer one is passed over."""


def with_reports(report: LogReport, folder: Path) -> LogReport:
    """Let the reports below a folder win over the console where both speak.

    Read are `events.ndjson`, `test-results/**/*.xml`, `*.sarif` and `problems-report.html`, wherever
    they lie below it. What cannot be read as such a report is passed over.
    """
    for data in _contents(folder, "events.ndjson"):
        report = with_events(report, read_events(data))
    found: list[Problem] = [problem for result in read_results(folder) if (problem := problem_of(result))]
    for data in _contents(folder, "*.sarif"):
        found += read_lint_sarif(data)
    for data in _contents(folder, "problems-report.html"):
        found += read_problems_report(data)
    return with_problems(report, found)


def read_results(folder: Path) -> list[TestResult]:
    """Give all results of tests below a folder, passed ones too; says which files are no such results."""
    results: list[TestResult] = []
    for data in _contents(folder, "test-results/**/*.xml"):
        try:
            results += read_test_xml(data)
        except TestXmlFault as fault:
            click.echo(f"passed over: {fault}", err=True)
    return results


def _contents(folder: Path, pattern: str) -> Iterator[bytes]:
    for path in sorted(folder.rglob(pattern))[:MAX_FILES]:
        if path.is_file() and not path.is_symlink() and path.stat().st_size <= MAX_FILE_BYTES:
            yield path.read_bytes()
