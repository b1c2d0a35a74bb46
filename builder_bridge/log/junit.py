"""Test results: Gradle's XML files in, JUnit XML of the whole build out.

Gradle writes one `TEST-….xml` for each class under `build/test-results`. They are read with
expat; a document type is refused, so that no entity can be expanded.
"""

from dataclasses import dataclass
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from builder_bridge.log.problem import LogReport, Outcome, Problem, Severity, Tool
from builder_bridge.log.problems import unit_test
from builder_bridge.log.problems.finding import Finding

MAX_XML_BYTES = 64 << 20
MAX_DETAIL_CHARS = 20_000


@dataclass(frozen=True, slots=True)
class TestResult:
    """One test that ran; `outcome` is passed, failed or skipped, `detail` the failure's stack trace."""

    class_name: str
    name: str
    outcome: str
    duration_s: float | None = None
    message: str | None = None
    detail: str | None = None


class TestXmlFault(ValueError):
    """A test result file is no XML, or XML that is not read; the build's log still counts."""


def read_test_xml(data: bytes) -> list[TestResult]:
    """Read one `TEST-….xml`; raises TestXmlFault for what is no such file."""
    if len(data) > MAX_XML_BYTES:
        raise TestXmlFault(f"test results of {len(data)} bytes are more than {MAX_XML_BYTES} bytes")
    reader = _Reader()
    parser = expat.ParserCreate()
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.text
    parser.StartDoctypeDeclHandler = reader.refuse_doctype
    try:
        parser.Parse(data, True)
    except expat.ExpatError as fault:
        raise TestXmlFault(f"test results are not well-formed XML: {fault}") from fault
    return reader.results


class _Reader:
    def __init__(self) -> None:
        self.results: list[TestResult] = []
        self._case: dict[str, str] | None = None
        self._outcome = "passed"
        self._message: str | None = None
        self._detail: list[str] | None = None
        self._detail_chars = 0

    def refuse_doctype(self, *_: object) -> None:
        raise TestXmlFault("test results have a document type; they are not read")

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "testcase":
            self._case, self._outcome, self._message, self._detail = attributes, "passed", None, None
            self._detail_chars = 0
        elif self._case is not None and name in ("failure", "error"):
            self._outcome = "failed"
            self._message = attributes.get("message")
            self._detail = []
        elif self._case is not None and name == "skipped":
            self._outcome = "skipped"

    def text(self, text: str) -> None:
        if self._detail is not None and self._detail_chars < MAX_DETAIL_CHARS:
            self._detail.append(text)
            self._detail_chars += len(text)

    def end(self, name: str) -> None:
        if name != "testcase" or self._case is None:
            if name in ("failure", "error") and self._detail is not None:
                self._detail_chars = MAX_DETAIL_CHARS
            return
        case, self._case = self._case, None
        detail = "".join(self._detail)[:MAX_DETAIL_CHARS] if self._detail is not None else None
        self.results.append(
            TestResult(
                case.get("classname", ""),
                case.get("name", ""),
                self._outcome,
                _seconds(case.get("time")),
                self._message,
                detail,
            )
        )


def _seconds(text: str | None) -> float | None:
    try:
        return float(text.replace(",", "")) if text else None
    except ValueError:
        return None


def results_of(report: LogReport) -> list[TestResult]:
    """Give the failed tests that a console log names; it does not name those that passed.

    A build that failed otherwise is one failed result for each other failed task, for a file without
    failures would be read as success.
    """
    results = []
    for problem in report.problems:
        if problem.tool is Tool.TEST:
            class_name, _, name = problem.gist.partition(" > ")
            results.append(TestResult(class_name, name, "failed", None, None, problem.message))
    if report.outcome is Outcome.FAILED and not results:
        detail = "\n".join(problem.gist for problem in report.errors)[:MAX_DETAIL_CHARS]
        message = f"the build failed: {report.kind}"
        results = [
            TestResult("gradle", task, "failed", None, message, detail)
            for task in report.failed_tasks or ("build",)
        ]
    return results


def problem_of(result: TestResult, task: str | None = None) -> Problem | None:
    """Give the problem that a failed test is, with its place; None for one that did not fail."""
    if result.outcome != "failed":
        return None
    finding = Finding(Severity.ERROR, Tool.TEST, f"{result.class_name} > {result.name}")
    detail = result.detail or result.message or ""
    unit_test.place(finding, detail.split("\n"))
    message = f"{finding.message}\n{detail}".rstrip()
    return Problem(finding.severity, finding.tool, finding.file, finding.line, None, message, 0, task)


def to_junit(results: list[TestResult], name: str = "build") -> str:
    """Write JUnit XML with one suite a class, in the order in which the classes first appear."""
    suites: dict[str, list[TestResult]] = {}
    for result in results:
        suites.setdefault(result.class_name, []).append(result)
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f"<testsuites name={_attribute(name)} {_counts(results)}>",
    ]
    for class_name, members in suites.items():
        lines.append(f"  <testsuite name={_attribute(class_name)} {_counts(members)}>")
        lines += [line for member in members for line in _case(member)]
        lines.append("  </testsuite>")
    return "\n".join([*lines, "</testsuites>", ""])


def _counts(results: list[TestResult]) -> str:
    failures = sum(result.outcome == "failed" for result in results)
    skipped = sum(result.outcome == "skipped" for result in results)
    seconds = sum(result.duration_s or 0.0 for result in results)
    return f'tests="{len(results)}" failures="{failures}" errors="0" skipped="{skipped}" time="{seconds:.3f}"'


def _case(result: TestResult) -> list[str]:
    time = f' time="{result.duration_s:.3f}"' if result.duration_s is not None else ""
    head = f"    <testcase classname={_attribute(result.class_name)} name={_attribute(result.name)}{time}"
    match result.outcome:
        case "failed":
            message = _attribute(result.message or (result.detail or "").partition("\n")[0])
            return [
                head + ">",
                f"      <failure message={message}>{escape(_legal(result.detail or ''))}</failure>",
                "    </testcase>",
            ]
        case "skipped":
            return [head + ">", "      <skipped/>", "    </testcase>"]
        case _:
            return [head + "/>"]


def _attribute(text: str) -> str:
    return quoteattr(_legal(text))


def _legal(text: str) -> str:
    """Take out the characters that XML 1.0 has no way to write."""
    return "".join(
        char
        if char in "\t\n\r"
        or "\x20" <= char <= "\ud7ff"
        or "\ue000" <= char <= "\ufffd"
        or char >= "\U00010000"
        else "\ufffd"
        for char in text
    )
