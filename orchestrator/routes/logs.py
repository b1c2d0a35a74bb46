"""Logs of builds: by bytes, by lines, by pattern, live; Gradle's events; and the digest made of them."""

from collections.abc import AsyncIterator
from typing import Annotated

from anyio import to_thread
from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import PlainTextResponse, StreamingResponse

from builder_bridge.log.events import CauseLink, read_events
from orchestrator.access import Principal
from orchestrator.elsewhere import stay_or_go
from orchestrator.errors import Conflict, NotFound
from orchestrator.feed import EVENT_ID, parse_position
from orchestrator.ranges import RangeOfBytes, answer_range
from orchestrator.routes.context import PrincipalDep, Service, ServiceDep
from orchestrator.schema import (
    CauseReply,
    DigestReply,
    EventsReply,
    LineReply,
    ProblemList,
    SearchReply,
    TaskReply,
)
from orchestrator.store import builds as build_store
from orchestrator.store.records import BuildRow, RunRow, run_id_of

router = APIRouter(prefix="/v1/builds/{build_id}", tags=["logs"])
CHUNK_BYTES = 1 << 18
MAX_OFFSET = 1 << 50
_WAIT = "Wait for the end of the build: GET /v1/builds/{build_id}?wait_s=300."


class EventStream(StreamingResponse):
    """Server-sent events that are written already; nothing between here and the reader may hold them back."""

    media_type = "text/event-stream"

    def __init__(self, events: AsyncIterator[bytes], status_code: int = 200) -> None:
        headers = {"cache-control": "no-cache", "x-accel-buffering": "no"}
        super().__init__(events, status_code, headers)


Attempt = Annotated[
    int | None, Query(ge=1, le=1_000_000, description="Which attempt; the latest by default.")
]
Offset = Annotated[int | None, Query(ge=0, le=MAX_OFFSET)]


@router.get("/log", response_class=PlainTextResponse)
async def read_log(
    build_id: str,
    request: Request,
    service: ServiceDep,
    principal: PrincipalDep,
    offset: Offset = None,
    attempt: Attempt = None,
    range_: Annotated[str | None, Header(alias="range", max_length=200)] = None,
) -> Response:
    """Give the log's bytes as they came from the phone, whole or from an offset, or a `Range` of them."""
    build = await service.desk.get(principal, build_id)
    run_id = _run_id(build, attempt)
    await stay_or_go(service.stores, run_id, request)
    logs = service.stores.logs
    size = await to_thread.run_sync(logs.size_bytes, run_id)
    span = (
        answer_range(range_, size) if offset is None else RangeOfBytes(min(offset, size), size, size, False)
    )

    async def read(at: int) -> bytes:
        return await to_thread.run_sync(logs.read, run_id, at, min(CHUNK_BYTES, span.end - at))

    first = await read(span.start)  # before the answer begins, so that a fault can still be told

    async def chunks() -> AsyncIterator[bytes]:
        at, data = span.start, first
        while data:
            yield data
            at += len(data)
            data = await read(at) if at < span.end else b""

    return StreamingResponse(
        chunks(),
        status_code=span.status,
        media_type="text/plain; charset=utf-8",
        headers={**span.headers, "x-log-complete": str(build.is_finished).lower()},
    )


@router.get("/log/lines")
async def read_log_lines(
    build_id: str,
    request: Request,
    service: ServiceDep,
    principal: PrincipalDep,
    first: Annotated[int, Query(ge=-(10**9), le=10**9, description="Negative counts from the end.")] = -200,
    count: Annotated[int, Query(ge=1, le=5000)] = 200,
    attempt: Attempt = None,
) -> LineReply:
    """Give lines of the log; without arguments its tail."""
    build = await service.desk.get(principal, build_id)
    run_id = _run_id(build, attempt)
    await stay_or_go(service.stores, run_id, request)
    found = await to_thread.run_sync(service.stores.logs.lines, run_id, first, count)
    return LineReply(first=found.first, lines=list(found.lines), total=found.total)


