"""Makes the digest of a run: from its log and its reports, or from the cause where those can not say it."""

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from builder_bridge.log.digest import BuildFacts, digest_to_json, make_digest, previous_from_json, render_text
from builder_bridge.log.events import read_events
from builder_bridge.log.junit import to_junit
from builder_bridge.log.places import PathMap, decoded
from builder_bridge.log.problem import LogReport
from builder_bridge.log.reader import LogReader
from builder_bridge.log.reports import read_reports, with_reports
from builder_bridge.log.structured import with_events
from builder_bridge.workspace.snapshot import Snapshot
from orchestrator.engine.resources import Stores
from orchestrator.errors import NotFound
from orchestrator.source_files import sources_in
from orchestrator.store.records import ArtifactRow, BuildRow, RunRow

BLOCK_BYTES = 1 << 20


def make_explanation(
    stores: Stores,
    build: BuildRow,
    run: RunRow,
    ended: dict[str, Any],
    previous: dict[str, Any] | None,
    artifacts: Sequence[ArtifactRow],
) -> tuple[dict[str, Any], str]:
    """Read the whole log of a run; give the digest as JSON and as a model reads it. Blocking.

    Where Gradle's events or the reports of its tasks speak of the same thing as the log, they win.
    """
    events = read_events(stores.logs.events(run.id) or b"")
    reports = read_reports(stores.logs.reports(run.id).items())
    report = with_reports(with_events(read_report(stores, run.id), events), reports)
    snapshot = _snapshot(stores, build)
    paths = {file.path for file in snapshot.files} if snapshot else set()
    digest = make_digest(
        report,
        facts=BuildFacts(build.id, run.phone, time.time() - run.created_s),
        sources=None if snapshot is None else sources_in(snapshot.root),
        paths=PathMap.of(roots_in(report, paths)),
        previous=None if previous is None else previous_from_json(previous),
        tasks=events.tasks,
    )
    text, document = render_text(digest), digest_to_json(digest)
    if ended.get("facts"):
        document = {**document, "facts": ended["facts"]}
    cause = ended.get("cause")
    if cause and ended.get("exit_code") is None:
        text = f"build {build.id} ended before Gradle did: {cause}\n{text}"
        document = {**document, "cause": cause}
    made = [f"{artifact.path} ({artifact.size_bytes} bytes)" for artifact in artifacts]
    return document, "\n".join([text, *(f"artifact: {line}" for line in made)])


def junit_of(reports: Mapping[str, bytes], name: str) -> bytes | None:
    """Make JUnit XML of all tests that reports tell of, passed ones too; None where they tell of none."""
    results = read_reports(reports.items()).results
    return to_junit(list(results), name).encode() if results else None


def read_report(stores: Stores, run_id: str) -> LogReport:
    """Read a run's log to its end. Blocking."""
    reader, offset = LogReader(), 0
    while data := stores.logs.read(run_id, offset, BLOCK_BYTES):
        reader.feed(data)
        offset += len(data)
    return reader.close()


def roots_in(report: LogReport, workspace_paths: set[str]) -> list[str]:
    """Find the folders under which the log names files of the workspace, longest first.

    A log names files as the phone has them; where its run lay is told by the paths themselves.
    """
    found = set()
    for problem in report.problems:
        for name in _absolute(problem.file):
            parts = name.split("/")
            for cut in range(1, len(parts)):
                if "/".join(parts[cut:]) in workspace_paths:
                    found.add("/".join(parts[:cut]) or "/")
                    break
    return sorted(found, key=len, reverse=True)


def _absolute(file: str | None) -> Iterable[str]:
    if file is not None and file.startswith("/"):
        yield decoded(file)


def _snapshot(stores: Stores, build: BuildRow) -> Snapshot | None:
    try:
        return stores.workspaces.get(build.fingerprint, build.project, str(build.spec["place"]))
    except NotFound:
        return None
