"""Reads HTTP/1.1 from sockets within limits, and answers what is no HTTP with a problem.

It is h11 on purpose: the other parser that the server may find installed has no limit on headers.
"""

import http
import secrets
import sys

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from orchestrator.errors import BadRequest
from orchestrator.problem import problem_response

MAX_HEAD_BYTES = 64 * 1024
"""How large the first line and the headers of a request may be together."""


class HeadTooLarge(BadRequest):
    """The first line and the headers are larger than any sensible request's."""

    code = "head_too_large"
    status = 431
    default_hint = "Send fewer or shorter headers; bodies have limits of their own."


class Http11(H11Protocol):
    """One connection; the limit on heads is `h11_max_incomplete_event_size` of the server's settings."""

    def send_400_response(self, msg: str) -> None:
        """Answer bytes that are no request, and hang up."""
        fault = sys.exception()
        if self.conn.our_state not in {h11.IDLE, h11.SEND_RESPONSE}:
            self.transport.close()  # an answer is on its way already and can not be taken back
            return
        refusal = BadRequest(f"what came is no HTTP request: {fault}", code="bad_http")
        if isinstance(fault, h11.RemoteProtocolError) and fault.error_status_hint == HeadTooLarge.status:
            refusal = HeadTooLarge(f"the head of the request is larger than {MAX_HEAD_BYTES >> 10} KiB")
        request_id = secrets.token_hex(8)
        answer = problem_response(refusal, request_id, {"connection": "close", "x-request-id": request_id})
        reason = http.HTTPStatus(refusal.status).phrase.encode()
        for event in (
            h11.Response(status_code=refusal.status, headers=answer.raw_headers, reason=reason),
            h11.Data(data=bytes(answer.body)),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()