@router.get("/log/search")
async def search_log(
    build_id: str,
    request: Request,
    service: ServiceDep,
    principal: PrincipalDep,
    pattern: Annotated[str, Query(min_length=1, max_length=1000)],
    max_hits: Annotated[int, Query(ge=1, le=1000)] = 100,
    attempt: Attempt = None,
) -> SearchReply:
    """Find the lines that match a regular expression (RE2 syntax)."""
    build = await service.desk.get(principal, build_id)
    run_id = _run_id(build, attempt)
    await stay_or_go(service.stores, run_id, request)
    search = service.stores.logs.search
    lines, hits, total = await to_thread.run_sync(search, run_id, pattern, max_hits)
    return SearchReply(lines=list(lines), hits=hits, total=total)


@router.get("/log/live", response_class=EventStream)
async def follow_log(
    build_id: str,
    request: Request,
    service: ServiceDep,
    principal: PrincipalDep,
    offset: Offset = None,
    last_event_id: Annotated[str | None, Header(pattern=EVENT_ID)] = None,
) -> EventStream:
    """Follow a build: events `state`, `log`, `attempt` and `end`; ids are byte offsets to go on from."""
    position = parse_position(last_event_id, offset)
    build = await service.desk.get(principal, build_id)
    run_id = _run_id(build, position.attempt)
    await stay_or_go(service.stores, run_id, request)
    # A damaged log is told before the stream begins; after that it could only be cut.
    await to_thread.run_sync(service.stores.logs.read, run_id, position.offset, 1)
    return EventStream(service.feed.follow(principal, build_id, position))


@router.get("/events")
async def read_build_events(
    build_id: str,
    request: Request,
    service: ServiceDep,
    principal: PrincipalDep,
    attempt: Attempt = None,
) -> EventsReply:
    """Give what Gradle noted of its tasks and failures, once the run has ended."""
    build = await service.desk.get(principal, build_id)
    run_id = _run_id(build, attempt)
    await stay_or_go(service.stores, run_id, request)
    data = await to_thread.run_sync(service.stores.logs.events, run_id)
    if not data:
        if not build.is_finished:
            raise Conflict(f"run {run_id} has no events yet", code="no_events", hint=_WAIT)
        raise NotFound(
            f"run {run_id} has no events; the build is {build.outcome}",
            code="no_events",
            hint="A Gradle that its init script did not reach leaves none.",
        )
    events = await to_thread.run_sync(read_events, data)
    return EventsReply(
        build=build_id,
        gradle=events.gradle,
        outcome=events.outcome.value,
        tasks=[
            TaskReply(path=task.path, outcome=task.outcome, duration_s=task.duration_s)
            for task in events.tasks
        ],
        failures=[[_cause_reply(link) for link in chain] for chain in events.failures],
    )


@router.get("/problems")
async def list_problems(build_id: str, service: ServiceDep, principal: PrincipalDep) -> ProblemList:
    """Give the problems that the log of an ended run shows, first cause first."""
    run = await _explained(service, principal, build_id)
    return ProblemList(problems=(run.digest or {}).get("causes", []))


@router.get("/digest")
async def read_digest(build_id: str, service: ServiceDep, principal: PrincipalDep) -> DigestReply:
    """Give what a person or a model should read first of an ended build."""
    run = await _explained(service, principal, build_id)
    return DigestReply(build=build_id, text=run.digest_text or "", digest=run.digest or {})


def _cause_reply(link: CauseLink) -> CauseReply:
    return CauseReply(type=link.type, message=link.message, file=link.file, line=link.line)


def _run_id(build: BuildRow, attempt: int | None) -> str:
    return build.run_id if attempt is None else run_id_of(build.id, attempt)


async def _explained(service: Service, principal: Principal, build_id: str) -> RunRow:
    build = await service.desk.get(principal, build_id)
    run = await service.stores.database.read(lambda c: build_store.get_run(c, build.run_id))
    if run is None or run.digest is None:
        if not build.is_finished:
            raise Conflict(
                f"build {build_id} has no digest yet; it is {build.state}", code="no_digest", hint=_WAIT
            )
        raise NotFound(
            f"build {build_id} has no digest; it is {build.outcome}",
            code="no_digest",
            hint="A build that no phone began has none.",
        )
    return run
