"""Phones: which there are, how they are, which builds hold them."""

from collections.abc import Sequence

from fastapi import APIRouter, Response
from sqlalchemy import Connection

from orchestrator.access import Permission, Principal
from orchestrator.desk import need
from orchestrator.engine import lease
from orchestrator.engine.placement import could_take, why_unwell
from orchestrator.errors import Conflict, NotFound
from orchestrator.replies import phone_reply
from orchestrator.routes.context import PrincipalDep, Service, ServiceDep
from orchestrator.schema import PhoneList, PhoneReply, PhoneRequest
from orchestrator.settings import PhoneSettings
from orchestrator.store import builds as build_store
from orchestrator.store import phones as phone_store
from orchestrator.store.records import BuildRow, PhoneRow

router = APIRouter(prefix="/v1/phones", tags=["phones"])


@router.get("")
async def list_phones(service: ServiceDep, principal: PrincipalDep) -> PhoneList:
    """List all phones with contract, health, lease and queue."""
    need(principal, Permission.READ)

    def read(connection: Connection) -> PhoneList:
        found, waiting = phone_store.list_all(connection), lease.waiting_builds(connection)
        return PhoneList(phones=[_shown(connection, phone, waiting, principal, service) for phone in found])

    return await service.stores.database.read(read)


@router.post("", status_code=201)
async def add_phone(body: PhoneRequest, service: ServiceDep, principal: PrincipalDep) -> PhoneReply:
    """Make a phone known to this host, or change its pool and route; it is probed at once.

    A phone without a pool takes only builds that name it.
    """
    need(principal, Permission.ADMIN)
    wanted = PhoneSettings(address=body.address, pool=body.pool, route=body.route)

    def write(connection: Connection) -> PhoneReply:
        phone_store.add(connection, service.engine.host_id, wanted)
        phone = phone_store.get(connection, body.address)
        assert phone is not None
        return _shown(connection, phone, lease.waiting_builds(connection), principal, service)

    reply = await service.stores.database.run(write)
    service.stores.bells.ring("phones")
    return reply


@router.delete("/{name}", status_code=204)
async def remove_phone(name: str, service: ServiceDep, principal: PrincipalDep) -> Response:
    """Forget a phone; raises 409 while a build holds it. One of the settings is back at the next start."""
    need(principal, Permission.ADMIN)

    def remove(connection: Connection) -> str:
        phone = phone_store.get(connection, name)
        if phone is None:
            raise NotFound(f"no phone is called {name}", code="unknown_phone")
        if not phone_store.remove(connection, phone.address):
            raise Conflict(f"build {phone.build_id} holds {name}", code="phone_busy")
        return phone.address

    service.engine.lines.drop(await service.stores.database.run(remove))
    service.stores.bells.ring("builds")
    return Response(status_code=204)


def _shown(
    connection: Connection,
    phone: PhoneRow,
    waiting: Sequence[BuildRow],
    principal: Principal,
    service: Service,
) -> PhoneReply:
    build = None if phone.build_id is None else build_store.get(connection, phone.build_id)
    is_visible = build is not None and principal.sees(build.owner)
    resting = why_unwell(phone.health or {}, service.stores.settings.care)
    queue = sum(could_take(each, phone) for each in waiting)
    return phone_reply(phone, phone.build_id if is_visible else None, queue, resting)
