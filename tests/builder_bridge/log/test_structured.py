"""Structured sources beside the console: hostile, cut, and better where both speak."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder_bridge.log.events import CauseLink, GradleEvents, read_events
from builder_bridge.log.lint_sarif import read_lint_sarif
from builder_bridge.log.problem import Kind, LogReport, Outcome, Problem, Severity, Tool
from builder_bridge.log.problems_report import read_problems_report
from builder_bridge.log.reader import LogReader
from builder_bridge.log.structured import with_events, with_problems
from builder_bridge.log.verdict import TaskRun

KEYS = [
    *("event", "task", "causes", "outcome", "line", "source", "at_ms", "started_ms", "diagnostics", "runs"),
    *("results", "level", "message", "text", "locations", "physicalLocation", "region", "startLine"),
    *("problemId", "severity"),
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
)


def read(log: str) -> LogReport:
    reader = LogReader()
    reader.feed(log.encode())
    return reader.close()


@given(st.lists(JSON, max_size=4))
def test_strange_events_are_counted_and_nothing_more(values: list[object]) -> None:
    data = "\n".join(json.dumps(value) for value in values).encode()
    events = read_events(data)
    assert events.unread_lines <= len(values)


@given(JSON)
def test_strange_reports_give_nothing_or_problems(value: object) -> None:
    text = json.dumps(value).encode()
    assert isinstance(read_lint_sarif(text), tuple)
    assert isinstance(read_problems_report(b"// begin-report-data\n" + text + b"\n// end-report-data"), tuple)


def test_an_event_cut_in_the_middle_is_passed_over() -> None:
    whole = b'{"event":"task_finished","task":":a:b","outcome":"SUCCESS","started_ms":5,"at_ms":1505}\n'
    events = read_events(whole + whole[:40])
    assert (events.tasks, events.unread_lines) == ((TaskRun(":a:b", "SUCCESS", 1.5),), 1)


def test_events_beat_a_console_that_was_cut() -> None:
    report = read("> Task :app:x\n")
    events = GradleEvents(outcome=Outcome.FAILED, tasks=(TaskRun(":app:lintDebug", "FAILED", 2.0),))
    better = with_events(report, events)
    assert (better.outcome, better.failed_tasks, better.kind) == (
        Outcome.FAILED,
        (":app:lintDebug",),
        Kind.LINT,
    )


def test_events_that_say_success_take_the_kind_away() -> None:
    report = read("e: file:///p/A.kt:3:5 bad\n")
    assert with_events(report, GradleEvents(outcome=Outcome.SUCCESS)).kind is None


def test_a_failure_gets_the_place_that_only_gradle_knew() -> None:
    log = "FAILURE: Build failed with an exception.\n\n* What went wrong:\nPlugin is wrong\n\nBUILD FAILED\n"
    chain = (CauseLink("T", "outer", "/p/build.gradle", 7), CauseLink("T", "Plugin is wrong"))
    (problem,) = with_events(read(log), GradleEvents(failures=(chain,))).problems
    assert (problem.file, problem.line) == ("/p/build.gradle", 7)


LINT = {
    "runs": [
        {
            "originalUriBaseIds": {"%SRCROOT%": {"uri": "file:///p/app%20x/"}},
            "results": [
                {
                    "ruleId": "NewApi",
                    "level": "error",
                    "message": {"text": "Call requires API level 26"},
                    "locations": [
                        {
                            "physicalLocation": {
                                "artifactLocation": {"uri": "src/A.kt", "uriBaseId": "%SRCROOT%"},
                                "region": {"startLine": 16, "startColumn": 12},
                            }
                        }
                    ],
                },
                {"ruleId": "Hint", "level": "note", "message": {"text": "x"}},
            ],
        }
    ]
}


def test_lints_own_report_gives_columns_and_every_incident() -> None:
    (problem,) = read_lint_sarif(json.dumps(LINT).encode(), ":app:lintDebug")
    assert (problem.file, problem.line, problem.column) == ("/p/app x/src/A.kt", 16, 12)
    assert problem.message == "Call requires API level 26 [NewApi]"


def test_lints_report_takes_the_place_of_what_the_console_printed() -> None:
    report = read("> Task :app:lintDebug\n/p/app x/src/A.kt:16: Error: Call requires API level 26 [NewApi]\n")
    (problem,) = with_problems(report, read_lint_sarif(json.dumps(LINT).encode())).problems
    assert (problem.column, problem.log_line) == (12, 2)


REPORT = {
    "diagnostics": [
        {
            "severity": "ERROR",
            "problemId": [{"name": "compilation"}, {"name": "java"}, {"name": "compiler.err.x"}],
            "problem": [{"text": "cannot find "}, {"name": "symbol"}],
            "locations": [{"path": "/p/A.java", "line": 7}, {"taskPath": ":app:compileJava"}],
        },
        {"severity": "WARNING", "problemId": [{"name": "deprecation"}], "problem": [{"text": "old"}]},
    ]
}


@pytest.mark.parametrize(
    "html",
    [
        "<script>\n// begin-report-data\n{}\n// end-report-data\n</script>",
        '<script id="x" type="application/json">{}</script>',
    ],
)
def test_the_problems_report_gives_what_javac_said(html: str) -> None:
    (problem,) = read_problems_report(html.replace("{}", json.dumps(REPORT)).encode())
    assert (problem.tool, problem.file, problem.line, problem.task) == (
        Tool.JAVAC,
        "/p/A.java",
        7,
        ":app:compileJava",
    )
    assert problem.message == "cannot find symbol"


@pytest.mark.parametrize(
    "html", [b"", b"// begin-report-data {x} // end-report-data", b"// begin-report-data"]
)
def test_a_problems_report_that_does_not_parse_gives_nothing(html: bytes) -> None:
    assert read_problems_report(html) == ()


def test_a_compilers_problem_that_both_have_counts_once() -> None:
    report = read("/p/A.java:7: error: cannot find symbol\n")
    twin = Problem(Severity.ERROR, Tool.JAVAC, "/p/A.java", 7, None, "cannot find symbol", 0)
    other = replace(twin, line=9)
    assert [problem.line for problem in with_problems(report, [twin, other]).problems] == [7, 9]
