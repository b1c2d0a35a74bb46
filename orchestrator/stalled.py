"""Hangs up on senders that stop in the middle of a body, whichever route it is for."""

import anyio
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from orchestrator.errors import BadRequest


class StalledBodies:
    """ASGI middleware: what comes of a body must go on coming; waiting for an answer may take for ever."""

    def __init__(self, app: ASGIApp, idle_s: float) -> None:
        self._app = app
        self._idle_s = idle_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on with a body that raises `BadRequest` where it stops coming."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        is_whole = False

        async def receive_in_time() -> Message:
            nonlocal is_whole
            if is_whole:
                return await receive()
            try:
                with anyio.fail_after(self._idle_s):
                    message = await receive()
            except TimeoutError as fault:
                raise BadRequest(
                    f"nothing came of the body for {self._idle_s:g} s",
                    code="upload_stalled",
                    hint="Send the request again; nothing was done.",
                ) from fault
            is_whole = not message.get("more_body", False)
            return message

        await self._app(scope, receive_in_time, send)
