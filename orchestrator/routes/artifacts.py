"""Artifacts of builds, with ranges and conditional requests; the ETag is the content's sha256."""

import re
from typing import Annotated, Any

from fastapi import APIRouter, Header, Response
from fastapi.responses import StreamingResponse

from orchestrator.access import Principal
from orchestrator.errors import NotFound
from orchestrator.ranges import answer_range
from orchestrator.replies import artifact_reply
from orchestrator.routes.context import PrincipalDep, Service, ServiceDep
from orchestrator.schema import ArtifactList
from orchestrator.store import builds as build_store
from orchestrator.store.records import ArtifactRow

router = APIRouter(prefix="/v1/builds/{build_id}/artifacts", tags=["artifacts"])
_MEDIA_TYPES = {"apk": "application/vnd.android.package-archive"}
_OTHER = "application/octet-stream"
_UNFIT_FOR_A_HEADER = re.compile(r'[^\x20-\x7e]|["\\]')
_BYTES: dict[str, Any] = {
    kind: {"schema": {"type": "string", "format": "binary"}} for kind in [*_MEDIA_TYPES.values(), _OTHER]
}
_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {"description": "The content; its type says what it is.", "content": _BYTES},
    206: {"description": "The range that was asked for.", "content": _BYTES},
    304: {"description": "The caller has it already."},
}
_HEAD_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {"description": "What a GET of the whole content is answered with, without the content."},
    304: _ANSWERS[304],
}
IfNoneMatch = Annotated[str | None, Header(max_length=2000)]


@router.get("")
async def list_artifacts(build_id: str, service: ServiceDep, principal: PrincipalDep) -> ArtifactList:
    """List what a build made."""
    await service.desk.get(principal, build_id)
    found = await service.stores.database.read(lambda c: build_store.artifacts_of(c, build_id))
    return ArtifactList(artifacts=[artifact_reply(artifact) for artifact in found])


@router.get("/{number}", response_class=Response, responses=_ANSWERS)
async def get_artifact(
    build_id: str,
    number: int,
    service: ServiceDep,
    principal: PrincipalDep,
    range_: Annotated[str | None, Header(alias="range", max_length=200)] = None,
    if_none_match: IfNoneMatch = None,
    if_range: Annotated[str | None, Header(max_length=200)] = None,
) -> Response:
    """Give an artifact's content, or a range of it, or 304 where the caller has it."""
    artifact = await _found(service, principal, build_id, number)
    if if_none_match is not None and _names(if_none_match, _etag(artifact)):
        return Response(status_code=304, headers=_validators(artifact))
    await _check_kept(service, artifact)
    is_same = if_range in (None, _etag(artifact))
    span = answer_range(range_ if is_same else None, artifact.size_bytes)
    return StreamingResponse(
        service.stores.artifacts.read(artifact.sha256, span.start, span.end),
        status_code=span.status,
        media_type=_media_type(artifact),
        headers={**_headers(artifact), **span.headers},
    )


@router.head("/{number}", response_class=Response, responses=_HEAD_ANSWERS)
async def head_artifact(
    build_id: str,
    number: int,
    service: ServiceDep,
    principal: PrincipalDep,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """Give the headers of an artifact's whole content without it: its size, its type and its ETag."""
    artifact = await _found(service, principal, build_id, number)
    if if_none_match is not None and _names(if_none_match, _etag(artifact)):
        return Response(status_code=304, headers=_validators(artifact))
    await _check_kept(service, artifact)
    headers = {**_headers(artifact), **answer_range(None, artifact.size_bytes).headers}
    return Response(media_type=_media_type(artifact), headers=headers)


async def _found(service: Service, principal: Principal, build_id: str, number: int) -> ArtifactRow:
    await service.desk.get(principal, build_id)
    found = await service.stores.database.read(lambda c: build_store.artifacts_of(c, build_id))
    artifact = next((each for each in found if each.number == number), None)
    if artifact is None:
        raise NotFound(f"build {build_id} has no artifact {number}; it has {len(found)}")
    return artifact


async def _check_kept(service: Service, artifact: ArtifactRow) -> None:
    if await service.stores.artifacts.size_bytes(artifact.sha256) is None:
        raise NotFound(
            f"{artifact.path} of build {artifact.build_id} is no longer kept", code="artifact_removed"
        )


def _etag(artifact: ArtifactRow) -> str:
    return f'"{artifact.sha256}"'


def _media_type(artifact: ArtifactRow) -> str:
    return _MEDIA_TYPES.get(artifact.kind, _OTHER)


def _validators(artifact: ArtifactRow) -> dict[str, str]:
    return {"etag": _etag(artifact), "cache-control": "private, max-age=31536000, immutable"}


def _headers(artifact: ArtifactRow) -> dict[str, str]:
    filename = _UNFIT_FOR_A_HEADER.sub("_", artifact.path.rpartition("/")[2])
    return {**_validators(artifact), "content-disposition": f'attachment; filename="{filename}"'}


def _names(if_none_match: str, etag: str) -> bool:
    tags = [tag.strip().removeprefix("W/") for tag in if_none_match.split(",")]
    return "*" in tags or etag in tags
