"""Gradle's problems report (8.11 and newer) as problems.

`build/reports/problems/problems-report.html` carries its data as JSON between two comments; some
8.12 builds write JSON that does not parse, and later versions may store it elsewhere: then it gives
nothing and the console stands alone. Deprecations and advice are no problems of the build.
"""

import json
import re
from typing import Any

from builder_bridge.log.problem import Problem, Severity, Tool

MAX_REPORT_BYTES = 64 << 20
MAX_DIAGNOSTICS = 20_000
_DATA = re.compile(rb"//\s*begin-report-data\s*(.*?)//\s*end-report-data", re.DOTALL)
_SCRIPT = re.compile(rb'<script[^>]{0,200}type="application/json"[^>]{0,200}>(.*?)</script>', re.DOTALL)
_SEVERITIES = {"ERROR": Severity.ERROR, "WARNING": Severity.WARNING}


def read_problems_report(html: bytes) -> tuple[Problem, ...]:
    """Give the located problems of compilers in the report; log lines are 0, as they are not of the log."""
    if len(html) > MAX_REPORT_BYTES:
        return ()
    found: list[Problem] = []
    for part in (*_DATA.findall(html), *_SCRIPT.findall(html)):
        try:
            body = json.loads(part)
        except (ValueError, RecursionError):
            continue
        diagnostics = body.get("diagnostics") if isinstance(body, dict) else None
        for diagnostic in (diagnostics if isinstance(diagnostics, list) else [])[:MAX_DIAGNOSTICS]:
            problem = _problem(diagnostic) if isinstance(diagnostic, dict) else None
            if problem is not None:
                found.append(problem)
    return tuple(dict.fromkeys(found))


def _problem(diagnostic: dict[str, Any]) -> Problem | None:
    severity = _SEVERITIES.get(str(diagnostic.get("severity")).upper())
    names = _names(diagnostic.get("problemId"))
    if severity is None or "deprecation" in names or "compilation" not in names:
        return None
    file, line, column, task = _place(diagnostic.get("locations"))
    message = _text(diagnostic.get("contextualLabel")) or _text(diagnostic.get("problem"))
    if not file or not message:
        return None
    tool = Tool.JAVAC if file.endswith(".java") else Tool.KOTLINC
    return Problem(severity, tool, file, line, column, message, 0, task)


def _names(identity: Any) -> set[str]:
    parts = identity if isinstance(identity, list) else []
    return {str(part.get("name", "")).lower() for part in parts if isinstance(part, dict)}


def _place(locations: Any) -> tuple[str | None, int | None, int | None, str | None]:
    file = line = column = task = None
    for location in locations if isinstance(locations, list) else []:
        if not isinstance(location, dict):
            continue
        if isinstance(location.get("path"), str) and file is None:
            file = location["path"]
            line, column = _number(location.get("line")), _number(location.get("column"))
        if isinstance(location.get("taskPath"), str):
            task = location["taskPath"]
    return file, line, column, task


def _text(value: Any) -> str | None:
    """Join a text that the report keeps as a list of pieces."""
    if isinstance(value, str):
        return value
    pieces = value if isinstance(value, list) else []
    words = [str(piece.get("text") or piece.get("name") or "") for piece in pieces if isinstance(piece, dict)]
    return "".join(words).strip() or None


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
