"""Opens real phones for the engine: adb to the address, then the bridge over the first route that works."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from orchestrator.engine.phone import OpenPhone, PhonePort

if TYPE_CHECKING:
    from builder_bridge.adb.discovery import PhoneBrowser

ROUTES = ("run_as", "shell_dir")


@asynccontextmanager
async def open_phone(
    address: str, route: str | None, find: Callable[[str], Awaitable[Sequence[str]]] | None = None
) -> AsyncIterator[PhonePort]:
    """Open the builder prefix of a phone; a route that is named is the only one tried.

    `address` is `HOST:PORT` or a serial, as `connect` takes it; `find` tells where on the network a
    phone of a serial number is (by default by listening for a moment).
    """
    # What speaks to phones is loaded when the first one is opened, and beside the loop: a service is
    # ready without it.
    for name in ("builder_bridge.adb.transports", "builder_bridge.bridge"):
        await to_thread.run_sync(import_module, name)
    from builder_bridge.adb.discovery import find_once
    from builder_bridge.adb.transports import connect
    from builder_bridge.bridge import open_bridge

    routes = ROUTES if route is None else (route,)
    async with (
        connect(address, find=find or find_once) as adb,
        open_bridge(adb, route_names=routes) as bridge,
    ):
        yield bridge


@asynccontextmanager
async def opening_phones() -> AsyncIterator[OpenPhone]:
    """Open phones for the block as `open_phone` does, with one lasting listener on the network for all.

    It begins to listen when the first phone does not answer where it was before, and so hears of the next
    port of each phone as soon as it is announced.
    """
    finder = _LastingFinder()
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(finder.run)
            yield partial(open_phone, find=finder.find)
            tasks.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        if len(group.exceptions) > 1:
            raise
        raise group.exceptions[0] from group.exceptions[0].__cause__  # callers know it by its class


class _LastingFinder:
    def __init__(self) -> None:
        self._is_needed = anyio.Event()
        self._has_begun = anyio.Event()
        self._browser: PhoneBrowser | None = None

    async def run(self) -> None:
        """Own the listener, once somebody needs it."""
        await self._is_needed.wait()
        from builder_bridge.adb.discovery import PhoneBrowser

        self._browser = PhoneBrowser()
        self._has_begun.set()
        await self._browser.run()

    async def find(self, serial: str) -> Sequence[str]:
        """Tell where on the network a phone is."""
        self._is_needed.set()
        await self._has_begun.wait()
        assert self._browser is not None
        return await self._browser.find(serial)
