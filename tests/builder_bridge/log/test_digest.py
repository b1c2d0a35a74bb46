"""The digest: root causes first, whose fault, what changed, within a budget."""

import json
from pathlib import Path

import pytest

from builder_bridge.log.digest import (
    BuildFacts,
    Fault,
    TaskRun,
    digest_to_json,
    make_digest,
    previous_from_json,
    render_text,
)
from builder_bridge.log.places import PathMap
from builder_bridge.log.problem import LogReport
from builder_bridge.log.reader import LogReader

FOLDER = Path(__file__).parents[2] / "cases" / "buildlog"
CASES = sorted(path for path in FOLDER.glob("*.json") if not path.name.startswith("own-"))
ROOT = "/data/data/org.builder/files/runs/r1/project"
MAIN = f"file://{ROOT}/app/src/main/kotlin/ui/Main.kt"
FAILED = "\nBUILD FAILED in 3m 41s\n"


def read(log: str) -> LogReport:
    reader = LogReader()
    reader.feed(log.encode())
    return reader.close()


def read_case(name: str) -> LogReport:
    return read(json.loads((FOLDER / f"{name}.json").read_text())["log"])


def missing_name_log(uses: int) -> str:
    errors = [f"e: {MAIN}:{41 + n}:17 Unresolved reference 'rememberDrawer'." for n in range(uses)]
    return "\n".join(["> Task :app:compileDebugKotlin FAILED", *errors, FAILED])


def test_the_text_reads_as_a_person_would_tell_it() -> None:
    digest = make_digest(
        read(missing_name_log(8)),
        facts=BuildFacts("7f3a2c", "Pixel 9", 221.4, "3 of 8 builds"),
        paths=PathMap.of([ROOT]),
        sources={"app/src/main/kotlin/ui/Main.kt": "\n" * 40 + "    val drawer = rememberDrawer()\n"},
        previous=previous_from_json({"build_id": "5e10bd", "causes": [{"identity": name} for name in "abc"]}),
        changed_files=("app/src/main/kotlin/ui/Main.kt", "build.gradle.kts"),
        tasks=(TaskRun(":app:compileDebugKotlin", "FAILED", 38.2),),
    )
    expected = """\
build 7f3a2c FAILED in 221 s on Pixel 9 · :app:compileDebugKotlin · compile · fault: your_code · 1 cause, \
8 errors in 1 file
1  app/src/main/kotlin/ui/Main.kt:41:17  Unresolved reference 'rememberDrawer'.  (7 more follow from it)
        40 |
      > 41 |     val drawer = rememberDrawer()
        42 |
since build 5e10bd: 3 causes → 1 (3 solved, 1 new); changed Main.kt, build.gradle.kts · spent 3 of 8 builds
cheaper check: task=":app:compileDebugKotlin" took 38 s · \
full log: read_build_log(build="7f3a2c", problem=1)"""
    assert render_text(digest) == expected


@pytest.mark.parametrize("budget_chars", [0, 200, 2000])
@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_each_root_cause_stands_whatever_the_budget(path: Path, budget_chars: int) -> None:
    digest = make_digest(read(json.loads(path.read_text())["log"]), facts=BuildFacts("b1"))
    text = render_text(digest, budget_chars)
    for number, cause in enumerate(digest.causes, 1):
        assert f"\n{number}  {cause.place or f'[{cause.problem.tool}]'}" in text
        assert cause.problem.gist[:60] in text


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_the_budget_is_kept_unless_the_causes_alone_exceed_it(path: Path) -> None:
    digest = make_digest(read(json.loads(path.read_text())["log"]), facts=BuildFacts("b1"))
    least = len(render_text(digest, 0))
    assert len(render_text(digest, 2000)) <= max(2000, least)


def test_what_is_left_out_is_said_with_the_way_to_read_it() -> None:
    log = "".join(f"e: {MAIN}:{n}:1 Unresolved reference 'name{n}'.\n" for n in range(1, 301)) + FAILED
    text = render_text(make_digest(read(log), facts=BuildFacts("b1")))
    assert text.endswith(
        'left out: 100 more causes, 1 line of detail; read them with read_build_log(build="b1", problem=N)'
    )


def test_the_json_form_leaves_nothing_out_and_is_plain_json() -> None:
    digest = make_digest(read(missing_name_log(3)), paths=PathMap.of([ROOT]))
    body = digest_to_json(digest)
    assert json.loads(json.dumps(body)) == body
    assert [len(cause["followers"]) for cause in body["causes"]] == [2]
    assert body["causes"][0]["path"] == "app/src/main/kotlin/ui/Main.kt"


