"""Shapes of build logs that catch readers out, one test each."""

import pytest

from builder_bridge.log.problem import Kind, LogReport, Outcome, Problem, Severity, Tool
from builder_bridge.log.reader import LogReader


def read(log: str | bytes) -> LogReport:
    reader = LogReader()
    reader.feed(log.encode() if isinstance(log, str) else log)
    return reader.close()


def only_problem(log: str | bytes) -> Problem:
    (problem,) = read(log).problems
    return problem


def test_a_module_file_is_told_from_the_message_glued_to_it() -> None:
    problem = only_problem(
        "e: file:///x/a.jar!/META-INF/a.kotlin_moduleModule was compiled with an old version.\n"
    )
    assert (problem.file, problem.gist) == (
        "/x/a.jar!/META-INF/a.kotlin_module",
        "Module was compiled with an old version.",
    )


@pytest.mark.parametrize(
    "line",
    [
        "e: file:///p/A.kt:3:5 Unresolved reference 'x'.",
        "e: file:///p/A.kt:3:5: Unresolved reference 'x'.",
        "e: /p/A.kt: (3, 5): Unresolved reference 'x'.",
        "e: /p/A.kt:3:5 Unresolved reference 'x'.",
    ],
)
def test_every_form_of_a_kotlin_place_is_the_same_place(line: str) -> None:
    problem = only_problem(line + "\n")
    assert (problem.file, problem.line, problem.column) == ("/p/A.kt", 3, 5)
    assert problem.message == "Unresolved reference 'x'."


def test_gradle_4_glues_the_first_message_to_its_task() -> None:
    log = ":app:compileDebugJavaWithJavac/p/A.java:3: error: cannot find symbol\n    x();\n FAILED\n"
    report = read(log)
    assert report.failed_tasks == (":app:compileDebugJavaWithJavac",)
    assert [(p.tool, p.file, p.line) for p in report.problems] == [(Tool.JAVAC, "/p/A.java", 3)]


def test_gradle_4_glues_a_kotlin_warning_to_its_task_without_a_slash_between() -> None:
    report = read(":app:compileDebugKotlinw: /p/A.kt: (3, 5): never used\n FAILED\n")
    assert report.failed_tasks == (":app:compileDebugKotlin",)
    assert [(p.severity, p.task) for p in report.problems] == [(Severity.WARNING, ":app:compileDebugKotlin")]


def test_r8_may_speak_before_its_task_is_named() -> None:
    log = "ERROR: R8: Missing class a.B\n> Task :app:minifyReleaseWithR8 FAILED\n"
    report = read(log)
    assert [p.tool for p in report.problems] == [Tool.R8]
    assert report.kind is Kind.DEX


def test_a_block_that_points_at_messages_which_were_cut_off_speaks_for_itself() -> None:
    tail = (
        "* What went wrong:\nExecution failed for task ':app:compileDebugKotlin'.\n"
        "> Compilation error. See log for more details\n\n* Try:\n\nBUILD FAILED in 1s\n"
    )
    problem = only_problem(tail)
    assert (problem.tool, problem.gist) == (Tool.GRADLE, "Compilation error. See log for more details")


def test_a_block_that_points_at_messages_further_down_adds_nothing() -> None:
    log = (
        "FAILURE: Build failed with an exception.\n\n* What went wrong:\n"
        "Execution failed for task ':app:compileDebugKotlin'.\n"
        "> Compilation error. See log for more details\n\n"
        "* Try:\n\nBUILD FAILED in 1s\ne: file:///p/A.kt:3:5 Unresolved reference 'x'.\n"
    )
    assert [p.tool for p in read(log).problems] == [Tool.KOTLINC]


@pytest.mark.parametrize(
    ("word", "severity"),
    [
        ("error", Severity.ERROR),
        ("错误", Severity.ERROR),
        ("エラー", Severity.ERROR),
        ("Fehler", Severity.ERROR),
        ("ошибка", Severity.ERROR),
        ("warning", Severity.WARNING),
        ("警告", Severity.WARNING),
        ("Warnung", Severity.WARNING),
    ],
)
def test_javac_is_read_in_any_language(word: str, severity: Severity) -> None:
    problem = only_problem(f"/p/A.java:7: {word}: something\n")
    assert (problem.tool, problem.severity, problem.line) == (Tool.JAVAC, severity, 7)


def test_a_note_of_javac_is_no_problem() -> None:
    assert read("/p/A.java:7: Note: something\nNote: /p/A.java uses unchecked operations.\n").problems == ()


def test_the_excerpt_of_the_daemon_log_is_no_part_of_the_build() -> None:
    log = (
        "----- Last  20 lines from daemon log file - daemon-1.out.log -----\n"
        "/p/Old.java:3: error: cannot find symbol\n3 warnings----- End of the daemon log -----\n"
        "/p/New.java:4: error: cannot find symbol\n"
    )
    assert [p.file for p in read(log).problems] == ["/p/New.java"]


def test_an_aapt2_that_does_not_start_is_one_problem_of_the_machine() -> None:
    daemon = "   > AAPT2 aapt2-8.1-linux Daemon #{}: Daemon startup failed\n"
    log = (
        "FAILURE: Build failed with an exception.\n\n* What went wrong:\n"
        "Execution failed for task ':app:mergeDebugResources'.\n> Multiple task action failures occurred:\n"
        + "".join(daemon.format(number) for number in range(4))
        + "\nBUILD FAILED in 1s\n"
    )
    report = read(log)
    assert ([p.tool for p in report.problems], report.kind) == ([Tool.AAPT2], Kind.SDK)


