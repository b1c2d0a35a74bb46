"""Whether the service lives, and whether it can work."""

from fastapi import APIRouter, Request
from pydantic import BaseModel
from sqlalchemy import text

from orchestrator.routes.context import ServiceDep

router = APIRouter(tags=["health"])


class Alive(BaseModel):
    """The process answers."""

    status: str = "ok"


class Ready(BaseModel):
    """Database and engine work; phones are listed under /v1/phones and not required."""

    status: str = "ready"
    host: str


@router.get("/healthz")
async def is_alive(request: Request) -> Alive:
    """Say that the process answers."""
    return Alive()


@router.get("/readyz")
async def is_ready(service: ServiceDep) -> Ready:
    """Say that the database answers and the engine runs."""
    await service.stores.database.run(lambda c: c.execute(text("select 1")).scalar())
    return Ready(host=service.engine.host_id)
