"""Any bytes in any pieces: never an exception, always the same report, time in step with size."""

import time

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from builder_bridge.log.problem import LogReport
from builder_bridge.log.reader import LogReader

WORDS = [
    *("e: ", "w: ", "file:///p/A.kt", ":3", ":5", ": (3, 5): ", "error: ", "warning: ", "Error: ", "AAPT: "),
    *(
        "ERROR: ",
        "ERROR:: ",
        "D8: ",
        "R8: ",
        "/p/A.java",
        "/p/a.xml",
        "AndroidManifest.xml",
        "C/C++: ",
        "CMake Error",
    ),
    *(
        " at ",
        "AGPBI: {",
        '"kind":"error"',
        "}",
        "> Task :app:x",
        " FAILED",
        "FAILURE: Build failed",
        "* Where:",
    ),
    *(
        "* What went wrong:",
        "* Exception is:",
        "Execution failed for task ':x'.",
        "> ",
        "   > ",
        "Caused by: ",
    ),
    *(
        "BUILD FAILED in 1s",
        "BUILD SUCCESSFUL",
        "Killed",
        "(signal 9)",
        "Line 5:",
        "^ ",
        "Could not resolve ",
        "a.B > c",
    ),
    *(
        "from daemon log file",
        "End of the daemon log",
        "\x1b[31m",
        "\x1b[2A",
        "\x1b]0;",
        "\r",
        "\n",
        "\n",
        "\n",
        "\t",
    ),
    *(
        "2024-01-01T00:00:00Z ",
        "[  +9 ms] ",
        "错误: ",
        "エラー: ",
        "\u2028",
        "x",
        " ",
        "'",
        "(",
        ")",
        "[",
        "]",
    ),
]
log_text = st.lists(st.sampled_from(WORDS), max_size=60).map("".join)
log_bytes = st.one_of(log_text.map(str.encode), st.binary(max_size=200))


def read(pieces: list[bytes]) -> LogReport:
    reader = LogReader()
    for piece in pieces:
        reader.feed(piece)
    return reader.close()


@settings(max_examples=200, deadline=None)
@given(log_bytes, st.lists(st.integers(0, 400), max_size=6))
def test_the_report_never_depends_on_the_cuts(log: bytes, cuts: list[int]) -> None:
    places = sorted(min(cut, len(log)) for cut in cuts)
    pieces = [log[a:b] for a, b in zip([0, *places], [*places, len(log)], strict=True)]
    assert read(pieces) == read([log])


@settings(max_examples=100, deadline=None)
@given(log_text)
def test_every_problem_points_at_a_line_of_the_log(log: str) -> None:
    report = read([log.encode()])
    lines = log.encode().count(b"\n") + (not log.encode().endswith(b"\n") and log != "")
    assert report.line_count == lines
    assert all(1 <= problem.log_line <= lines and problem.message for problem in report.problems)


def seconds_to_read(line: str) -> float:
    started = time.process_time()
    read([line.encode() + b"\n"])
    return time.process_time() - started


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(WORDS), st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map("".join))
def test_no_line_takes_more_than_its_length_deserves(head: str, repeated: str) -> None:
    """A pattern that backtracks would take minutes for these; a good one takes parts of a second."""
    line = head + repeated.replace("\n", " ") * (200_000 // max(1, len(repeated)))
    assert seconds_to_read(line) < 15
