"""`pocketbuild log`: explain Gradle build logs, from files or a pipe."""

import json
from importlib.metadata import version
from pathlib import Path
from typing import BinaryIO

import click

from builder_bridge.log.annotations import to_github, to_gitlab
from builder_bridge.log.digest import Sources, digest_to_json, make_digest, render_text
from builder_bridge.log.junit import results_of, to_junit
from builder_bridge.log.markdown import to_markdown
from builder_bridge.log.places import PathMap
from builder_bridge.log.problem import LogReport
from builder_bridge.log.reader import LogReader
from builder_bridge.log.rendering import DEFAULT_BUDGET_CHARS, problem_to_json
from builder_bridge.log.reports import Reports
from builder_bridge.log.sarif import to_sarif
from orchestrator.cli.log_reports import reports_below, with_folder
from orchestrator.source_files import sources_in

_CHUNK_BYTES = 1 << 18


@click.group()
def log() -> None:
    """Explain Gradle build logs."""


@log.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.File("rb"))
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line, one for each file.")
@click.option(
    "--format",
    "form",
    default="text",
    type=click.Choice(["text", "json", "sarif", "github", "gitlab", "markdown", "junit"]),
    help="What to write.",
)
@click.option(
    "--budget", default=DEFAULT_BUDGET_CHARS, show_default=True, help="Characters of the text form."
)
@click.option(
    "--workspace",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Where the project lies here, to show source lines.",
)
@click.option(
    "--root", "roots", multiple=True, help="Where the project lay when it was built; may be repeated."
)
@click.option(
    "--reports",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A folder with the build's own reports: tests, lint's SARIF, problems, events.",
)
def explain(
    files: tuple[BinaryIO, ...],
    as_json: bool,
    form: str,
    budget: int,
    workspace: Path | None,
    roots: tuple[str, ...],
    reports: Path | None,
) -> None:
    """Say what failed in the build logs FILE..., where and why; - is standard input.

    The exit code is 0 when the logs were read, whatever they say.
    """
    paths = PathMap.of([*roots, *([str(workspace.resolve())] if workspace else [])])
    sources = sources_in(workspace) if workspace else None
    found = reports_below(reports) if reports else Reports()
    write = _WRITERS["json" if as_json else form]
    for file in files:
        name = getattr(file, "name", "<stdin>")
        if write is _write_text and len(files) > 1:
            click.echo(f"{name}:")
        report = _read(file)
        if reports:
            report = with_folder(report, reports, found)
        if found.results and write is _write_junit:
            click.echo(to_junit(list(found.results), name), nl=False)
        else:
            click.echo(write(report, name, paths, sources, budget), nl=form != "junit")


def _read(file: BinaryIO) -> LogReport:
    reader = LogReader()
    while chunk := file.read(_CHUNK_BYTES):
        reader.feed(chunk)
    return reader.close()


def _write_text(report: LogReport, name: str, paths: PathMap, sources: Sources | None, budget: int) -> str:
    return render_text(make_digest(report, paths=paths, sources=sources), budget)


def _write_json(report: LogReport, name: str, paths: PathMap, sources: Sources | None, budget: int) -> str:
    digest = make_digest(report, paths=paths, sources=sources)
    body = {
        "log": name,
        "outcome": str(report.outcome),
        "failed_tasks": list(report.failed_tasks),
        "kind": str(report.kind) if report.kind else None,
        "problems": [
            {**problem_to_json(problem), "path": paths.to_workspace(problem.file) if problem.file else None}
            for problem in report.problems
        ],
        "problems_left_out": report.problems_left_out,
        "digest": {**digest_to_json(digest), "text": render_text(digest, budget)},
    }
    return json.dumps(body, ensure_ascii=False)


def _write_sarif(report: LogReport, name: str, paths: PathMap, sources: Sources | None, budget: int) -> str:
    return json.dumps(to_sarif(report, paths, version("pocketbuild")), ensure_ascii=False)


def _write_github(report: LogReport, name: str, paths: PathMap, sources: Sources | None, budget: int) -> str:
    return to_github(report, paths)


def _write_gitlab(report: LogReport, name: str, paths: PathMap, sources: Sources | None, budget: int) -> str:
    return json.dumps(to_gitlab(report, paths), ensure_ascii=False)


def _write_markdown(
    report: LogReport, name: str, paths: PathMap, sources: Sources | None, budget: int
) -> str:
    return to_markdown(make_digest(report, paths=paths, sources=sources))


def _write_junit(report: LogReport, name: str, paths: PathMap, sources: Sources | None, budget: int) -> str:
    return to_junit(results_of(report), name)


_WRITERS = {
    "text": _write_text,
    "json": _write_json,
    "sarif": _write_sarif,
    "github": _write_github,
    "gitlab": _write_gitlab,
    "markdown": _write_markdown,
    "junit": _write_junit,
}
