"""Rows as values: what the rest of the service reads from the tables."""

from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, TypeVar

import sqlalchemy as sa

R = TypeVar("R")


class Phase(StrEnum):
    """Where a build is, as the service sees it."""

    QUEUED = "queued"
    RUNNING = "running"
    FINISHED = "finished"


class Outcome(StrEnum):
    """How a finished build ended.

    `succeeded` and `failed` are Gradle's own words and so hold for this content for ever; the others
    say why Gradle did not get to speak, and the same content may be built again.
    """

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"
    LOST = "lost"
    REFUSED = "refused"

    @property
    def is_lasting(self) -> bool:
        """Whether asking for the same content again gives this build instead of a new one."""
        return self in {Outcome.SUCCEEDED, Outcome.FAILED}


@dataclass(frozen=True, slots=True)
class BuildRow:
    """A build. `spec` holds what Gradle is asked, `needs` what a phone must offer."""

    id: str
    identity: str
    generation: int
    owner: str
    project: str
    fingerprint: str
    spec: dict[str, Any]
    needs: dict[str, Any]
    pool: str
    phone: str | None
    priority: int
    state: str
    stage: str
    reason: str | None
    outcome: str | None
    exit_code: int | None
    cause: str | None
    cancel_asked: int
    attempt: int
    created_s: float
    started_s: float | None
    finished_s: float | None
    request_id: str | None
    size_bytes: int

    @property
    def is_finished(self) -> bool:
        """Whether nothing about this build will change any more."""
        return self.state == Phase.FINISHED

    @property
    def run_id(self) -> str:
        """Name of the latest run of this build."""
        return run_id_of(self.id, self.attempt)


@dataclass(frozen=True, slots=True)
class RunRow:
    """One attempt of a build on one phone; `stage_s` holds seconds by stage name."""

    id: str
    build_id: str
    attempt: int
    phone: str
    host: str
    route: str | None
    state: str
    detail: str | None
    created_s: float
    finished_s: float | None
    log_size_bytes: int | None
    log_sha256: str | None
    stage_s: dict[str, float]
    digest: dict[str, Any] | None
    digest_text: str | None


@dataclass(frozen=True, slots=True)
class PhoneRow:
    """A phone. `build_id` is the lease; `stop_run` must be stopped there before the next one.

    `last_project` holds the projects that it built, the latest first, one a line.
    """

    address: str
    host: str
    pool: str | None
    route: str | None
    serial: str | None
    state: str
    reason: str | None
    contract: dict[str, Any] | None
    health: dict[str, Any] | None
    seen_s: float | None
    build_id: str | None
    leased_s: float | None
    stop_run: str | None
    last_project: str | None

    def is_named(self, name: str) -> bool:
        """Whether a person means this phone by `name`: its address or its serial."""
        return name in {self.address, self.serial}


@dataclass(frozen=True, slots=True)
class ArtifactRow:
    """A file that a build made; its content lies in the artifact store under `sha256`."""

    build_id: str
    number: int
    run_id: str
    path: str
    kind: str
    variant: str | None
    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class HostRow:
    """A host of the lab; it is lost when `heartbeat_s` stands still."""

    id: str
    process_id: str
    url: str | None
    heartbeat_s: float
    lost_s: float | None


@dataclass(frozen=True, slots=True)
class TokenRow:
    """A token without its secret, of which only the sha256 is kept."""

    id: str
    owner: str
    note: str
    sha256: str
    scopes: list[str]
    created_s: float
    expires_s: float | None
    revoked_s: float | None


def run_id_of(build_id: str, attempt: int) -> str:
    """Name the run of an attempt: what the phone knows it by."""
    return f"{build_id}-{attempt}"


def rows(record: type[R], result: sa.CursorResult[Any]) -> list[R]:
    """Give each row of a result as a value of the given class."""
    names = tuple(result.keys())
    return [record(**dict(zip(names, row, strict=True))) for row in result]


def columns(table: sa.Table, record: type[Any]) -> list[sa.Column[Any]]:
    """Give the columns that a record reads, in its order."""
    return [table.c[field.name] for field in fields(record)]
