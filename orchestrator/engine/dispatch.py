"""Gives phones to waiting builds, and begins on this host the runs of its own phones.

The queue is the `builds` table itself. A decision is one transaction over all waiting builds, so a
build that fits no phone holds up no other, and the moment a phone is free the next build has it: the
workflow engine's own queues are polled and see only the head of each partition.
"""

import time

import anyio
import structlog
from dbos import DBOS, SetEnqueueOptions, SetWorkflowID

from orchestrator import bell
from orchestrator.engine import lease
from orchestrator.engine.outage import outlast_outages
from orchestrator.engine.resources import EngineResources
from orchestrator.engine.run_on_phone import run_on_phone
from orchestrator.store.records import BuildRow

log = structlog.get_logger(__name__)
REST = 2.0
"""How long dispatching rests after a decision, in times of its length, so that no queue takes a core."""
MAX_REST_S = 0.5


class Dispatcher:
    """One a host: decides (hosts take turns by a lock) and starts what fell to its own phones."""

    def __init__(self, resources: EngineResources) -> None:
        self._resources = resources
        self._begun: set[str] = set()

    async def run(self) -> None:
        """Dispatch whenever something changed here, and every `dispatch_poll_s` for other hosts."""
        stores = self._resources.stores
        ring = stores.bells.of("builds")
        while True:
            rung = ring.listen()
            began_s = time.monotonic()
            await outlast_outages(self.once)
            await anyio.sleep(min(MAX_REST_S, REST * (time.monotonic() - began_s)))
            await bell.wait(rung, stores.settings.dispatch_poll_s)

    async def once(self) -> None:
        """Take leases and begin runs; doing it again begins nothing twice."""
        stores = self._resources.stores
        care = stores.settings.care
        host = self._resources.host_id
        is_any_waiting, held = await stores.database.read(
            lambda c: (lease.is_any_waiting(c), lease.held_by_host(c, host))
        )
        if is_any_waiting:
            placing, held = await stores.database.run(
                lambda c: (lease.take(c, care, time.time()), lease.held_by_host(c, host))
            )
            for placement in placing.placements:
                log.info("build.placed", build_id=placement.build_id, serial=placement.address)
                stores.ring_build(placement.build_id)
            if placing.is_health_awaited:
                stores.bells.ring("phones")
        for phone, build in held:
            if build.run_id not in self._begun:
                await self._begin(build, phone.address)
        self._begun &= {build.run_id for _phone, build in held}

    async def _begin(self, build: BuildRow, address: str) -> None:
        run_id = build.run_id
        self._begun.add(run_id)
        if await DBOS.get_workflow_status_async(run_id) is not None:
            return  # begun before a crash; the engine takes it up by itself
        work = (build.id, run_id, build.request_id)
        with SetWorkflowID(run_id):
            if self._resources.stores.database.is_sqlite:
                await DBOS.start_workflow_async(run_on_phone, *work)
                return
            # What is started directly is recovered by whichever host is quickest; a host's own queue
            # keeps it on the host of its phone.
            with SetEnqueueOptions(queue_partition_key=address):
                await DBOS.enqueue_workflow_async(queue_of(self._resources.host_id), run_on_phone, *work)


def queue_of(host_id: str) -> str:
    """Name the queue on which only this host works."""
    return f"host.{host_id}"
