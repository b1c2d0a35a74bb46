"""Problems as SARIF 2.1.0, the form that code scanning services read."""

from typing import Any
from urllib.parse import quote

from builder_bridge.log.places import NOWHERE, PathMap, decoded
from builder_bridge.log.problem import LogReport, Outcome, Problem, Severity, Tool

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_PURPOSES = {
    Tool.KOTLINC: "Message of the Kotlin compiler",
    Tool.JAVAC: "Message of the Java compiler",
    Tool.KSP: "Message of a KSP processor",
    Tool.KAPT: "Message of an annotation processor under KAPT",
    Tool.AAPT2: "Message about a resource",
    Tool.MANIFEST: "Message of the manifest merger",
    Tool.D8: "Message of D8",
    Tool.R8: "Message of R8",
    Tool.LINT: "Message of Android lint",
    Tool.TEST: "Failed test",
    Tool.CLANG: "Message of the C and C++ tools",
    Tool.CMAKE: "Message of CMake",
    Tool.GRADLE: "Failure reported by Gradle",
}


def to_sarif(report: LogReport, paths: PathMap = NOWHERE, version: str | None = None) -> dict[str, Any]:
    """Give a SARIF log with one run.

    Files inside the workspace are relative to `SRCROOT`; others are absolute `file:` addresses.
    `version` is that of this program.
    """
    tools = sorted({problem.tool for problem in report.problems})
    driver: dict[str, Any] = {
        "name": "pocketbuild",
        "rules": [{"id": str(tool), "shortDescription": {"text": _PURPOSES[tool]}} for tool in tools],
    }
    if version:
        driver["version"] = version
    run = {
        "tool": {"driver": driver},
        "invocations": [{"executionSuccessful": report.outcome is Outcome.SUCCESS}],
        "columnKind": "utf16CodeUnits",
        "results": [_result(problem, tools.index(problem.tool), paths) for problem in report.problems],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _result(problem: Problem, rule_index: int, paths: PathMap) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": str(problem.tool),
        "ruleIndex": rule_index,
        "level": "error" if problem.severity is Severity.ERROR else "warning",
        "message": {"text": problem.message},
        "properties": {"logLine": problem.log_line, **({"task": problem.task} if problem.task else {})},
    }
    if problem.file is not None:
        location: dict[str, Any] = {"artifactLocation": _artifact(problem.file, paths)}
        if problem.line is not None:
            region = {"startLine": problem.line}
            if problem.column is not None:
                region["startColumn"] = problem.column
            location["region"] = region
        result["locations"] = [{"physicalLocation": location}]
    return result


def _artifact(file: str, paths: PathMap) -> dict[str, str]:
    inside = paths.to_workspace(file)
    if inside is not None:
        return {"uri": quote(inside), "uriBaseId": "SRCROOT"}
    path = decoded(file)
    if path.startswith("/"):
        return {"uri": "file://" + quote(path)}
    return {"uri": "file:///" + quote(path, safe="/:") if path[1:2] == ":" else quote(path)}
