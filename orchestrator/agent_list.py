"""Lists the runs of an agent that are kept in a data folder, a page at a time.

Their folders are the truth: a command writes them where no service is. A page reads the first and the
last entry of the runs on it; what filters ask of the others is remembered by the size and the time of
their transcripts, so that each is opened once.
"""

import os
import re
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal

from agent.decide import StopReason
from agent.entries import Began, Stopped
from agent.errors import TranscriptFault
from agent.transcript import FILE_NAME, is_at_work, read_ends

FOLDER: Final = "agents"
OWNER_FILE: Final = "owner"
LOCAL_OWNER: Final = "local"
"""Whose the runs of the command line are."""
RUN_ID = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9a-f]{4}")
"""When a run began, and what tells it from others of the same second."""

State = Literal["running", "asking", "interrupted", "stopped", "damaged"]


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Which runs a listing shows; `before` is the id of the last one of the page before."""

    owner: str | None = None
    state: State | None = None
    reason: str | None = None
    workspace: str | None = None
    before: str | None = None
    limit: int = 50


@dataclass(frozen=True, slots=True)
class KeptRun:
    """A run as its folder tells of it; `fault` says why its transcript cannot be read."""

    id: str
    owner: str
    began: Began | None
    stopped: Stopped | None
    fault: str | None = None

    @property
    def idle_state(self) -> State:
        """What the run is where no process works on it."""
        if self.fault is not None:
            return "damaged"
        is_put_down = self.stopped is None or self.stopped.reason == StopReason.INTERRUPTED
        return "interrupted" if is_put_down else "stopped"

    @property
    def reason(self) -> str | None:
        """Why it stopped, if it did."""
        return None if self.stopped is None else self.stopped.reason

    def fields(self, state: State) -> dict[str, Any]:
        """Give the fields of a reply about the run."""
        began, stopped = self.began, self.stopped
        return {
            "id": self.id,
            "owner": self.owner,
            "state": state,
            "assignment": None if began is None else began.assignment,
            "workspace": None if began is None else began.workspace,
            "model": None if began is None else f"{began.provider}/{began.model}",
            "created": None if began is None else began.at,
            "finished": stopped.at if stopped is not None and state == "stopped" else None,
            "question": None,
            "doing": None,
            "reason": self.reason,
            "detail": self.fault if stopped is None else stopped.detail,
            "text": None if stopped is None else stopped.text,
            "spent": None if stopped is None else asdict(stopped.spent),
        }


@dataclass(frozen=True, slots=True)
class _Marks:
    """What filters ask of a run, as it was when its transcript had this size and time."""

    stamp: tuple[int, int] | None
    owner: str
    workspace: str | None
    idle_state: State
    reason: str | None


def read_run(data_dir: Path, run_id: str) -> KeptRun:
    """Give the run of an id whose folder is there. Blocking."""
    folder = data_dir / FOLDER / run_id
    owner = owner_of(folder)
    try:
        first, last = read_ends(folder)
    except TranscriptFault as fault:
        return KeptRun(run_id, owner, None, None, str(fault))
    began = first if isinstance(first, Began) else None
    return KeptRun(run_id, owner, began, last if isinstance(last, Stopped) else None)


def owner_of(folder: Path) -> str:
    """Say whose a run is: what the command line began is the machine's own user's. Blocking."""
    try:
        return (folder / OWNER_FILE).read_text()
    except FileNotFoundError:
        return LOCAL_OWNER


class RunList:
    """The runs of one data folder. All of it blocks, and may be called from several threads."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._folder = str(data_dir / FOLDER)
        """As text: thousands are looked at for a page, and path objects take three times as long."""
        self._marks: dict[str, _Marks] = {}

    def page(self, wanted: RunFilter, live: Mapping[str, State]) -> list[tuple[KeptRun, State]]:
        """Give runs with their states, newest first; `live` holds those at work in this process."""
        found: list[tuple[KeptRun, State]] = []
        for run_id in reversed(self._ids_before(wanted.before)):
            if not self._may_fit(run_id, wanted, live):
                continue
            run = read_run(self._data_dir, run_id)
            state = self._state(run_id, run.idle_state, live)
            if wanted.state in (None, state):
                found.append((run, state))
                if len(found) == wanted.limit:
                    break
        return found

    def _ids_before(self, before: str | None) -> list[str]:
        try:
            ids = sorted(filter(RUN_ID.fullmatch, os.listdir(self._folder)))  # noqa: PTH208
        except FileNotFoundError:
            ids = []
        for gone in self._marks.keys() - set(ids):
            self._marks.pop(gone, None)
        return ids if before is None else ids[: bisect_left(ids, before)]

    def _may_fit(self, run_id: str, wanted: RunFilter, live: Mapping[str, State]) -> bool:
        """Say whether a run may be shown, without opening what is remembered of it."""
        if (wanted.owner, wanted.state, wanted.reason, wanted.workspace) == (None, None, None, None):
            return True
        marks = self._marks_of(run_id)
        for name in ("owner", "reason", "workspace"):
            if getattr(wanted, name) not in (None, getattr(marks, name)):
                return False
        return wanted.state is None or self._state(run_id, marks.idle_state, live) == wanted.state

    def _marks_of(self, run_id: str) -> _Marks:
        try:
            told = os.stat(f"{self._folder}/{run_id}/{FILE_NAME}")  # noqa: PTH116
            stamp = (told.st_size, told.st_mtime_ns)
        except FileNotFoundError:
            stamp = None
        marks = self._marks.get(run_id)
        if marks is None or marks.stamp != stamp:
            run = read_run(self._data_dir, run_id)
            workspace = None if run.began is None else run.began.workspace
            marks = _Marks(stamp, run.owner, workspace, run.idle_state, run.reason)
            self._marks[run_id] = marks
        return marks

    def _state(self, run_id: str, idle: State, live: Mapping[str, State]) -> State:
        if run_id in live:
            return live[run_id]
        if idle == "interrupted" and is_at_work(self._data_dir / FOLDER / run_id):
            return "running"
        return idle
