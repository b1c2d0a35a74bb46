"""Folders of an agent's runs that are kept no longer: transcripts, outputs, what undoing needs.

A run that some process works on, or one of whose builds has not ended, is never touched. What goes is
first moved out of the list as a whole, so a kill never leaves half a run.
"""

import re
import shutil
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from orchestrator.agent_keys import forget_keys

FOLDER: Final = "agents"
_LEAVING: Final = "agent-run-"
"""How folders in the scratch folder begin that are on their way out."""
_YOUNG_S: Final = 86_400.0
"""How long a run without a transcript, and a key without a run, may be one that just begins."""
_BUILD_ID = re.compile(rb"[0-9a-f]{20}-[0-9]+")


@dataclass(frozen=True, slots=True)
class KeptFolder:
    """A run that nobody works on: when its last entry was written, and what it takes on the disk."""

    id: str
    finished_s: float
    size_bytes: int


def idle_runs(data_dir: Path, now_s: float) -> list[KeptFolder]:
    """Give the runs that no process works on. Blocking."""
    from agent.transcript import FILE_NAME, is_at_work

    folder = data_dir / FOLDER
    found = []
    for run in sorted(folder.iterdir()) if folder.is_dir() else []:
        transcript = run / FILE_NAME
        is_begun = transcript.exists()
        changed_s = (transcript if is_begun else run).stat().st_mtime
        if is_at_work(run) or (not is_begun and now_s - changed_s < _YOUNG_S):
            continue
        found.append(KeptFolder(run.name, changed_s, sum(_sizes(run))))
    return found


def without_live_builds(data_dir: Path, run_ids: Sequence[str], unfinished: Collection[str]) -> list[str]:
    """Give those of the runs that wait for none of the unfinished builds. Blocking."""
    from agent.transcript import FILE_NAME

    live = {build_id.encode() for build_id in unfinished}
    return [
        run_id for run_id in run_ids if not live or not _names(data_dir / FOLDER / run_id / FILE_NAME) & live
    ]


def remove_runs(data_dir: Path, run_ids: Sequence[str]) -> list[str]:
    """Remove runs but those that somebody has begun to work on; gives which went. Blocking."""
    from agent.transcript import FILE_NAME, held

    scratch = data_dir / "scratch"
    for left in scratch.glob(f"{_LEAVING}*"):
        shutil.rmtree(left)
    gone = []
    for run_id in run_ids:
        run = data_dir / FOLDER / run_id
        with held(run) as is_held:
            if not is_held and (run / FILE_NAME).exists():
                continue
            leaving = run.rename(scratch / f"{_LEAVING}{run_id}")
        shutil.rmtree(leaving)
        gone.append(run_id)
    forget_keys(data_dir, time.time() - _YOUNG_S)
    return gone


def _names(transcript: Path) -> set[bytes]:
    """Give everything in a transcript that looks like the id of a build."""
    if not transcript.exists():
        return set()
    with transcript.open("rb") as file:
        return {name for line in file for name in _BUILD_ID.findall(line)}


def _sizes(folder: Path) -> Iterator[int]:
    for path in folder.rglob("*"):
        told = path.lstat()
        yield told.st_size
