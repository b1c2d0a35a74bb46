"""Waiting for one another: a signal, work that goes on beside a block of code, work that may take long."""

import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar, TypeVarTuple

import anyio
import anyio.to_thread

SLOW_S = 0.02
Arguments = TypeVarTuple("Arguments")
Result = TypeVar("Result")


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


class Hurry:
    """Does work of some milliseconds in place as long as it is quick, in a thread once it has not been.

    The way to a thread and back takes longer than to read what lies in the page cache, and two threads
    at work get into each other's way. A disk that makes us wait must not make the event loop wait.
    """

    def __init__(self, is_slow: bool = False) -> None:
        self._is_slow = is_slow

    async def run(self, work: Callable[[*Arguments], Result], *args: *Arguments) -> Result:
        """Do it. In place this is no point at which others may go on or a cancelling is noticed."""
        if self._is_slow:
            return await anyio.to_thread.run_sync(work, *args)
        started_s = time.monotonic()
        try:
            return work(*args)
        finally:
            self._is_slow = time.monotonic() - started_s > SLOW_S
