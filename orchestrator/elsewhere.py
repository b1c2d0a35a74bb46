"""Logs that lie on another host of the lab: the request is passed on there, and its answer back.

A log stays on the host of its phone while it is written. Every host answers for every build.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from fastapi import FastAPI, Request
from fastapi.responses import StreamingResponse
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from orchestrator.engine.resources import Stores
from orchestrator.errors import NotReady
from orchestrator.problem import ids_of, problem_response
from orchestrator.store import builds as build_store
from orchestrator.store import phones as phone_store

if TYPE_CHECKING:
    import httpx

_PASSED_ON = ("authorization", "range", "if-range", "last-event-id", "accept", "x-request-id")
_PASSED_BACK = (
    "content-type",
    "content-length",
    "content-range",
    "accept-ranges",
    "x-log-complete",
    "cache-control",
    "x-accel-buffering",
)
HOP_HEADER = "x-pocketbuild-hop"


class OnAnotherHost(Exception):
    """What is asked for lies on the host at `url`."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.url = url


async def stay_or_go(stores: Stores, run_id: str, request: Request) -> None:
    """Return where the log of a run is this host's; raise `OnAnotherHost` where it is another's.

    Raises `NotReady` for a host that gives no URL. A request is passed on once at most.
    """
    run = await stores.database.read(lambda c: build_store.get_run(c, run_id))
    if run is None or run.host == stores.settings.lab.host_id or HOP_HEADER in request.headers:
        return
    host = await stores.database.read(lambda c: phone_store.get_host(c, run.host))
    if host is None or host.url is None:
        raise NotReady(
            f"the log of run {run_id} lies on host {run.host}, which gives no address",
            code="log_elsewhere",
            hint="Set `lab.url` on every host of the lab.",
        )
    raise OnAnotherHost(host.url)


def register(app: FastAPI) -> None:
    """Let an app pass requests on to other hosts."""
    app.add_exception_handler(OnAnotherHost, _pass_on)


async def _pass_on(request: Request, place: Exception) -> Response:
    import httpx  # only a lab needs it, and it is slow to load

    assert isinstance(place, OnAnotherHost)
    async with AsyncExitStack() as stack:
        http = await stack.enter_async_context(
            httpx.AsyncClient(timeout=httpx.Timeout(10, read=60), trust_env=False)
        )
        headers = {name: request.headers[name] for name in _PASSED_ON if name in request.headers}
        url = f"{place.url.rstrip('/')}{request.url.path}"
        stream = http.stream("GET", url, params=request.query_params, headers={**headers, HOP_HEADER: "1"})
        try:
            answer = await stack.enter_async_context(stream)
        except httpx.TransportError as fault:
            refusal = NotReady(f"the host at {place.url} does not answer: {fault}", code="host_unreachable")
            return problem_response(refusal, ids_of(request))
        kept = stack.pop_all()
        back = {name: answer.headers[name] for name in _PASSED_BACK if name in answer.headers}
        return _PassedOn(answer, back, kept)


class _PassedOn(StreamingResponse):
    """An answer of another host on its way; the connection there ends with it, also where it is cut."""

    def __init__(self, answer: "httpx.Response", headers: dict[str, str], kept: AsyncExitStack) -> None:
        super().__init__(_chunks(answer), answer.status_code, headers)
        self._kept = kept

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._kept:
            await super().__call__(scope, receive, send)


async def _chunks(answer: "httpx.Response") -> AsyncIterator[bytes]:
    async for chunk in answer.aiter_raw():
        yield chunk
