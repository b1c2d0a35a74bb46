"""Knows how the phones of this host are: whether they answer, what they offer, how they feel.

A phone in use is left alone; its build tells more than a probe. A phone with a fenced run is
cleared of it before anything else may use it.
"""

import time
from typing import Any

import anyio
import structlog

from builder_bridge.build import RunId
from builder_bridge.errors import BridgeError, UnknownRun
from builder_bridge.prefix.contract import Contract
from orchestrator import bell
from orchestrator.engine import lease
from orchestrator.engine.outage import outlast_outages
from orchestrator.engine.phone import PhonePort
from orchestrator.engine.resources import EngineResources
from orchestrator.store import phones as phone_store
from orchestrator.store.records import PhoneRow

log = structlog.get_logger(__name__)
OFFLINE_PROBE_S = 3.0
PROBE_LIMIT_S = 20.0


class PhoneWatch:
    """One a host; writes what it learns into the `phones` table."""

    def __init__(self, resources: EngineResources) -> None:
        self._resources = resources

    async def run(self) -> None:
        """Probe free phones now and then, and at once when somebody rings for it."""
        stores = self._resources.stores
        host = self._resources.host_id

        def settle(connection: Any) -> None:
            for phone in stores.settings.phones:
                phone_store.add(connection, host, phone)

        await stores.database.run(settle)
        ring = stores.bells.of("phones")
        while True:
            rung = ring.listen()
            await bell.wait(rung, await outlast_outages(self.once))

    async def once(self) -> float:
        """Probe what is due; give the seconds until the next one is."""
        stores = self._resources.stores
        care = stores.settings.care
        phones = await stores.database.run(lambda c: phone_store.of_host(c, self._resources.host_id))
        due_s = care.probe_every_s
        now_s = time.time()
        async with anyio.create_task_group() as probes:
            for phone in phones:
                if phone.build_id is not None:
                    continue
                every_s = (
                    care.probe_every_s
                    if phone.state == "online"
                    else min(OFFLINE_PROBE_S, care.probe_every_s)
                )
                wait_s = (phone.seen_s or 0) + every_s - now_s if phone.state != "unknown" else 0.0
                if wait_s <= 0 or phone.stop_run is not None:
                    probes.start_soon(self._probe, phone)
                    wait_s = every_s
                due_s = min(due_s, wait_s)
        return max(0.05, due_s)

    async def _probe(self, phone: PhoneRow) -> None:
        stores = self._resources.stores
        values: dict[str, Any] = {}
        try:
            with anyio.fail_after(PROBE_LIMIT_S):
                async with self._resources.lines.use(phone.address, phone.route) as port:
                    if phone.stop_run is not None:
                        await self._clear(phone, port)
                    values = {"state": "online", "reason": None, "serial": port.serial}
                    values |= described(await port.info())
        except BridgeError as fault:
            values = {"state": "offline", "reason": str(fault)}
        except TimeoutError:
            self._resources.lines.drop(phone.address)
            values = {"state": "offline", "reason": f"no answer within {PROBE_LIMIT_S:.0f} s"}
        values["seen_s"] = time.time()
        await stores.database.run(lambda c: phone_store.update(c, phone.address, **values))
        if values["state"] != phone.state or phone.stop_run is not None:
            log.info(
                "phone.state_changed", serial=phone.address, state=values["state"], reason=values["reason"]
            )
            stores.bells.ring("builds")

    async def _clear(self, phone: PhoneRow, port: PhonePort) -> None:
        run_id = str(phone.stop_run)
        try:
            await port.cancel(RunId(run_id), "the run was given up")
        except UnknownRun:
            log.info("run.unknown_on_phone", run_id=run_id, serial=phone.address)
        await self._resources.stores.database.run(lambda c: lease.unfence(c, phone.address, run_id))
        log.info("run.stopped_late", run_id=run_id, serial=phone.address)


def described(info: Contract) -> dict[str, Any]:
    """Split what a phone says of itself into its lasting contract and its health of the moment."""
    contract = {
        **info.prefix.model_dump(exclude_none=True),
        "abi": info.prefix.abi or info.device.abi,
        "api_level": info.device.api,
        "model": info.device.model,
        "cores": info.device.cores,
        "memory_bytes": info.device.memory_kb << 10,
    }
    health = {
        "free_bytes": info.device.storage_free_kb << 10 if info.device.storage_free_kb else None,
        "free_memory_bytes": info.device.memory_available_kb << 10,
    }
    return {"contract": contract, "health": health}
