"""Makes the digest of a run: from its log, or from the cause where the log can not say it."""

from typing import Any

from builder_bridge.log.reader import LogReader
from orchestrator.engine.resources import Stores
from orchestrator.store.records import BuildRow, RunRow

BLOCK_BYTES = 1 << 20


def make_explanation(
    stores: Stores,
    build: BuildRow,
    run: RunRow,
    ended: dict[str, Any],
    previous: dict[str, Any] | None,
) -> tuple[dict[str, Any], str]:
    """Read the whole log of a run; give the digest as JSON and as a model reads it."""
    reader, offset = LogReader(), 0
    while data := stores.logs.read(run.id, offset, BLOCK_BYTES):
        reader.feed(data)
        offset += len(data)
    report = reader.close()
    digest = {
        "outcome": report.outcome.value,
        "kind": report.kind,
        "problems": [
            {"severity": p.severity.value, "file": p.file, "line": p.line, "message": p.message}
            for p in report.problems
        ],
    }
    text = "\n".join(f"{p.place or ''} {p.message}" for p in report.problems)
    return digest, text
