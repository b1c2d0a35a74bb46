"""What the durable steps work with, bound for as long as the engine runs.

The workflow engine finds steps by name in the whole process and passes them plain values only, so
what they need is bound here by the engine's owner and nowhere else.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from orchestrator.bell import Bells
from orchestrator.engine.phone import PhoneLines
from orchestrator.settings import Settings
from orchestrator.store.artifacts import ArtifactStore
from orchestrator.store.database import Database
from orchestrator.store.logs import LogBook
from orchestrator.store.secrets import SecretStore
from orchestrator.store.workspaces import WorkspaceStore


@dataclass(frozen=True, slots=True)
class Stores:
    """Everything that is kept, and the bells that ring when it changes."""

    settings: Settings
    lab_id: str
    database: Database
    logs: LogBook
    workspaces: WorkspaceStore
    artifacts: ArtifactStore
    bells: Bells
    scratch: Path
    secrets: SecretStore

    def ring_build(self, build_id: str) -> None:
        """Wake who waits for a build to change, and who follows its log."""
        self.bells.ring(f"build:{build_id}")
        self.bells.ring(f"log:{build_id}")


@dataclass(frozen=True, slots=True)
class EngineResources:
    """What steps work with; `closing` is set before anything of it is closed."""

    stores: Stores
    lines: PhoneLines
    closing: anyio.Event = field(default_factory=anyio.Event)

    @property
    def host_id(self) -> str:
        """Name of this host in the lab."""
        return self.stores.settings.lab.host_id


_bound: list[EngineResources] = []


@contextmanager
def bound(resources: EngineResources) -> Iterator[None]:
    """Let the durable steps of this process work with these resources; one engine a process."""
    if _bound:
        raise RuntimeError("this process runs an engine already")
    _bound.append(resources)
    try:
        yield
    finally:
        resources.closing.set()
        _bound.clear()


def current() -> EngineResources:
    """Give the resources of the running engine."""
    if not _bound:
        raise RuntimeError("no engine runs in this process")
    return _bound[0]
