"""How the command line speaks: faults as one clear line and a hint, exit codes, the end of a block.

Exit codes: 0 as wished; 1 Gradle failed (or the agent found no green build); 2 wrong usage or
settings; 3 cancelled, timed out, lost or refused; 4 the service or a phone cannot be reached;
130 interrupted.
"""

import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, NoReturn

import anyio
import click

from agent.errors import AgentError
from agent.errors import SettingsFault as AgentSettingsFault
from agent.progress import BuildAdvanced
from builder_bridge.errors import BridgeError, PhoneLost, PhoneUnavailable
from orchestrator.errors import ServiceFault, ServiceUnreachable, SettingsFault

DONE, FAILED, USAGE, NOT_BUILT, UNREACHABLE, INTERRUPTED = 0, 1, 2, 3, 4, 130


def run_async(work: Callable[..., Awaitable[int]], *arguments: Any) -> NoReturn:
    """Run a command to its end and leave the process with its exit code."""
    with told_faults():
        sys.exit(anyio.run(work, *arguments))


@contextmanager
def told_faults() -> Iterator[None]:
    """Tell known faults in two lines instead of a traceback, and leave with their exit code."""
    try:
        yield
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except BaseExceptionGroup as group:
        known = _only(group)
        if known is None:
            raise
        _tell(known)
    except (ServiceFault, BridgeError, AgentError) as fault:
        _tell(fault)


@asynccontextmanager
async def one_fault() -> AsyncIterator[None]:
    """Let a known fault leave task groups as itself, not wrapped in a group."""
    try:
        yield
    except BaseExceptionGroup as group:
        known = _only(group)
        if known is None:
            raise
        raise known from None


def say(text: str, **style: Any) -> None:
    """Write a line for a person, beside the result on standard output."""
    click.secho(text, err=True, **style)


def plain(text: str) -> str:
    """Give a text of others without what a terminal obeys: it must not move, hide or repaint anything."""
    return text.translate(_SHOWN_CONTROLS)


_CONTROLS = (
    *range(0x20), *range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A), *range(0xD800, 0xE000),
)  # fmt: skip
_SHOWN_CONTROLS = {code: "\ufffd" for code in _CONTROLS if chr(code) not in "\n\t"}
"""Control characters but line ends and tabs, those that turn the direction of text, and halves of pairs."""


async def ask(prompt: str) -> str:
    """Give the line that a person types; the empty one at the end of input. Can be cancelled."""
    sys.stderr.write(prompt)
    sys.stderr.flush()
    with suppress(OSError):  # a plain file cannot be waited for, and need not be
        await anyio.wait_readable(sys.stdin)
    line = sys.stdin.readline()
    if not line:
        say("")
    return line


def seconds(value: float) -> str:
    """Show a duration as people read it."""
    if value < 60:
        return f"{value:.1f} s"
    return f"{int(value) // 60} min {int(value) % 60} s"


def forecast(progress: BuildAdvanced) -> str:
    """Show how far a build is and how long it may still take, empty where that is not known."""
    if progress.percent is None:
        return ""
    left = "" if progress.remaining_s is None else f", about {seconds(progress.remaining_s)} left"
    return f"{progress.percent:.0f} %{left}"


def size(size_bytes: int) -> str:
    """Show a size as people read it."""
    value = float(size_bytes)
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} GiB"


def _only(group: BaseExceptionGroup[BaseException]) -> BaseException | None:
    """Give the one fault that a group holds, however deep, or None where there are several kinds."""
    found: list[BaseException] = []
    waiting: list[BaseException] = [group]
    while waiting:
        each = waiting.pop()
        if isinstance(each, BaseExceptionGroup):
            waiting.extend(each.exceptions)
        else:
            found.append(each)
    known = [each for each in found if isinstance(each, ServiceFault | BridgeError | AgentError)]
    return known[0] if known and len(known) == len(found) else None


def _tell(fault: BaseException) -> NoReturn:
    say(f"pocketbuild: {fault}", fg="red")
    hint = getattr(fault, "hint", "")
    if hint:
        say(f"  {hint}")
    if isinstance(fault, SettingsFault | AgentSettingsFault):
        sys.exit(USAGE)
    is_away = isinstance(fault, ServiceUnreachable | PhoneUnavailable | PhoneLost)
    sys.exit(UNREACHABLE if is_away else NOT_BUILT)
