"""Android lint's own SARIF report as problems."""

import json
from typing import Any

from builder_bridge.log.places import decoded
from builder_bridge.log.problem import Problem, Severity, Tool
from builder_bridge.log.problems.finding import plain_path

MAX_SARIF_BYTES = 64 << 20
MAX_RESULTS = 20_000
_SEVERITIES = {"error": Severity.ERROR, "warning": Severity.WARNING}


def read_lint_sarif(data: bytes, task: str | None = None) -> tuple[Problem, ...]:
    """Give lint's errors and warnings with their places; what is no SARIF gives nothing."""
    if len(data) > MAX_SARIF_BYTES:
        return ()
    try:
        body = json.loads(data)
    except (ValueError, RecursionError):
        return ()
    found = []
    for run in _list(body, "runs"):
        bases = run.get("originalUriBaseIds")
        for result in _list(run, "results")[:MAX_RESULTS]:
            problem = _problem(result, bases if isinstance(bases, dict) else {}, task)
            if problem is not None:
                found.append(problem)
    return tuple(found)


def _problem(result: dict[str, Any], bases: dict[str, Any], task: str | None) -> Problem | None:
    severity = _SEVERITIES.get(str(result.get("level", "warning")))
    text = _dict(result, "message").get("text")
    if severity is None or not isinstance(text, str):
        return None
    place = _dict(next(iter(_list(result, "locations")), {}), "physicalLocation")
    region = _dict(place, "region")
    rule = result.get("ruleId")
    message = f"{text} [{rule}]" if isinstance(rule, str) else text
    return Problem(
        severity,
        Tool.LINT,
        _file(_dict(place, "artifactLocation"), bases),
        _number(region.get("startLine")),
        _number(region.get("startColumn")),
        message,
        0,
        task,
    )


def _file(location: dict[str, Any], bases: dict[str, Any]) -> str | None:
    uri = location.get("uri")
    if not isinstance(uri, str) or not uri:
        return None
    base = bases.get(str(location.get("uriBaseId")))
    root = base.get("uri") if isinstance(base, dict) else None
    whole = root.rstrip("/") + "/" + uri if isinstance(root, str) and "://" not in uri else uri
    return decoded(plain_path(whole))


def _list(body: Any, key: str) -> list[dict[str, Any]]:
    value = body.get(key) if isinstance(body, dict) else None
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _dict(body: Any, key: str) -> dict[str, Any]:
    value = body.get(key) if isinstance(body, dict) else None
    return value if isinstance(value, dict) else {}


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
