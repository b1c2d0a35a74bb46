from builder_bridge.log.reports import kind_of, read_reports

RESULT = (
    b'<testsuite><testcase name="t" classname="C"><failure message="m">at C</failure></testcase></testsuite>'
)


def test_reports_are_told_apart_by_their_paths() -> None:
    assert kind_of("app/build/test-results/test/TEST-a.xml") == "test"
    assert kind_of("test-results/a.xml") == "test"
    assert kind_of("app/build/reports/lint-results.sarif") == "lint"
    assert kind_of("build/reports/problems/problems-report.html") == "problems"
    for other in ("app/src/main/AndroidManifest.xml", "build/reports/index.html", "test-results.xml", ""):
        assert kind_of(other) is None


def test_what_is_no_report_takes_nothing_from_the_others() -> None:
    files = [
        ("a/test-results/broken.xml", b"<html>"),
        ("a/test-results/TEST-c.xml", RESULT),
        ("a/lint.sarif", b"\x00"),
        ("problems-report.html", b""),
        ("other.txt", b"x"),
    ]
    reports = read_reports(files)
    assert [(result.name, result.outcome) for result in reports.results] == [("t", "failed")]
    assert reports.problems == ()
    assert [sentence.partition(":")[0] for sentence in reports.passed_over] == ["a/test-results/broken.xml"]
