"""Run a program of this host and read what it says, up to a bound."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, PIPE

import anyio
from anyio.abc import ByteReceiveStream

_MAX_FAULT_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended, and the beginning of what it said of faults, up to 64 KiB.

    `was_enough` says that it was ended from here, because no more of its output was wanted.
    """

    status: int
    faults: bytes
    was_enough: bool


class Collected:
    """Takes up to so many bytes of output."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self.data = bytearray()

    def feed(self, chunk: bytes) -> bool:
        """Take the next bytes; says whether it has had enough, which is where there are more."""
        room = self._max_bytes - len(self.data)
        self.data += chunk[:room]
        return len(chunk) > room


async def run_program(
    command: Sequence[str],
    *,
    cwd: Path,
    feed: Callable[[bytes], bool],
    deadline_s: float,
    env: Mapping[str, str] | None = None,
) -> Ended:
    """Run a program and give its output to `feed` as it comes, until that says that it has enough.

    The program is killed then, and after the deadline; nothing but what `feed` keeps is held in memory.
    Raises `TimeoutError`, and `FileNotFoundError` where there is no such program.
    """
    faults, was_enough = Collected(_MAX_FAULT_BYTES), False
    with anyio.fail_after(deadline_s):
        process = await anyio.open_process(command, stdin=DEVNULL, stdout=PIPE, stderr=PIPE, cwd=cwd, env=env)
        async with process:
            assert process.stdout is not None
            assert process.stderr is not None
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_read_all, process.stderr, faults.feed)
                async for chunk in process.stdout:
                    if feed(chunk):
                        was_enough = True
                        with suppress(ProcessLookupError):  # it may have ended by itself by now
                            process.kill()
                        tasks.cancel_scope.cancel()
                        break
    assert process.returncode is not None
    return Ended(process.returncode, bytes(faults.data), was_enough)


async def _read_all(stream: ByteReceiveStream, feed: Callable[[bytes], bool]) -> None:
    async for chunk in stream:
        feed(chunk)
