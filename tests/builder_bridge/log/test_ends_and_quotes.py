"""Logs that end in the middle of a sentence, and sentences that only quote what a tool might say."""

import pytest

from builder_bridge.log.problem import LogReport, Outcome, Problem, Severity, Tool
from builder_bridge.log.reader import LogReader


def read(log: str) -> LogReport:
    reader = LogReader()
    reader.feed(log.encode())
    return reader.close()


def only_problem(log: str) -> Problem:
    (problem,) = read(log).problems
    return problem


@pytest.mark.parametrize(
    "end",
    [
        "> ",
        "> com.android.bui",
        "> Could not resolve all",
        "> Compilation finis",
        "> Compilation failed; see the compiler",
        "> Failed to transform appc",
        "> Android resource linking failed\n  ERROR:/p/a.xml:4: AAPT: erro",
        "> [CXX142",
        "> /p/res/values/a.xml",
    ],
)
def test_a_block_cut_before_its_cause_gives_no_problem(end: str) -> None:
    head = "\nFAILURE: Build failed with an exception.\n\n* What went wrong:\n"
    report = read(f"{head}Execution failed for task ':a:b'.\n{end}")
    assert (report.outcome, report.failed_tasks, report.problems) == (Outcome.FAILED, (":a:b",), ())


def test_a_failure_without_any_cause_is_still_told() -> None:
    log = "* What went wrong:\nExecution failed for task ':a:b'.\n\n* Try:\nRun it.\n\nBUILD FAILED\n"
    assert only_problem(log).gist == "Execution failed for task ':a:b'."


@pytest.mark.parametrize(
    "line",
    [
        "ERROR: Job failed: exit code 1",
        "ERROR: script returned exit code 1",
        'ERROR: failed to solve: process "/bin/sh -c ./gradlew build" did not complete successfully',
        "ERROR: The command './gradlew build' exited with code 1",
    ],
)
def test_a_runners_word_on_what_it_ran_is_no_problem(line: str) -> None:
    assert read(f"BUILD FAILED in 1s\n{line}\n").problems == ()


@pytest.mark.parametrize(
    "line",
    [
        "App.java:12: value: 3",
        "12:00:00 [main] ERROR boom at /p/A.java:3: error: said by a test",
        "    /p/A.java:3: error: printed by a test",
        "see /p/a.cpp:3:4: error: quoted",
    ],
)
def test_a_place_within_a_sentence_is_no_message_of_a_compiler(line: str) -> None:
    assert read(f"{line}\n").problems == ()


def test_the_compilers_own_form_is_read_where_the_plugin_runs_it_without_its_daemon() -> None:
    problem = only_problem("exception: /p/A.kt:38:39: warning: unnecessary assertion\n")
    assert (problem.severity, problem.tool, problem.file, problem.line) == (
        Severity.WARNING,
        Tool.KOTLINC,
        "/p/A.kt",
        38,
    )
