"""Whether the service lives, whether it can work, and what it is doing in numbers."""

import time
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, Field
from sqlalchemy import Connection, text

from orchestrator.access import Permission
from orchestrator.desk import need
from orchestrator.engine import retention
from orchestrator.engine.placement import standing
from orchestrator.metrics import CONTENT_TYPE
from orchestrator.replies import moment
from orchestrator.routes.context import PrincipalDep, ServiceDep
from orchestrator.store import builds as build_store
from orchestrator.store import phones as phone_store

router = APIRouter(tags=["health"])


class Alive(BaseModel):
    """The process answers."""

    status: str = "ok"


class Ready(BaseModel):
    """Database and engine work; phones are listed under /v1/phones and not required."""

    status: str = "ready"
    host: str


class HostStatus(BaseModel):
    """A host of the lab."""

    id: str
    url: str | None
    heartbeat: datetime | None
    is_lost: bool


class Status(BaseModel):
    """The service in numbers; builds by state, or by outcome once they have ended."""

    host: str
    version: str
    hosts: list[HostStatus]
    builds: dict[str, int] = Field(examples=[{"queued": 2, "running": 4, "succeeded": 120}])
    phones: dict[str, int] = Field(examples=[{"online": 2, "busy": 4}])


class SweptRun(BaseModel):
    """A run of an agent, and what its folder takes."""

    id: str
    size_bytes: int


class SweepReply(BaseModel):
    """What retention removed, or would remove."""

    builds: list[str]
    artifacts: list[str]
    workspaces: list[str]
    blob_bytes: int
    agent_runs: list[SweptRun] = Field(description="Of this host's agents.")
    is_dry_run: bool


@router.get("/healthz")
async def is_alive() -> Alive:
    """Say that the process answers."""
    return Alive()


@router.get("/readyz")
async def is_ready(service: ServiceDep) -> Ready:
    """Say that the database answers and the engine runs."""
    await service.stores.database.read(lambda c: c.execute(text("select 1")).scalar())
    return Ready(host=service.engine.host_id)


@router.get("/metrics", response_class=Response)
async def read_metrics(service: ServiceDep, principal: PrincipalDep) -> Response:
    """Give figures in Prometheus' text form."""
    need(principal, Permission.READ)
    body = await service.metrics.scrape(service.stores, time.time())
    return Response(body, media_type=CONTENT_TYPE)


@router.get("/v1/status")
async def read_status(service: ServiceDep, principal: PrincipalDep) -> Status:
    """Say what the service is doing."""
    need(principal, Permission.READ)

    def read(connection: Connection) -> Status:
        builds: dict[str, int] = {}
        for (state, outcome), count in build_store.count_by_state(connection).items():
            builds[outcome or state] = builds.get(outcome or state, 0) + count
        phones: dict[str, int] = {}
        for phone in phone_store.list_all(connection):
            state = standing(phone, service.stores.settings.care)
            phones[state] = phones.get(state, 0) + 1
        hosts = [
            HostStatus(
                id=host.id,
                url=host.url,
                heartbeat=moment(host.heartbeat_s),
                is_lost=host.lost_s is not None,
            )
            for host in phone_store.list_hosts(connection)
        ]
        return Status(
            host=service.engine.host_id, version=service.version, hosts=hosts, builds=builds, phones=phones
        )

    return await service.stores.database.read(read)


@router.post("/v1/retention")
async def apply_retention(
    service: ServiceDep, principal: PrincipalDep, dry_run: Annotated[bool, Query()] = True
) -> SweepReply:
    """Remove what the settings do not keep; by default only say what that is."""
    need(principal, Permission.ADMIN)
    swept = await retention.sweep(service.engine, dry_run=dry_run)
    return SweepReply(
        builds=list(swept.builds),
        artifacts=list(swept.artifacts),
        workspaces=list(swept.workspaces),
        blob_bytes=swept.blob_bytes,
        agent_runs=[SweptRun(id=run_id, size_bytes=size) for run_id, size in swept.agent_runs.items()],
        is_dry_run=swept.is_dry_run,
    )
