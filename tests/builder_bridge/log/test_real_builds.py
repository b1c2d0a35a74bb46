"""Logs and events of real builds with a planted fault each: the digest names the planted place.

They were recorded from Gradle 4.4.1 with the Android Gradle plugin 2.2.2 in the phone in a box.
"""

from dataclasses import dataclass
from pathlib import Path

import pytest

from builder_bridge.log.digest import Digest, Fault, make_digest, render_text
from builder_bridge.log.events import GradleEvents, read_events
from builder_bridge.log.places import PathMap
from builder_bridge.log.problem import Kind, Outcome
from builder_bridge.log.reader import LogReader
from builder_bridge.log.structured import with_events

RECORDED = Path(__file__).parents[2] / "cases" / "buildlog-real"
PROJECT = "/data/local/tmp/pocketbuild/runs/r1/project"


@dataclass(frozen=True)
class Planted:
    name: str
    kind: Kind
    fault: Fault
    place: str | None
    words: str
    task: str | None = None


PLANTED = [
    Planted(
        "java-error",
        Kind.COMPILE,
        Fault.YOUR_CODE,
        "app/src/main/java/org/pocketbuild/hello/Daytime.java:6",
        "variable noon",
        ":app:compileDebugJavaWithJavac",
    ),
    Planted(
        "missing-resource",
        Kind.RESOURCE,
        Fault.YOUR_CODE,
        "app/src/main/res/layout/main.xml:12:23",
        "@string/greeting_of_the_day",
        ":app:processDebugResources",
    ),
    Planted(
        "manifest-clash",
        Kind.MANIFEST,
        Fault.YOUR_CODE,
        "app/src/main/AndroidManifest.xml:5:9",
        "application@allowBackup",
        ":app:processFreeDebugManifest",
    ),
    Planted(
        "missing-dependency-offline",
        Kind.OFFLINE_DEPENDENCY,
        Fault.NETWORK_OR_OFFLINE,
        None,
        "pocketbuild seed com.squareup.okhttp3:okhttp:3.12.13",
    ),
    Planted("script-error", Kind.SCRIPT, Fault.PROJECT_SETUP, "app/build.gradle:11", "versionCod()"),
    Planted(
        "signing-password",
        Kind.SIGNING,
        Fault.PROJECT_SETUP,
        None,
        "keystore password was incorrect",
        ":app:packageFreeDebug",
    ),
    Planted(
        "out-of-memory", Kind.MEMORY, Fault.THIS_PHONE, "app/build.gradle:20", "Java heap space", ":app:eat"
    ),
    Planted(
        "disk-full",
        Kind.DISK,
        Fault.THIS_PHONE,
        "app/build.gradle:18",
        "No space left on device",
        ":app:fill",
    ),
    Planted(
        "test-failure", Kind.TEST, Fault.YOUR_CODE, "ClockTest.java:10", "ClockTest > strikes", ":clock:test"
    ),
    Planted("killed", Kind.MEMORY, Fault.THIS_PHONE, None, "Killed", ":app:perish"),
]


def recorded_events(name: str) -> GradleEvents:
    return read_events((RECORDED / f"{name}.events.ndjson").read_bytes())


def digest_of(name: str, *, has_events: bool) -> Digest:
    reader = LogReader()
    reader.feed((RECORDED / f"{name}.log").read_bytes())
    report = reader.close()
    events = recorded_events(name) if has_events else GradleEvents()
    return make_digest(with_events(report, events), paths=PathMap.of([PROJECT]), tasks=events.tasks)


@pytest.mark.parametrize("has_events", [False, True])
@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.name)
def test_the_digest_names_the_planted_place(planted: Planted, has_events: bool) -> None:
    digest = digest_of(planted.name, has_events=has_events)
    text = render_text(digest)
    assert (digest.kind, digest.fault) == (planted.kind, planted.fault)
    assert planted.words in text
    assert [cause.place for cause in digest.causes] == [planted.place]
    assert len(text) <= 2000


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.name)
def test_the_cheaper_check_is_the_task_at_fault(planted: Planted) -> None:
    check = digest_of(planted.name, has_events=True).cheaper_check
    assert (check.path if check else None) == planted.task


def test_events_give_the_outcome_the_tasks_and_how_long_they_took() -> None:
    events = recorded_events("java-error")
    assert (events.gradle, events.outcome) == ("4.4.1", Outcome.FAILED)
    assert events.failed_tasks == (":app:compileDebugJavaWithJavac",)
    assert events.tasks[-1].duration_s == pytest.approx(4.785)
    assert events.unread_lines == 0


def test_events_give_the_place_of_a_script_error() -> None:
    (chain,) = recorded_events("script-error").failures
    assert (chain[0].file, chain[0].line) == (f"{PROJECT}/app/build.gradle", 11)
    assert "versionCod()" in chain[-1].message


def test_a_task_that_never_ended_is_running() -> None:
    last = recorded_events("killed").tasks[-1]
    assert (last.path, last.outcome, last.duration_s) == (":app:perish", "RUNNING", None)
