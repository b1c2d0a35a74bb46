"""Values that say what to build on a phone, how far it is, and what came of it."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NewType

BuildId = NewType("BuildId", str)
"""Names one durable build; the orchestrator makes it from the build's fingerprint."""

RunId = NewType("RunId", str)
"""Names one run (attempt) of a build on a phone: `[a-z0-9-]{1,40}`."""


@dataclass(frozen=True, slots=True)
class BuildSpec:
    """What Gradle is asked to do with a workspace.

    `tasks` are Gradle task paths; `args` are further Gradle arguments, each beginning with `-`;
    `project_dir` is the Gradle root inside the workspace, relative and with forward slashes.
    """

    tasks: tuple[str, ...] = ("assembleDebug",)
    args: tuple[str, ...] = ()
    clean: bool = False
    project_dir: str = "."
    deadline_s: float = 3600.0


class BuildState(StrEnum):
    """Where a run is. The phone writes the first eight; the host adds the last three."""

    RECEIVING = "receiving"
    RECEIVED = "received"
    UNPACKING = "unpacking"
    RUNNING = "running"
    COLLECTING = "collecting"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    LOST = "lost"
    FROZEN = "frozen"
    TIMED_OUT = "timed_out"

    @property
    def is_final(self) -> bool:
        """Whether a run in this state will never leave it. A frozen run may thaw."""
        return self in _FINAL_STATES


_FINAL_STATES = frozenset(
    {BuildState.DONE, BuildState.FAILED, BuildState.CANCELLED, BuildState.LOST, BuildState.TIMED_OUT}
)


@dataclass(frozen=True, slots=True)
class RunIdentity:
    """Which process on which boot is the run: tells a living run from a reused pid."""

    pid: int
    start_ticks: int
    boot_id: str


@dataclass(frozen=True, slots=True)
class Artifact:
    """A file that the build made; `path` is relative to the project on the phone."""

    index: int
    path: str
    kind: str
    size_bytes: int
    sha256: str
    variant: str | None = None


@dataclass(frozen=True, slots=True)
class LogChunk:
    """Bytes of the run's console log, from `offset` on."""

    offset: int
    data: bytes


@dataclass(frozen=True, slots=True)
class StateChanged:
    """The run entered another state; `detail` says why, where that is known."""

    state: BuildState
    detail: str | None = None


BuildEvent = LogChunk | StateChanged


@dataclass(frozen=True, slots=True)
class BuildResult:
    """What came of one run.

    `exit_code` is Gradle's own, None where Gradle never ended. `cause` names why a run was
    cancelled, lost or failed before Gradle spoke. `stage_s` holds seconds by stage name. `facts` say
    how it was run: route, uid, daemon, upload, what was altered in the phone's copy.
    """

    run_id: RunId
    state: BuildState
    exit_code: int | None
    log_size_bytes: int
    log_sha256: str
    artifacts: tuple[Artifact, ...] = ()
    cause: str | None = None
    stage_s: dict[str, float] = field(default_factory=dict)
    facts: dict[str, str] = field(default_factory=dict)

    @property
    def is_success(self) -> bool:
        """Whether Gradle ran to its end and was content."""
        return self.state is BuildState.DONE and self.exit_code == 0