@pytest.mark.parametrize(
    ("case", "fault"),
    [
        ("javac-errors-with-carets", Fault.YOUR_CODE),
        ("native-clang-errors", Fault.YOUR_CODE),
        ("test-two-failing", Fault.YOUR_CODE),
        ("script-groovy-syntax", Fault.PROJECT_SETUP),
        ("toolchain-gradle-too-old", Fault.PROJECT_SETUP),
        ("sdk-location-not-found", Fault.PROJECT_SETUP),
        ("sdk-compile-sdk-too-low", Fault.PROJECT_SETUP),
        ("dependency-could-not-find", Fault.PROJECT_SETUP),
        ("aapt2-daemon-wrong-architecture", Fault.THIS_PHONE),
        ("aapt2-cannot-run-permission-denied", Fault.THIS_PHONE),
        ("room-sqlite-native-missing-ksp", Fault.THIS_PHONE),
        ("memory-killed-signal-9-cut", Fault.THIS_PHONE),
        ("disk-no-space-execution-history", Fault.THIS_PHONE),
        ("daemon-lock-timeout", Fault.THIS_PHONE),
        ("offline-no-cached-version", Fault.NETWORK_OR_OFFLINE),
        ("own-dep-host", Fault.NETWORK_OR_OFFLINE),
        ("cancelled-by-request", None),
        ("success-gradle4", None),
    ],
)
def test_the_fault_is_told_from_the_kind_and_the_words(case: str, fault: Fault | None) -> None:
    assert make_digest(read_case(case)).fault is fault


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("aapt2-daemon-wrong-architecture", "aapt2FromMavenOverride"),
        ("room-sqlite-native-missing-ksp", "sqlite-jdbc"),
        ("memory-killed-signal-9-cut", "phantom process killer"),
        ("memory-metaspace", "MaxMetaspaceSize"),
        ("disk-no-space-execution-history", "storage is full"),
        (
            "offline-no-cached-version",
            "`pocketbuild seed androidx.work:work-runtime-ktx:2.10.3 com.squareup.okhttp3:okhttp:5.1.0`",
        ),
        ("offline-artifact-not-downloaded", "pocketbuild seed com.google.crypto.tink:tink-android:1.15.0"),
    ],
)
def test_a_fault_of_the_phone_comes_with_what_helps(case: str, words: str) -> None:
    assert any(words in advice for advice in make_digest(read_case(case)).advice)


def test_faults_of_the_code_come_without_advice() -> None:
    assert make_digest(read_case("javac-errors-with-carets")).advice == ()


def test_one_missing_name_is_one_cause_however_often_it_is_used() -> None:
    other = MAIN.replace("Main", "Other")
    log = f"{missing_name_log(2)}e: {other}:3:5 Unresolved reference 'rememberDrawer'.\n"
    (cause,) = make_digest(read(log)).causes
    assert len(cause.followers) == 2


def test_a_type_that_cannot_be_inferred_follows_from_the_name_missing_on_its_line() -> None:
    log = f"e: {MAIN}:4:9 Unresolved reference 'x'.\ne: {MAIN}:4:3 Cannot infer type for this parameter.\n"
    assert len(make_digest(read(log)).causes) == 1


def test_a_type_that_cannot_be_inferred_elsewhere_is_a_cause_of_its_own() -> None:
    log = f"e: {MAIN}:4:9 Unresolved reference 'x'.\ne: {MAIN}:9:3 Cannot infer type for this parameter.\n"
    assert len(make_digest(read(log)).causes) == 2


def test_what_stands_below_a_syntax_error_follows_from_it() -> None:
    log = f"e: {MAIN}:4:9 Syntax error: Expecting '}}'.\ne: {MAIN}:9:3 Unresolved reference 'y'.\n"
    assert len(make_digest(read(log)).causes) == 1


def test_a_summary_is_no_cause_even_where_it_comes_first() -> None:
    causes = make_digest(read_case("dex-r8-missing-classes")).causes
    assert [cause.problem.gist.startswith("Missing class proguard") for cause in causes] == [True]


def test_with_warnings_as_errors_the_warnings_are_the_causes() -> None:
    causes = make_digest(read_case("kotlin-warnings-as-errors")).causes
    assert [cause.problem.line for cause in causes] == [19, 24]


def test_the_symbol_stands_beside_cannot_find_symbol() -> None:
    assert "cannot find symbol: class TimetableAdaptor" in render_text(
        make_digest(read_case("javac-errors-with-carets"))
    )


def test_a_cause_that_stayed_is_neither_solved_nor_new() -> None:
    before = digest_to_json(make_digest(read(missing_name_log(1))))
    moved = missing_name_log(1).replace(":41:17", ":52:17")
    changes = make_digest(read(moved), previous=previous_from_json(before)).changes
    assert changes is not None
    assert (changes.causes_before, changes.causes_after, changes.solved, changes.new) == (1, 1, 0, 0)
