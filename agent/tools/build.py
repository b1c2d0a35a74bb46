"""What the agent asks of a builder, and what it gets back.

This is the only file of the agent that knows the bridge's values. The builder itself lives above:
the orchestrator hands one in, so that a run of the agent and a build by hand are one and the same
durable build.
"""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from agent.message import JsonObject
from agent.progress import OnBuildProgress
from builder_bridge.build import Artifact, BuildId, BuildSpec

__all__ = [
    "BuildId",
    "BuildOutcome",
    "BuildReport",
    "BuildSpec",
    "Builder",
    "LogHits",
    "LogLines",
    "PhoneStatus",
]


class BuildOutcome(StrEnum):
    """How a build ended."""

    GREEN = "green"
    FAILED = "failed"
    CANCELLED = "cancelled"
    LOST = "lost"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class BuildReport:
    """What came of a build, fit for a model and for a person.

    `fingerprint` names the workspace state that was built; `digest_text` is what a model reads, in at
    most about 2,000 characters; `digest` the same as a JSON object, with `causes`; `phone_s` is how
    long a phone was held, zero where `is_from_earlier`: then the same state was built before with the
    same tasks and the phone was not asked. `refused` builds never reached a phone; the text says why.
    """

    build_id: BuildId
    outcome: BuildOutcome
    fingerprint: str
    digest_text: str
    digest: JsonObject
    artifacts: tuple[Artifact, ...] = ()
    seconds: float = 0.0
    phone_s: float = 0.0
    log_lines: int = 0
    is_from_earlier: bool = False


@dataclass(frozen=True, slots=True)
class LogLines:
    """Some lines of a build's log, without line ends; `first_line` counts from one."""

    first_line: int
    lines: tuple[str, ...]
    total_lines: int


@dataclass(frozen=True, slots=True)
class LogHits:
    """Where a pattern stands in a build's log: one `LogLines` for each place, with lines around it."""

    places: tuple[LogLines, ...]
    hits: int
    total_lines: int


@dataclass(frozen=True, slots=True)
class PhoneStatus:
    """A phone as the builder knows it; `details` holds its contract, battery, heat and storage."""

    serial: str
    state: str
    route: str | None
    details: JsonObject


class Builder(Protocol):
    """Builds a workspace durably, and answers questions about builds.

    A workspace is a folder on this host. Faults between host and phone are the builder's to recover
    from; where it cannot, the report's outcome is `lost` and the digest says why. Cancelling a wait
    never cancels a build.
    """

    async def fingerprint(self, workspace: Path) -> str:
        """Name the present state of the workspace; equal states have equal names."""
        ...

    async def submit(self, workspace: Path, spec: BuildSpec) -> BuildId:
        """Hand the present state over and return at once.

        The same state and spec give the same build while it is under way or once it has ended by
        itself, so that asking twice never builds twice.
        """
        ...

    async def wait(self, build_id: BuildId, on_progress: OnBuildProgress) -> BuildReport:
        """Tell of a build until it ends and give its report; may be called again at any time."""
        ...

    async def cancel(self, build_id: BuildId) -> None:
        """Ask for the end of a build; `wait` then returns with the outcome `cancelled`."""
        ...

    async def read_log(self, build_id: BuildId, first_line: int, line_count: int) -> LogLines:
        """Give lines of the log; a negative `first_line` counts from the end."""
        ...

    async def search_log(self, build_id: BuildId, pattern: str, context_lines: int, max_hits: int) -> LogHits:
        """Find a regular expression (RE2 syntax) in the log."""
        ...

    async def inspect_artifact(self, build_id: BuildId, path: str | None) -> JsonObject:
        """Say what an APK, AAB or AAR holds; `path` may be None where the build made just one."""
        ...

    async def phones(self) -> tuple[PhoneStatus, ...]:
        """Give the phones that could build, each with its state."""
        ...
