"""Knows how the phones of this host are: whether they answer, what they offer, how they feel.

A phone in use is left alone; its build tells more than a probe. When it is free again, its health
is the first thing asked. A phone with a fenced run is cleared of it before anything else may use it.
"""

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from typing import Any

import anyio
import sqlalchemy as sa
import structlog

from builder_bridge.build import RunId
from builder_bridge.errors import BridgeError, UnknownRun
from builder_bridge.health import Health
from builder_bridge.prefix.contract import Contract
from orchestrator import bell
from orchestrator.engine import lease
from orchestrator.engine.handover import route_of
from orchestrator.engine.outage import outlast_outages
from orchestrator.engine.phone import PhonePort
from orchestrator.engine.placement import is_fresh
from orchestrator.engine.resources import EngineResources
from orchestrator.store import builds as build_store
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
                is_felt = is_fresh(phone, now_s, care.health_every_s)
                if phone.state == "online" and phone.stop_run is None and not is_felt:
                    # A build may wait for this answer, so nothing else is asked along with it.
                    probes.start_soon(self._probe, phone, self._feel)
                    wait_s = min(every_s, care.health_every_s)
                elif wait_s <= 0 or phone.stop_run is not None:
                    probes.start_soon(self._probe, phone, self._look)
                    wait_s = every_s
                due_s = min(due_s, wait_s)
        return max(0.05, due_s)

    async def _feel(self, phone: PhoneRow, port: PhonePort) -> dict[str, Any]:
        """Ask how a phone feels, and nothing else."""
        return {"health": felt(await port.health(), time.time(), phone.health or {})}

    async def _look(self, phone: PhoneRow, port: PhonePort) -> dict[str, Any]:
        """Clear a phone of a fenced run, then ask what it offers; its health where that is due."""
        if phone.stop_run is not None:
            await self._clear(phone)
        values = described(await port.info())
        now_s, known = time.time(), phone.health or {}
        if not is_fresh(phone, now_s, self._resources.stores.settings.care.health_every_s):
            known = felt(await port.health(), now_s, known)
        return {**values, "health": with_prefix(known, values["health"])}

    async def _probe(self, phone: PhoneRow, ask: "Ask") -> None:
        stores = self._resources.stores
        values: dict[str, Any] = {}
        try:
            with anyio.fail_after(PROBE_LIMIT_S):
                async with self._resources.lines.use(phone.address, phone.route) as port:
                    values = {"state": "online", "reason": None, "serial": port.serial}
                    values |= await ask(phone, port)
        except BridgeError as fault:
            values = {"state": "offline", "reason": f"{fault} {fault.hint}".strip()}
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

    async def _clear(self, phone: PhoneRow) -> None:
        run_id, database = str(phone.stop_run), self._resources.stores.database
        route = await database.read(lambda c: _route_of_run(c, run_id, phone))
        async with self._resources.lines.use(phone.address, route) as port:
            try:
                await port.cancel(RunId(run_id), "given-up")
            except UnknownRun:
                log.info("run.unknown_on_phone", run_id=run_id, serial=phone.address)
        await database.run(lambda c: lease.unfence(c, phone.address, run_id))
        log.info("run.stopped_late", run_id=run_id, serial=phone.address)


def _route_of_run(connection: sa.Connection, run_id: str, phone: PhoneRow) -> str | None:
    """Say in which prefix of a phone a run lies."""
    run = build_store.get_run(connection, run_id)
    build = None if run is None else build_store.get(connection, run.build_id)
    return phone.route if build is None else route_of(build, phone)


Ask = Callable[[PhoneRow, PhonePort], Awaitable[dict[str, Any]]]
"""What a probe asks on an open connection, as values of the phone's row."""


def felt(health: Health, now_s: float, before: Mapping[str, Any]) -> dict[str, Any]:
    """Put what Android says of the phone's health in place of what it said before.

    `unknown` names what it does not tell, `asked_s` is when it was asked.
    """
    told = {**before, **asdict(health), "unknown": list(health.unknown), "asked_s": now_s}
    return told if health.free_bytes is not None else {**told, "free_bytes": before.get("free_bytes")}


def with_prefix(health: Mapping[str, Any], prefix: Mapping[str, Any]) -> dict[str, Any]:
    """Add what the prefix says of memory and storage; of two answers about storage the smaller counts."""
    free = [each["free_bytes"] for each in (health, prefix) if each.get("free_bytes") is not None]
    unknown = [name for name in health.get("unknown", []) if name != "storage" or not free]
    return {**health, **prefix, "free_bytes": min(free, default=None), "unknown": unknown}


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
