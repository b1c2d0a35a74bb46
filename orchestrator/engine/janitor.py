"""Keeps a host's house: heartbeat, lost hosts, retention, half-received files."""

import time
import uuid

import anyio
import structlog

from orchestrator.engine.resources import EngineResources
from orchestrator.store import phones as phone_store

log = structlog.get_logger(__name__)


class Janitor:
    """One a host; every duty is safe to do on several hosts at once."""

    def __init__(self, resources: EngineResources) -> None:
        self._resources = resources
        self._process_id = uuid.uuid4().hex

    async def register_host(self) -> None:
        """Write that this process is the host, before it takes up any run."""
        lab = self._resources.stores.settings.lab
        await self._resources.stores.database.run(
            lambda c: phone_store.register_host(c, lab.host_id, self._process_id, lab.url, time.time())
        )

    async def run(self) -> None:
        """Do all duties for as long as the engine runs."""
        stores = self._resources.stores
        lab = stores.settings.lab
        while True:
            await stores.database.run(
                lambda c: phone_store.beat(c, lab.host_id, self._process_id, time.time())
            )
            await anyio.sleep(lab.heartbeat_s)
