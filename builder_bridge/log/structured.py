"""The console's report, corrected by the sources that know better: events, test XML, lint, problems.

Where both speak, the structured source wins. What only the console has (Kotlin, KSP, resources, R8,
dependencies) stays as it is.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from builder_bridge.log.events import GradleEvents
from builder_bridge.log.kinds import kind_of_task
from builder_bridge.log.problem import Kind, LogReport, Outcome, Problem, Severity, Tool


def with_events(report: LogReport, events: GradleEvents) -> LogReport:
    """Take outcome, failed tasks and the places of script errors from Gradle's events."""
    failed = tuple(dict.fromkeys((*events.failed_tasks, *report.failed_tasks)))
    outcome = report.outcome if events.outcome is Outcome.UNKNOWN else events.outcome
    kind = None if outcome is Outcome.SUCCESS else report.kind
    if outcome is Outcome.FAILED and kind is None:
        kind = next((kind_of_task(task) for task in failed), Kind.OTHER)
    problems = tuple(_with_place(problem, events) for problem in report.problems)
    return replace(report, outcome=outcome, failed_tasks=failed, kind=kind, problems=problems)


def _with_place(problem: Problem, events: GradleEvents) -> Problem:
    """Give a failure without a place the one that Gradle knew for its chain of causes."""
    if problem.tool is not Tool.GRADLE or problem.file is not None:
        return problem
    for chain in events.failures:
        place = next((link for link in chain if link.file is not None), None)
        if place and any(problem.gist in link.message for link in chain):
            return replace(problem, file=place.file, line=place.line)
    return problem


def with_problems(report: LogReport, found: Sequence[Problem]) -> LogReport:
    """Put problems of a structured source in the place of the console's of the same tool.

    A problem that both have keeps its line in the log. The console's own are dropped only for
    tests and lint, whose reports are complete; for compilers they are added where they are new.
    """
    complete = {problem.tool for problem in found} & {Tool.TEST, Tool.LINT}
    known = {_identity(problem): problem for problem in report.problems}
    merged: list[Problem] = [problem for problem in report.problems if problem.tool not in complete]
    for problem in found:
        twin = known.get(_identity(problem))
        if problem.tool in complete:
            merged.append(
                replace(problem, log_line=twin.log_line, task=problem.task or twin.task) if twin else problem
            )
        elif twin is None:
            merged.append(problem)
    return replace(report, problems=_ordered(merged))


def _identity(problem: Problem) -> tuple[Severity, Tool, str | None, int | None, str]:
    """Names a problem across sources, which may print the path at different length."""
    name = problem.file.rpartition("/")[2] if problem.file else None
    gist = problem.gist if problem.tool is Tool.TEST else problem.gist.rpartition(" [")[0] or problem.gist
    return problem.severity, problem.tool, name, problem.line, gist


def _ordered(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Put those that the log has first, in its order; the others follow in theirs."""
    return tuple(sorted(problems, key=lambda problem: problem.log_line or 1 << 60))
