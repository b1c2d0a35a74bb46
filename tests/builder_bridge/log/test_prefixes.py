"""What stands before every line of a log: the known forms, and those learned from the log itself."""

import json
from pathlib import Path

import pytest

from builder_bridge.log.prefixes import PrefixLearner, strip_prefix
from builder_bridge.log.problem import LogReport
from builder_bridge.log.reader import LogReader

CASES = Path(__file__).parents[2] / "cases" / "buildlog"


@pytest.mark.parametrize(
    "prefix",
    [
        "2026-05-17T06:41:09.0000000Z ",
        "2026-05-17T06:41:09.123456Z 01O ",
        "2026-05-17T06:41:09.123456789Z stdout F ",
        "2026-05-17 06:41:09,123 INFO  ",
        "2026-05-17 06:41:09,123 DEBUG: ",
        "2026.05.17 06:41:09 ERROR ",
        "06:41:09  ",
        "[06:41:09]: ▸ ",
        "[06:41:09]W:\t [Step 1/2] ",
        "[  +98 ms] ",
        "[        ] ",
        "[RUN_GRADLEW] ",
        "[ERROR] [GRADLE] ",
        "[INFO]  [GRADLE] ",
        "2026-05-17T06:41:09.123+0200 [LIFECYCLE] [class org.gradle.internal.logging.Logger] ",
        "#12 330.100 ",
        'Step #3 - "build": ',
        "builder_1  | ",
        "I/Gradle  ( 1234): ",
        "05-17 06:41:09.123  1234  5678 I Gradle  : ",
        "05-17 06:41:09.123 I/Gradle( 1234): ",
        "May 17 06:41:09 host gradlew[123]: ",
        "build (debug, 17)\tBuild with Gradle\t2026-05-17T06:41:09.1234567Z ",
        "2026-05-17T06:41:09.1Z 2026-05-17T06:41:08.1+0000 [ERROR] [org.gradle.X] ",
    ],
)
@pytest.mark.parametrize("line", ["e: file:///p/A.kt:1:2 bad", "   > Could not find a:b:1.0."])
def test_known_prefixes_come_off_and_the_lines_own_blanks_stay(prefix: str, line: str) -> None:
    assert strip_prefix(prefix + line) == line


@pytest.mark.parametrize(
    "line",
    [
        "ERROR: /p/a.xml:3: AAPT: error: bad",
        "WARNING: R8: Missing class a.B",
        "[CXX1101] NDK at /opt/ndk did not have a source.properties file",
        "[string/a] /p/a.xml\t[string/a] /p/b.xml: Error: Duplicate resources",
        "3 errors",
        "E/p/A.java:3: error: bad",
    ],
)
def test_what_looks_like_a_prefix_but_speaks_stays(line: str) -> None:
    assert strip_prefix(line) == line


def learn(first: str, *lines: str) -> list[str]:
    learner = PrefixLearner()
    learner.enter(f"{first}\n".encode())
    return [learner.strip(line, 0) for line in lines]


@pytest.mark.parametrize(
    ("first", "line", "plain"),
    [
        ("[android] > Task :app:x", "[android]    > cause", "   > cause"),
        ("[android] > Task :app:x", "[android]", ""),
        ("[a1-04] INFO stdout: > Task :app:x", "[b2-17] ERROR stdout: e: bad", "e: bad"),
        ("    7\t> Task :app:x", "12345\tFAILURE: Build", "FAILURE: Build"),
        ("17: FAILURE: Build failed", "19: * What went wrong:", "* What went wrong:"),
        ("> > Configure project :app", "> BUILD FAILED", "BUILD FAILED"),
        ("[a] e: file:///p/A.kt:1:2 bad", "[a] BUILD FAILED", "BUILD FAILED"),
        ("[a] :app:preBuild UP-TO-DATE", "[a] BUILD FAILED", "BUILD FAILED"),
        ("1715900000.000005 > Task :x", "1715900001.1 x", "x"),
    ],
)
def test_an_unknown_prefix_is_learned_from_a_line_that_gradle_must_have_written(
    first: str, line: str, plain: str
) -> None:
    assert learn(first, line) == [plain]


def test_an_indented_log_loses_only_the_indent_that_all_lines_have() -> None:
    assert learn("    > Task :app:x", "       > cause", "  note") == ["   > cause", "  note"]


def test_further_lines_of_one_flutter_message_lose_their_indent() -> None:
    first = "[  +31 ms] > Task :app:x"
    assert learn(first, " " * 11 + "   > cause", "[   +1 ms]    > cause") == ["   > cause", "   > cause"]


def test_a_task_named_within_a_sentence_takes_nothing_off_other_lines() -> None:
    assert learn("Run it again after > Task :app:x", "Run e: x", "e: x") == ["Run e: x", "e: x"]


def test_lines_before_the_first_sure_sign_keep_what_is_unknown() -> None:
    learner = PrefixLearner()
    block = b"[android] e: early\n[android] > Task :x\n[android] e: late\n"
    learner.enter(block)
    stripped = [learner.strip("[android] e: x", at) for at in (0, block.index(b"e: late") - 10)]
    assert stripped == ["[android] e: x", "e: x"]


def test_only_the_first_sure_sign_counts() -> None:
    learner = PrefixLearner()
    for block in (b"> Task :app:x\n", b"[android] > Task :app:y\n"):
        learner.enter(block)
    assert learner.strip("[android] e: x", 0) == "[android] e: x"


def test_a_sure_sign_without_the_prefix_shows_that_it_was_none() -> None:
    quoted_once = "> > Configure project :app"
    assert learn(quoted_once, "FAILURE: Build failed with an exception.", "> the cause") == [
        "FAILURE: Build failed with an exception.",
        "> the cause",
    ]


def read(log: str) -> LogReport:
    reader = LogReader()
    reader.feed(log.encode())
    return reader.close()


def told(report: LogReport) -> tuple[object, ...]:
    places = [(p.severity, p.tool, p.file, p.line, p.column, p.gist) for p in report.problems]
    return (report.outcome, report.failed_tasks, report.kind, places)


@pytest.mark.parametrize("form", ["[android] {}", "{0:5d}\t{1}", "worker-{0} ERROR gradle: {1}", "    {1}"])
@pytest.mark.parametrize(
    "case",
    [
        "kotlin-k2-unresolved-reference",
        "quiet-mode-kotlin",
        "javac-gradle4-glued-to-task-line",
        "offline-no-cached-version",
        "manifest-exported-single",
        "test-full-exception-format",
        "native-cmake-error-with-path",
        "script-groovy-syntax",
        "two-failures-continue",
        "success-gradle4",
    ],
)
def test_a_prefix_before_every_line_changes_nothing(case: str, form: str) -> None:
    log = json.loads((CASES / f"{case}.json").read_text())["log"]
    form = form if "1" in form else form.replace("{}", "{1}")
    prefixed = "".join(form.format(n, line) + "\n" for n, line in enumerate(log.splitlines(), 9))
    assert told(read(prefixed)) == told(read(log))
