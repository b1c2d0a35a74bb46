"""What every route needs: who asks, and the parts of the service that answer."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from orchestrator.access import Principal
from orchestrator.desk import FrontDesk
from orchestrator.engine.resources import EngineResources, Stores
from orchestrator.errors import NotReady
from orchestrator.feed import BuildFeed
from orchestrator.intake import Intake
from orchestrator.metrics import Metrics


@dataclass(frozen=True, slots=True)
class Service:
    """The parts of a running service."""

    stores: Stores
    engine: EngineResources
    desk: FrontDesk
    intake: Intake
    feed: BuildFeed
    metrics: Metrics
    version: str


async def service_of(request: Request) -> Service:
    """Give the running service; raises `NotReady` while it starts or stops."""
    service: Service | None = getattr(request.app.state, "service", None)
    if service is None:
        raise NotReady("the service is starting or stopping")
    return service


async def principal_of(request: Request) -> Principal:
    """Give who asks, as the access check found it."""
    principal: Principal = request.state.principal
    return principal


async def request_id_of(request: Request) -> str:
    """Give the id under which the log knows this request."""
    request_id: str = request.state.request_id
    return request_id


ServiceDep = Annotated[Service, Depends(service_of)]
PrincipalDep = Annotated[Principal, Depends(principal_of)]
RequestIdDep = Annotated[str, Depends(request_id_of)]
