"""Come back to the same phone after its connection was lost."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import anyio
import structlog

from builder_bridge.adb.link import AdbConnection
from builder_bridge.errors import PhoneChanged, PhoneLost, PhoneUnauthorized, PhoneUnavailable, ProtocolFault

log = structlog.get_logger()

FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 5.0
DEADLINE_S = 120.0


@dataclass(frozen=True, slots=True)
class PhoneIdentity:
    """Which phone it is, whatever its address today: its serial number, and our key that it let in."""

    serial: str
    key_fingerprint: str | None


def identity_of(adb: AdbConnection) -> PhoneIdentity:
    """Give the identity of the phone at the other end."""
    return PhoneIdentity(adb.serial, adb.key_fingerprint)


@asynccontextmanager
async def connect_again(
    connect: Callable[[], AbstractAsyncContextManager[AdbConnection]],
    expected: PhoneIdentity,
    *,
    deadline_s: float = DEADLINE_S,
    first_pause_s: float = FIRST_PAUSE_S,
    longest_pause_s: float = LONGEST_PAUSE_S,
) -> AsyncIterator[AdbConnection]:
    """Try to connect until the expected phone answers, pausing twice as long after each failure.

    `connect` is tried as it is, such as `partial(connect, address)`. Raises `PhoneChanged` when
    another phone answers there, `PhoneUnauthorized` when the phone no longer knows our key, and
    the last `PhoneUnavailable` once `deadline_s` have passed.
    """
    deadline = anyio.current_time() + deadline_s
    pause_s = first_pause_s
    async with AsyncExitStack() as stack:
        while True:
            try:
                adb = await _connect_checked(connect, expected, stack)
                break
            except (PhoneChanged, PhoneUnauthorized):
                raise
            except (PhoneUnavailable, PhoneLost, ProtocolFault) as fault:
                if anyio.current_time() + pause_s > deadline:
                    raise PhoneUnavailable(
                        f"{expected.serial} did not come back within {deadline_s:g} s. Last: {fault}",
                        serial=expected.serial,
                    ) from fault
            await anyio.sleep(pause_s)
            pause_s = min(pause_s * 2, longest_pause_s)
        log.info("phone.was_reconnected", serial=expected.serial)
        yield adb


async def _connect_checked(
    connect: Callable[[], AbstractAsyncContextManager[AdbConnection]],
    expected: PhoneIdentity,
    stack: AsyncExitStack,
) -> AdbConnection:
    async with AsyncExitStack() as attempt:
        adb = await attempt.enter_async_context(connect())
        found = identity_of(adb)
        if found != expected:
            raise PhoneChanged(
                f"Another phone answers: {found.serial} instead of {expected.serial}, or with other keys.",
                serial=found.serial,
            )
        stack.push_async_exit(attempt.pop_all())
        return adb
