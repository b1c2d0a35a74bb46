"""Problems as remarks at lines of code: GitHub's workflow commands, GitLab's code quality report."""

import hashlib
from typing import Any

from builder_bridge.log.places import NOWHERE, PathMap, decoded
from builder_bridge.log.problem import LogReport, Problem, Severity

MAX_GITHUB_ANNOTATIONS = 10
"""GitHub shows so many errors and so many warnings of one step and drops the rest unseen."""


def to_github(report: LogReport, paths: PathMap = NOWHERE) -> str:
    """Give workflow commands, one a line, errors first; what GitHub would drop is told in a notice.

    The form and its escapes are those of GitHub's workflow commands: `::error file=…,line=…::text`.
    """
    lines: list[str] = []
    left_out = report.problems_left_out
    for severity in Severity:
        problems = [problem for problem in report.problems if problem.severity is severity]
        lines += [_command(problem, paths) for problem in problems[:MAX_GITHUB_ANNOTATIONS]]
        left_out += max(0, len(problems) - MAX_GITHUB_ANNOTATIONS)
    if left_out:
        lines.append(f"::notice::{left_out} more problems are in the log")
    return "\n".join(lines)


def _command(problem: Problem, paths: PathMap) -> str:
    properties = {"title": f"{problem.tool} {problem.severity}"}
    if problem.file is not None:
        properties = {"file": paths.to_workspace(problem.file) or decoded(problem.file)}
        if problem.line is not None:
            properties["line"] = str(problem.line)
        if problem.column is not None:
            properties["col"] = str(problem.column)
        properties["title"] = f"{problem.tool} {problem.severity}"
    written = ",".join(f"{name}={_escape_property(value)}" for name, value in properties.items())
    return f"::{problem.severity} {written}::{_escape_text(problem.message)}"


def _escape_text(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    return _escape_text(text).replace(":", "%3A").replace(",", "%2C")


def to_gitlab(report: LogReport, paths: PathMap = NOWHERE) -> list[dict[str, Any]]:
    """Give GitLab's code quality entries; those without a file point at the log itself.

    A fingerprint is the same for the same problem in the next run, however its lines moved; a
    second like it in one file gets another.
    """
    entries = []
    seen: dict[str, int] = {}
    for problem in report.problems:
        path = (paths.to_workspace(problem.file) or decoded(problem.file)) if problem.file else "build.log"
        name = f"{problem.severity}\0{problem.tool}\0{path}\0{problem.gist}"
        seen[name] = seen.get(name, 0) + 1
        begin = (
            problem.line if problem.file and problem.line else (1 if problem.file else problem.log_line or 1)
        )
        entries.append(
            {
                "description": problem.gist,
                "check_name": str(problem.tool),
                "fingerprint": hashlib.sha256(f"{name}\0{seen[name]}".encode()).hexdigest(),
                "severity": "major" if problem.severity is Severity.ERROR else "minor",
                "location": {"path": path, "lines": {"begin": begin}},
            }
        )
    return entries
