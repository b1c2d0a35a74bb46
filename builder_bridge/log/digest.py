"""A log's report → the digest that fits a prompt; as text by `render_text`, as JSON by `digest_to_json`."""

from collections.abc import Callable, Mapping, Sequence

from builder_bridge.log.advice import advice_for
from builder_bridge.log.fault import fault_of
from builder_bridge.log.places import NOWHERE, PathMap
from builder_bridge.log.problem import LogReport, Outcome, Problem
from builder_bridge.log.rendering import digest_to_json, previous_from_json, render_text
from builder_bridge.log.root_causes import group
from builder_bridge.log.verdict import (
    RUNNING,
    BuildFacts,
    Changes,
    Digest,
    Fault,
    PreviousBuild,
    RootCause,
    TaskRun,
)

__all__ = [
    "BuildFacts",
    "Changes",
    "Digest",
    "Fault",
    "PreviousBuild",
    "RootCause",
    "TaskRun",
    "digest_to_json",
    "make_digest",
    "previous_from_json",
    "render_text",
]

Sources = Mapping[str, str] | Callable[[str], str | None]
"""The text of a file of the workspace by its relative path; None where there is no such file."""

LINES_AROUND = 1
MAX_SOURCE_CHARS = 200


def make_digest(
    report: LogReport,
    *,
    facts: BuildFacts | None = None,
    sources: Sources | None = None,
    paths: PathMap = NOWHERE,
    previous: PreviousBuild | None = None,
    changed_files: Sequence[str] = (),
    tasks: Sequence[TaskRun] = (),
) -> Digest:
    """Weigh a report: root causes first, whose fault, what changed, what to check more cheaply.

    `paths` maps the log's paths into the workspace; `sources` gives the text around each cause;
    `tasks` come from the build's events; `previous` and `changed_files` from the last build.
    """
    problems = report.problems if report.outcome is not Outcome.SUCCESS else ()
    causes = tuple(_cause(root, followers, sources, paths) for root, followers in group(problems))
    roots = [cause.problem for cause in causes]
    fault = fault_of(report.kind, roots)
    return Digest(
        facts or BuildFacts(),
        report.outcome,
        report.kind,
        fault,
        report.failed_tasks,
        causes,
        len(report.errors),
        len(report.warnings),
        advice_for(fault, roots),
        _changes(previous, causes, changed_files),
        _cheaper_check(report, tasks),
        report.duration_text,
        report.problems_left_out,
        report.line_count,
    )


def _cause(
    problem: Problem, followers: tuple[Problem, ...], sources: Sources | None, paths: PathMap
) -> RootCause:
    path = paths.to_workspace(problem.file) if problem.file else None
    return RootCause(problem, followers, path, _source(sources, path, problem.line))


def _source(sources: Sources | None, path: str | None, line: int | None) -> tuple[tuple[int, str], ...]:
    if sources is None or path is None or line is None:
        return ()
    text = sources(path) if callable(sources) else sources.get(path)
    if text is None:
        return ()
    lines = text.split("\n")
    around = range(max(1, line - LINES_AROUND), min(len(lines), line + LINES_AROUND) + 1)
    return tuple((number, lines[number - 1].rstrip()[:MAX_SOURCE_CHARS]) for number in around)


def _changes(
    previous: PreviousBuild | None, causes: tuple[RootCause, ...], files: Sequence[str]
) -> Changes | None:
    if previous is None:
        return None
    before, after = set(previous.causes), {cause.identity for cause in causes}
    return Changes(previous, len(before), len(after), len(before - after), len(after - before), tuple(files))


def _cheaper_check(report: LogReport, tasks: Sequence[TaskRun]) -> TaskRun | None:
    """Give the task to run alone until it passes: the first that failed, or that the end cut short."""
    if report.outcome is Outcome.SUCCESS:
        return None
    if not report.failed_tasks:
        at_the_end = next((problem.task for problem in reversed(report.errors) if problem.task), None)
        guess = TaskRun(at_the_end, RUNNING) if at_the_end else None
        return next((task for task in tasks if task.outcome == RUNNING), guess)
    first = report.failed_tasks[0]
    return next((task for task in tasks if task.path == first), TaskRun(first, "FAILED"))
