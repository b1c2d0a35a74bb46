"""Finds Gradle's own reports below a folder: events, test results, lint's SARIF, the problems report."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import click

from builder_bridge.log.events import read_events
from builder_bridge.log.problem import LogReport
from builder_bridge.log.reports import Reports, kind_of, read_reports, with_reports
from builder_bridge.log.structured import with_events

MAX_FILES = 5_000
"""Reports that are read."""

MAX_FILE_BYTES = 64 << 20
"""The longest report that is read; a longer one is passed over."""


def reports_below(folder: Path) -> Reports:
    """Read the reports wherever they lie below a folder; says which test results are none."""
    reports = read_reports(_contents(folder))
    for sentence in reports.passed_over:
        click.echo(f"passed over: {sentence}", err=True)
    return reports


def with_folder(report: LogReport, folder: Path, reports: Reports) -> LogReport:
    """Let the events and the reports of a folder win over the console where both speak."""
    for path in sorted(folder.rglob("events.ndjson"))[:MAX_FILES]:
        if _is_read(path):
            report = with_events(report, read_events(path.read_bytes()))
    return with_reports(report, reports)


def _contents(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Give the reports one at a time, so that not all of them are in memory."""
    above = folder.resolve().parent  # the folder may itself be the one called test-results
    paths = sorted(folder.resolve().rglob("*"))
    named = ((path, path.relative_to(above).as_posix()) for path in paths)
    wanted = (each for each in named if kind_of(each[1]) and _is_read(each[0]))
    for path, name in islice(wanted, MAX_FILES):
        yield name, path.read_bytes()


def _is_read(path: Path) -> bool:
    return path.is_file() and not path.is_symlink() and path.stat().st_size <= MAX_FILE_BYTES