def test_positions_of_the_machine_form_count_from_zero_in_the_log() -> None:
    problem = only_problem(
        'AGPBI: {"kind":"error","text":"x","sources":[{"file":"/p/a.xml","position":'
        '{"startLine":0,"startColumn":0}}],"tool":"AAPT"}\n'
    )
    assert (problem.line, problem.column) == (1, 1)


@pytest.mark.parametrize(
    "line",
    [
        "AGPBI: {",
        "AGPBI: {}",
        'AGPBI: {"kind":7}',
        'AGPBI: {"kind":"error"}',
        'AGPBI: {"kind":"info","text":"x"}',
        "AGPBI: " + '{"a":' * 5000,
    ],
)
def test_a_broken_machine_form_is_no_problem(line: str) -> None:
    assert read(line + "\n").problems == ()


@pytest.mark.parametrize(
    "end",
    [
        "e: ",
        "e: file:///data/My",
        "e: file:///data/A.kt:31:",
        "e: /data/My Project/A.kt: (31, ",
        "e: [ksp] /data/A.kt:3",
        "e: [ks",
        "/p/A.java:3: err",
        "/p/A.java:3: error:",
        "ERROR: /p/a.xml:21",
        "ERROR: /p/a.xml:21: AAPT: err",
        "/p/AndroidManifest.xml:15:9-25:20 Error:",
        "CMake Error at CMakeLists.txt:22 (foo):",
        "C/C++: /p/a.cpp:3:4: error:",
        "> Task :app:x FAIL",
        "e: C",
        "e: /data/My Proj",
        "e: /data/Stub.java:17: err",
        "ERROR:/p/a.jar: D8",
        "ERROR:[raw/a",
    ],
)
def test_a_last_line_cut_before_its_message_gives_no_problem(end: str) -> None:
    assert read(f"> Task :app:preBuild UP-TO-DATE\n{end}").problems == ()


def test_an_error_line_decides_nothing_about_the_outcome() -> None:
    report = read("e: Daemon compilation failed: could not connect to it\n\nBUILD SUCCESSFUL in 3s\n")
    assert (report.outcome, report.kind) == (Outcome.SUCCESS, None)


def test_the_last_word_of_several_builds_counts() -> None:
    assert read("BUILD FAILED in 1s\nBUILD SUCCESSFUL in 2s\n").outcome is Outcome.SUCCESS
    assert (
        read("BUILD SUCCESSFUL in 2s\nFAILURE: Build failed with an exception.\n").outcome is Outcome.FAILED
    )


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_the_encodings_of_redirected_logs_are_read(encoding: str) -> None:
    assert only_problem("e: file:///p/A.kt:3:5 Größe fehlt\r\n".encode(encoding)).message == "Größe fehlt"


def test_bytes_that_are_no_utf8_are_replaced() -> None:
    assert only_problem(b"e: file:///p/A.kt:3:5 na\xefve\n").message == "na\ufffdve"


def test_a_progress_bar_before_a_message_is_no_part_of_it() -> None:
    bar = "\x1b[1m<=====> 40% EXECUTING [4s]\x1b[m\x1b[36D\x1b[1B"
    log = bar + "\x1b[31me: file:///p/A.kt:3:5 bad\x1b[39m\x1b[0K\n"
    assert only_problem(log).message == "bad"


def test_a_lone_carriage_return_ends_a_line_within_its_line_of_the_log() -> None:
    report = read("first\nprogress\re: file:///p/A.kt:3:5 bad\nlast\n")
    assert [(p.gist, p.log_line) for p in report.problems] == [("bad", 2)]


def test_a_line_of_a_mebibyte_is_read_to_its_end() -> None:
    path = "/" + "x" * 100
    long = "Compiler arguments: " + ":".join([path] * 10_000)
    report = read(f"{long}\ne: file:///p/A.kt:3:5 bad\n")
    assert [(p.message, p.log_line) for p in report.problems] == [("bad", 2)]


def test_killed_by_the_shell_is_one_problem_of_memory() -> None:
    report = read("> Task :app:x\nKilled\n\n[Process completed (signal 9) - press Enter]\n")
    assert (len(report.problems), report.kind, report.outcome) == (1, Kind.MEMORY, Outcome.UNKNOWN)


def test_what_the_code_says_about_killing_is_no_problem() -> None:
    assert read("Killed processes are listed in the report\nTest > Killed by a bug PASSED\n").problems == ()


def test_the_wrapper_speaks_only_where_gradle_does_not() -> None:
    fault = 'Exception in thread "main" java.net.UnknownHostException: services.gradle.org\n'
    assert read(fault).kind is Kind.TOOLCHAIN
    assert read(fault + "BUILD SUCCESSFUL in 3s\n").problems == ()


def test_a_message_over_the_limit_says_how_much_is_left_out() -> None:
    problem = only_problem("e: file:///p/A.kt:3:5 " + "y" * 20_000 + "\n")
    assert problem.message.endswith("… (4000 more characters)")


def test_problems_beyond_the_limit_are_counted() -> None:
    lines = "".join(f"w: file:///p/A.kt:{n}:1 unused\n" for n in range(1, 5_101))
    report = read(lines)
    assert (len(report.problems), report.problems_left_out) == (5_000, 100)
