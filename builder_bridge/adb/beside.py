"""Work that goes on beside a block of code and ends with it."""

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import anyio


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
