"""Reads HTTP/1.1 from sockets within limits, and answers what is no HTTP with a problem.

It is h11 on purpose: the other parser that the server may find installed has no limit on headers.
"""

import asyncio
import http
import secrets
import sys
from typing import ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from orchestrator.errors import BadRequest
from orchestrator.problem import Ids, problem_response

MAX_HEAD_BYTES = 64 * 1024
"""How large the first line and the headers of a request may be together."""
HEAD_S = 30.0
"""How long they may take to come."""


class HeadTooLarge(BadRequest):
    """The first line and the headers are larger than any sensible request's."""

    code = "head_too_large"
    status = 431
    default_hint = "Send fewer or shorter headers; bodies have limits of their own."


class SlowHead(BadRequest):
    """A connection was opened and no whole head came."""

    code = "head_stalled"
    status = 408
    default_hint = "Send the request at once; what is slow may be its body."


class Http11(H11Protocol):
    """One connection; the limit on heads is `h11_max_incomplete_event_size` of the server's settings."""

    head_s: ClassVar[float] = HEAD_S
    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first head."""
        super().connection_made(transport)
        self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        """Take bytes in; a head that has begun must be whole in time, however its bytes trickle."""
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop_waiting()
        elif self._head_timer is None:
            self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Let go of the connection."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait_for_head(self) -> None:
        self._head_timer = self.loop.call_later(self.head_s, self._hang_up)

    def _stop_waiting(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _hang_up(self) -> None:
        self._head_timer = None
        begun, _ = self.conn.trailing_data
        if not begun:
            self.transport.close()  # browsers open connections that they may never need
        elif self.conn.their_state is h11.IDLE and self.conn.our_state is h11.IDLE:
            self._refuse(SlowHead(f"no whole head of a request came within {self.head_s:g} s"))

    def send_400_response(self, msg: str) -> None:
        """Answer bytes that are no request, and hang up."""
        fault = sys.exception()
        if self.conn.our_state not in {h11.IDLE, h11.SEND_RESPONSE}:
            self.transport.close()  # an answer is on its way already and can not be taken back
            return
        refusal = BadRequest(f"what came is no HTTP request: {fault}", code="bad_http")
        if isinstance(fault, h11.RemoteProtocolError) and fault.error_status_hint == HeadTooLarge.status:
            refusal = HeadTooLarge(f"the head of the request is larger than {MAX_HEAD_BYTES >> 10} KiB")
        self._refuse(refusal)

    def _refuse(self, refusal: BadRequest) -> None:
        request_id = secrets.token_hex(8)
        headers = {"connection": "close", "x-request-id": request_id}
        answer = problem_response(refusal, Ids(request_id), headers)
        reason = http.HTTPStatus(refusal.status).phrase.encode()
        for event in (
            h11.Response(status_code=refusal.status, headers=answer.raw_headers, reason=reason),
            h11.Data(data=bytes(answer.body)),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()
