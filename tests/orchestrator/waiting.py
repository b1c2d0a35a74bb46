"""Waiting for something that another task or process brings about."""

from collections.abc import Awaitable, Callable

import anyio


async def eventually(condition: Callable[[], Awaitable[bool]], at_most_s: float = 300.0) -> None:
    """Return once the condition holds; fail after the time."""
    with anyio.fail_after(at_most_s):
        while not await condition():  # noqa: ASYNC110 - the other side is no task of this loop
            await anyio.sleep(0.02)
