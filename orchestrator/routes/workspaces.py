"""Workspaces: send one as a zip, or find out which contents the service lacks and send those."""

from typing import Annotated

from anyio import to_thread
from fastapi import APIRouter, Query, Request, Response
from starlette.convertors import StringConvertor, register_url_convertor

from orchestrator.access import Permission
from orchestrator.desk import need
from orchestrator.routes.context import PrincipalDep, ServiceDep
from orchestrator.schema import MissingReply, MissingRequest, Sha256, WorkspaceReply


class _BlobName(StringConvertor):
    regex = "(?!missing(?:/|$))[^/]+"


# `/v1/blobs/missing` is a path of its own: what is no method of it must not be taken for a blob.
register_url_convertor("blob", _BlobName())

router = APIRouter(prefix="/v1", tags=["workspaces"])
upload_router = APIRouter(prefix="/v1", tags=["workspaces"])
"""Routes whose bodies may be large; the app gives them their own limit."""

_ZIP = {"content": {"application/zip": {"schema": {"type": "string", "format": "binary"}}}, "required": True}
_BYTES = {
    "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    "required": True,
}


@upload_router.post("/workspaces", status_code=201, openapi_extra={"requestBody": _ZIP})
async def send_workspace(
    request: Request,
    service: ServiceDep,
    principal: PrincipalDep,
    name: Annotated[str, Query(pattern=r"^[A-Za-z0-9_][A-Za-z0-9 _.-]{0,99}$")] = "workspace",
) -> WorkspaceReply:
    """Send a workspace as a zip; it is checked while it streams. The reply names it for builds."""
    need(principal, Permission.WRITE)
    snapshot = await service.intake.from_zip(request.stream(), principal.owner, name)
    await service.desk.own_workspace(principal, snapshot)
    return WorkspaceReply(
        workspace=snapshot.fingerprint,
        name=snapshot.name,
        files=len(snapshot.files),
        size_bytes=snapshot.size_bytes,
    )


@router.post("/blobs/missing")
async def list_missing_blobs(
    body: MissingRequest, service: ServiceDep, principal: PrincipalDep
) -> MissingReply:
    """Say which of these contents the asker has not sent yet; what others sent does not count."""
    need(principal, Permission.WRITE)
    store = service.stores.workspaces

    def missing() -> list[str]:
        owner = principal.owner
        return [sha256 for sha256 in dict.fromkeys(body.sha256) if not store.has_sent(owner, sha256)]

    return MissingReply(missing=await to_thread.run_sync(missing))


@upload_router.put("/blobs/{sha256:blob}", status_code=204, openapi_extra={"requestBody": _BYTES})
async def send_blob(
    sha256: Sha256, request: Request, service: ServiceDep, principal: PrincipalDep
) -> Response:
    """Send one content under its digest; sending it again changes nothing."""
    need(principal, Permission.WRITE)
    await service.intake.take_blob(request.stream(), principal.owner, sha256)
    return Response(status_code=204)
