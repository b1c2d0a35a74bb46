"""Reports for other programs: SARIF, annotations, code quality, JUnit, Markdown."""

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import jsonschema
import pytest

from builder_bridge.log.annotations import to_github, to_gitlab
from builder_bridge.log.digest import make_digest
from builder_bridge.log.junit import TestResult as Result
from builder_bridge.log.junit import TestXmlFault as XmlFault
from builder_bridge.log.junit import problem_of, read_test_xml, results_of, to_junit
from builder_bridge.log.markdown import to_markdown
from builder_bridge.log.places import PathMap
from builder_bridge.log.problem import LogReport
from builder_bridge.log.reader import LogReader
from builder_bridge.log.sarif import to_sarif

CASES = Path(__file__).parents[2] / "cases"
LOGS = sorted(path for path in (CASES / "buildlog").glob("*.json") if not path.name.startswith("own-"))
SCHEMA = jsonschema.Draft4Validator(json.loads((CASES / "sarif" / "schema-2.1.0.json").read_text()))


def read(log: str) -> LogReport:
    reader = LogReader()
    reader.feed(log.encode())
    return reader.close()


def read_case(path: Path) -> LogReport:
    return read(json.loads(path.read_text())["log"])


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.stem)
def test_sarif_is_valid_by_its_schema(path: Path) -> None:
    body = to_sarif(read_case(path), PathMap.of(["/home/user/work"]), "1.0")
    SCHEMA.validate(json.loads(json.dumps(body)))


def test_sarif_names_files_of_the_workspace_by_their_relative_path() -> None:
    report = read("e: file:///data/run/My%20App/a%20b.kt:3:5 bad\ne: file:///opt/x%20y.kt:1:2 worse\n")
    results = to_sarif(report, PathMap.of(["/data/run/My App"]))["runs"][0]["results"]
    places = [result["locations"][0]["physicalLocation"]["artifactLocation"] for result in results]
    assert places == [{"uri": "a%20b.kt", "uriBaseId": "SRCROOT"}, {"uri": "file:///opt/x%20y.kt"}]


def test_a_github_command_cannot_be_broken_out_of_by_a_message() -> None:
    report = read("e: file:///p/a,b:c.kt:3:5 100% bad\nsecond line ::error::fake\n")
    place = "file=/p/a%2Cb%3Ac.kt,line=3,col=5,title=kotlinc error"
    assert to_github(report) == f"::error {place}::100%25 bad%0Asecond line ::error::fake"


def test_github_is_told_what_it_would_drop_unseen() -> None:
    report = read("".join(f"e: file:///p/A.kt:{n}:1 bad {n}\n" for n in range(1, 15)))
    lines = to_github(report).split("\n")
    assert (len(lines), lines[-1]) == (11, "::notice::4 more problems are in the log")


def test_gitlab_fingerprints_outlive_moved_lines_and_tell_twins_apart() -> None:
    one = "e: file:///p/A.kt:{}:1 bad\n"
    first = to_gitlab(read(one.format(3) + one.format(9)))
    moved = to_gitlab(read(one.format(4) + one.format(11)))
    assert [entry["fingerprint"] for entry in first] == [entry["fingerprint"] for entry in moved]
    assert first[0]["fingerprint"] != first[1]["fingerprint"]
    assert first[0]["location"] == {"path": "/p/A.kt", "lines": {"begin": 3}}


def test_a_failed_test_of_the_log_is_a_failed_case_of_junit() -> None:
    report = read_case(CASES / "buildlog" / "test-two-failing.json")
    root = ET.fromstring(to_junit(results_of(report)))
    assert [(case.get("classname"), case.get("name")) for case in root.iter("testcase")] == [
        ("net.acme.lantern.FlameTest", "flickers"),
        ("net.acme.lantern.WickTest", "burnsDown"),
    ]
    assert root.get("failures") == "2"


def test_a_build_that_failed_before_its_tests_is_never_a_junit_file_without_failures() -> None:
    report = read_case(CASES / "buildlog" / "javac-errors-with-carets.json")
    root = ET.fromstring(to_junit(results_of(report)))
    assert [case.get("name") for case in root.iter("testcase")] == [":app:compileDebugJavaWithJavac"]
    assert root.get("failures") == "1"


TEST_XML = b"""<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="net.acme.FlameTest" tests="3" skipped="1" failures="1" errors="0" time="0.05">
  <properties/>
  <testcase name="burns" classname="net.acme.FlameTest" time="0.01"/>
  <testcase name="flickers" classname="net.acme.FlameTest" time="0.04">
    <failure message="expected:&lt;3&gt; but was:&lt;2&gt;" >java.lang.AssertionError: x
\tat org.junit.Assert.fail(Assert.java:89)
\tat net.acme.FlameTest.flickers(FlameTest.kt:38)
</failure>
  </testcase>
  <testcase name="rests" classname="net.acme.FlameTest" time="0.0"><skipped/></testcase>
  <system-out><![CDATA[noise]]></system-out>
</testsuite>
"""


def test_gradles_test_xml_is_read_with_durations_and_places() -> None:
    results = read_test_xml(TEST_XML)
    assert [(result.name, result.outcome, result.duration_s) for result in results] == [
        ("burns", "passed", 0.01),
        ("flickers", "failed", 0.04),
        ("rests", "skipped", 0.0),
    ]
    problem = problem_of(results[1])
    assert problem is not None
    assert (problem.file, problem.line, problem.gist) == ("FlameTest.kt", 38, "net.acme.FlameTest > flickers")
    assert problem_of(results[0]) is None


def test_junit_written_is_junit_read() -> None:
    results = read_test_xml(TEST_XML)
    again = read_test_xml(to_junit(results).encode())
    assert [(result.name, result.outcome) for result in again] == [(r.name, r.outcome) for r in results]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"<testsuite>",
        b"no xml",
        b'<!DOCTYPE a [<!ENTITY b "c">]><testsuite>&b;</testsuite>',
    ],
)
def test_hostile_test_xml_is_a_fault_that_says_why(data: bytes) -> None:
    with pytest.raises(XmlFault, match="test results"):
        read_test_xml(data)


def test_junit_writes_no_character_that_xml_forbids() -> None:
    text = to_junit([Result("a.B", "x\x00\ud800y", "failed", None, "m\x1b", "d\x07")])
    assert ET.fromstring(text).find(".//testcase") is not None


def test_markdown_shows_nothing_as_markup_that_the_log_did_not_mean_so() -> None:
    digest = make_digest(
        read("e: file:///p/A.kt:3:5 <img src=x> | `code` *x*\n\nBUILD FAILED in 1s\n"),
        sources={"A.kt": "a\nb\n```\nd"},
        paths=PathMap.of(["/p"]),
    )
    text = to_markdown(digest)
    assert r"\<img src=x\> \| \`code\` \*x\*" in text
    assert "````\n" in text
