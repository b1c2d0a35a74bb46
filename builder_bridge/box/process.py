"""Names a process so that a reused number is never taken for it, and ends it for good."""

import os
import select
import signal
from dataclasses import dataclass
from pathlib import Path

from builder_bridge.errors import BoxFault

_END_TIMEOUT_MS = 60_000


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """A process of the host: its number and the clock tick since boot at which it started."""

    pid: int
    start_ticks: int

    @property
    def is_alive(self) -> bool:
        """Whether this very process still runs (a zombie does not)."""
        fields = _stat_fields(self.pid)
        return fields is not None and int(fields[19]) == self.start_ticks and fields[0] != "Z"


def identify(pid: int) -> ProcessIdentity | None:
    """Give the identity of a running process, None where there is no such process."""
    fields = _stat_fields(pid)
    return None if fields is None else ProcessIdentity(pid, int(fields[19]))


def children_of(pid: int) -> list[int]:
    """Give the numbers of the processes that `pid` started and that still are."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def kill(process: ProcessIdentity) -> None:
    """Kill the process and wait until it is gone; one that is gone already is fine.

    Raises:
        BoxFault: when the kernel does not let it go within a minute.
    """
    try:
        pidfd = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return
    try:
        if not process.is_alive:
            return
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        poll = select.poll()
        poll.register(pidfd, select.POLLIN)
        if not poll.poll(_END_TIMEOUT_MS):
            raise BoxFault(f"Process {process.pid} was killed and did not end within a minute.")
    finally:
        os.close(pidfd)


def _stat_fields(pid: int) -> list[str] | None:
    """Give the fields of /proc/PID/stat from the state on (the name before may hold spaces)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
