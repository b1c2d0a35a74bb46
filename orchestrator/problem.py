"""Every error as `application/problem+json` (RFC 9457): code, hint and ids beside the standard fields."""

import re
from dataclasses import asdict, dataclass
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from sqlalchemy.exc import DBAPIError
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from builder_bridge.errors import BridgeError
from builder_bridge.log.frames import FramesFault
from orchestrator.errors import NotReady, Refusal, TooLarge

MEDIA_TYPE = "application/problem+json"
_ID = re.compile(r"[0-9A-Za-z-]{1,64}")
"""An id that is worth to be said again; anything else in its place is a stranger's text."""


class Problem(BaseModel):
    """Why a request was not carried out, and what to do next."""

    type: str = Field(examples=["urn:pocketbuild:problem:not_found"])
    title: str = Field(examples=["Not Found"])
    status: int = Field(examples=[404])
    detail: str = Field(examples=["there is no build 5f0c"])
    code: str = Field(examples=["not_found"])
    hint: str = Field(examples=["List what there is; ids are case-sensitive."])
    request_id: str | None = Field(default=None, examples=["b7ad6b7169203331"])
    build_id: str | None = Field(default=None, description="The build that the path names.")
    run_id: str | None = Field(default=None, description="The run of an agent that the path names.")
    errors: list[dict[str, Any]] | None = Field(
        default=None, description="Where the body is wrong, if it is the body."
    )


@dataclass(frozen=True, slots=True)
class Ids:
    """What a problem is about, so that its reader finds it in logs and in the API."""

    request_id: str | None = None
    build_id: str | None = None
    run_id: str | None = None


def ids_of(request: Request) -> Ids:
    """Give the ids of a request, and of what its path names."""
    named = {name: request.path_params.get(name) for name in ("build_id", "run_id")}
    found = {name: value for name, value in named.items() if isinstance(value, str) and _ID.fullmatch(value)}
    return Ids(getattr(request.state, "request_id", None), **found)


def problem_response(refusal: Refusal, ids: Ids, headers: dict[str, str] | None = None) -> JSONResponse:
    """Answer with a refusal."""
    extra = {"WWW-Authenticate": "Bearer"} if refusal.status == HTTPStatus.UNAUTHORIZED else {}
    return _response(
        refusal.status,
        refusal.reason_code,
        str(refusal),
        refusal.hint,
        ids,
        headers={**extra, **(headers or {})},
    )


def register(app: FastAPI) -> None:
    """Let every error of an app leave it as a problem."""
    app.add_exception_handler(Refusal, _on_refusal)
    app.add_exception_handler(BridgeError, _on_bridge_error)
    app.add_exception_handler(DBAPIError, _on_outage)
    app.add_exception_handler(FramesFault, _on_damaged_log)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(HTTPException, _on_http)
    app.add_exception_handler(Exception, _on_defect)


class PlainErrorsAsProblems:
    """ASGI middleware: a body whose stated length is over its limit is answered in plain text; mend that."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass everything through but a plain-text 413."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        is_replaced = False

        async def send_problem(message: Message) -> None:
            nonlocal is_replaced
            if message["type"] == "http.response.start" and message["status"] == 413:
                kind = Headers(raw=message["headers"]).get("content-type", "")
                is_replaced = not kind.startswith(MEDIA_TYPE)
            if not is_replaced:
                await send(message)

        await self._app(scope, receive, send_problem)
        if is_replaced:
            refusal = TooLarge("the body is larger than this route takes")
            await problem_response(refusal, Ids(scope["state"].get("request_id")))(scope, receive, send)


async def _on_refusal(request: Request, fault: Exception) -> JSONResponse:
    assert isinstance(fault, Refusal)
    return problem_response(fault, ids_of(request))


async def _on_bridge_error(request: Request, fault: Exception) -> JSONResponse:
    assert isinstance(fault, BridgeError)
    status = HTTPStatus.UNPROCESSABLE_ENTITY if not fault.may_have_run else HTTPStatus.BAD_GATEWAY
    return _response(status, fault.code, str(fault), fault.hint, ids_of(request))


async def _on_outage(request: Request, fault: Exception) -> JSONResponse:
    refusal = NotReady("the database does not answer", code="database_unavailable")
    return problem_response(refusal, ids_of(request))


async def _on_damaged_log(request: Request, fault: Exception) -> JSONResponse:
    hint = "The file of this log on the service's disk is damaged; its digest and artifacts are kept apart."
    return _response(500, "log_damaged", f"the log cannot be read: {fault}", hint, ids_of(request))


async def _on_invalid(request: Request, fault: Exception) -> JSONResponse:
    assert isinstance(fault, RequestValidationError)
    errors = [
        {"where": ".".join(str(step) for step in error["loc"]), "what": error["msg"]}
        for error in fault.errors()
    ]
    detail = "; ".join(f"{error['where']}: {error['what']}" for error in errors[:5])
    hint = "Compare the request with /openapi.json."
    return _response(422, "invalid_request", detail, hint, ids_of(request), errors=errors)


async def _on_http(request: Request, fault: Exception) -> JSONResponse:
    assert isinstance(fault, HTTPException)
    if isinstance(fault.__cause__, Refusal):  # what a body's reader raised, as the framework wraps it
        return problem_response(fault.__cause__, ids_of(request))
    code = HTTPStatus(fault.status_code).name.lower()
    hint = "The routes and their methods are in /openapi.json."
    if fault.status_code == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        return problem_response(TooLarge("the body is larger than this route takes"), ids_of(request))
    return _response(
        fault.status_code, code, str(fault.detail), hint, ids_of(request), headers=dict(fault.headers or {})
    )


async def _on_defect(request: Request, fault: Exception) -> JSONResponse:
    hint = "This is a defect of the service; its log has the details under the request id."
    return _response(500, "internal", f"{type(fault).__name__} while answering", hint, ids_of(request))


def _response(
    status: int,
    code: str,
    detail: str,
    hint: str,
    ids: Ids,
    *,
    errors: list[dict[str, Any]] | None = None,
    headers: dict[str, str] | None = None,
) -> JSONResponse:
    problem = Problem(
        type=f"urn:pocketbuild:problem:{code}",
        title=HTTPStatus(status).phrase,
        status=int(status),
        detail=detail,
        code=code,
        hint=hint,
        errors=errors,
        **asdict(ids),
    )
    body = problem.model_dump(exclude_none=True)
    return JSONResponse(body, status_code=status, media_type=MEDIA_TYPE, headers=headers)
