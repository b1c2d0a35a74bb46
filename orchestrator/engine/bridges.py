"""Opens real phones for the engine: adb to the address, then the bridge over the first route that works."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module

from anyio import to_thread

from orchestrator.engine.phone import PhonePort

ROUTES = ("run_as", "shell_dir")


@asynccontextmanager
async def open_phone(address: str, route: str | None) -> AsyncIterator[PhonePort]:
    """Open the builder prefix of a phone; a route that is named is the only one tried.

    `address` is `HOST:PORT` or a serial, as `connect` takes it.
    """
    # What speaks to phones is loaded when the first one is opened, and beside the loop: a service is
    # ready without it.
    for name in ("builder_bridge.adb.transports", "builder_bridge.bridge"):
        await to_thread.run_sync(import_module, name)
    from builder_bridge.adb.transports import connect
    from builder_bridge.bridge import open_bridge

    routes = ROUTES if route is None else (route,)
    async with connect(address) as adb, open_bridge(adb, route_names=routes) as bridge:
        yield bridge
