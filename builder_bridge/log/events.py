"""`events.ndjson`, which the init script `pocketbuild-events.gradle` writes, as values.

Gradle itself says there which tasks ran, how each ended and how long it took, and where a script
failed. The file grows while the build runs and may be cut anywhere; a line that is no event of ours
is passed over and counted.
"""

import json
import re
from dataclasses import dataclass
from typing import Any

from builder_bridge.log.problem import Outcome
from builder_bridge.log.verdict import RUNNING, TaskRun

MAX_EVENTS = 200_000
_SOURCE = re.compile(r"[^'\n]*'([^'\n]+)'")


@dataclass(frozen=True, slots=True)
class CauseLink:
    """One exception of a chain; `file` and `line` where Gradle knew the place in a script."""

    type: str | None
    message: str
    file: str | None = None
    line: int | None = None


@dataclass(frozen=True, slots=True)
class GradleEvents:
    """All that the events of one build say; `outcome` is unknown until Gradle told the end.

    Tasks stand in the order in which they ended; those that never did come last and are `RUNNING`.
    """

    gradle: str | None = None
    outcome: Outcome = Outcome.UNKNOWN
    tasks: tuple[TaskRun, ...] = ()
    failures: tuple[tuple[CauseLink, ...], ...] = ()
    unread_lines: int = 0

    @property
    def failed_tasks(self) -> tuple[str, ...]:
        """The tasks that failed, in the order in which they ended."""
        return tuple(task.path for task in self.tasks if task.outcome == "FAILED")


def read_events(data: bytes) -> GradleEvents:
    """Read the file as far as it goes; the last line may be cut."""
    gradle: str | None = None
    outcome = Outcome.UNKNOWN
    tasks: list[TaskRun] = []
    running: dict[str, None] = {}
    failures: list[tuple[CauseLink, ...]] = []
    unread = 0
    for raw in data.split(b"\n")[:MAX_EVENTS]:
        if not raw.strip():
            continue
        event = _parse(raw)
        match event.get("event") if event else None:
            case "started":
                gradle = gradle or _text(event.get("gradle"))
            case "task_started" if isinstance(event.get("task"), str):
                running.setdefault(event["task"])
            case "task_finished" if isinstance(event.get("task"), str):
                running.pop(event["task"], None)
                tasks.append(_task(event))
            case "failure":
                failures.append(_chain(event.get("causes")))
            case "finished":
                outcome = Outcome.SUCCESS if event.get("outcome") == "success" else Outcome.FAILED
            case _:
                unread += 1
    tasks += [TaskRun(path, RUNNING) for path in running]
    return GradleEvents(gradle, outcome, tuple(tasks), tuple(failures), unread)


def _parse(raw: bytes) -> dict[str, Any]:
    try:
        event = json.loads(raw)
    except (ValueError, RecursionError):
        return {}
    return event if isinstance(event, dict) else {}


def _task(event: dict[str, Any]) -> TaskRun:
    began, ended = event.get("started_ms"), event.get("at_ms")
    duration_s = None
    if isinstance(began, int) and isinstance(ended, int) and ended >= began:
        duration_s = (ended - began) / 1000
    return TaskRun(event["task"], _text(event.get("outcome")) or "SUCCESS", duration_s)


def _chain(causes: Any) -> tuple[CauseLink, ...]:
    links = causes if isinstance(causes, list) else []
    return tuple(_link(link) for link in links[:50] if isinstance(link, dict))


def _link(link: dict[str, Any]) -> CauseLink:
    source = _SOURCE.match(_text(link.get("source")) or "")
    line = link.get("line")
    is_line = isinstance(line, int) and not isinstance(line, bool) and line > 0
    return CauseLink(
        _text(link.get("type")),
        _text(link.get("message")) or "",
        source[1] if source else None,
        line if is_line else None,
    )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
