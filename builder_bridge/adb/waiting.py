"""Waiting for one another: a signal, and work that goes on beside a block of code."""

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import anyio


class Signal:
    """Wakes everyone who waits now; whoever waits checks anew what they wait for."""

    def __init__(self) -> None:
        self._event: anyio.Event | None = None

    def notify(self) -> None:
        """Wake them."""
        if self._event:
            self._event.set()
            self._event = None

    async def wait(self) -> None:
        """Wait for the next `notify`."""
        if self._event is None:
            self._event = anyio.Event()
        await self._event.wait()


@asynccontextmanager
async def beside(*works: Callable[[], Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
    """Run `works` while the block runs; leaving the block ends them.

    A fault of the block or of a work ends all and comes out bare, not in an exception group, so
    that callers may catch it by its class. Of several faults at once the first one comes out.
    """
    try:
        async with anyio.create_task_group() as tasks:
            for work in works:
                tasks.start_soon(work)
            yield
            tasks.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        first = group.exceptions[0]
        raise first from first.__cause__
