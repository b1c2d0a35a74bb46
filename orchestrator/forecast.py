"""How far a build is and how long it will take, judged by earlier builds of the same project.

Pure: what earlier builds took comes in, an estimate or None comes out. A build that earlier ones do not
tell about has no estimate, and none ever says that all is done before it is.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

MAX_PERCENT = 99.0
"""The end of the last task is not the end of the build."""


@dataclass(frozen=True, slots=True)
class EarlierBuild:
    """What one earlier build took: each task that ran to its end, and all of Gradle's run."""

    task_s: Mapping[str, float]
    gradle_s: float


@dataclass(frozen=True, slots=True)
class History:
    """How long each task takes; `pace` is the part of it that is waited for, as tasks run together."""

    task_s: Mapping[str, float]
    pace: float


@dataclass(frozen=True, slots=True)
class Estimate:
    """How far a build is, in percent below 100, and how long its tasks will still take."""

    percent: float
    remaining_s: float


def history_of(builds: Sequence[EarlierBuild]) -> History | None:
    """Give what the builds say together, by the median of each task; None where they say nothing."""
    paths = {path for build in builds for path in build.task_s}
    task_s = {path: median(b.task_s[path] for b in builds if path in b.task_s) for path in paths}
    total_s = sum(task_s.values())
    if total_s <= 0:
        return None
    return History(task_s, median(map(_pace, builds)))


def _pace(build: EarlierBuild) -> float:
    taken_s = sum(build.task_s.values())
    return min(1.0, build.gradle_s / taken_s) if taken_s > 0 and build.gradle_s > 0 else 1.0


def estimate(history: History | None, begun: Iterable[str]) -> Estimate | None:
    """Give how far a build is whose tasks have begun in this order; the last of them is at work.

    None without a history, before the first task, and where most tasks are not those of the history.
    """
    tasks = list(dict.fromkeys(begun))
    if history is None or not tasks:
        return None
    known = [path for path in tasks if path in history.task_s]
    if 2 * len(known) < len(tasks):
        return None
    total_s = sum(history.task_s.values())
    done_s = sum(history.task_s[path] for path in known if path != tasks[-1])
    left_s = max(0.0, total_s - done_s)
    return Estimate(min(MAX_PERCENT, 100.0 * done_s / total_s), left_s * history.pace)
