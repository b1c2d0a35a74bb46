"""Serve recorded exchanges again, in the order in which they were recorded."""

from types import TracebackType
from typing import Self

from agent.providers.provider import Provider
from agent.record import Exchange
from agent.scripted.address import dialect_of, refuse_path, scripted_provider
from agent.scripted.local_server import LocalServer, Peer


class ReplayProvider:
    """A provider that says what another one once said; `async with ReplayProvider(read_exchanges(folder))`.

    Bodies and statuses are those of the recording, whatever is asked. A request past the last one, or
    in another dialect than the recording's, is refused in words.
    """

    def __init__(self, exchanges: list[Exchange]) -> None:
        self._exchanges = exchanges
        self._next = 0
        self._server = LocalServer(self._answer)

    async def __aenter__(self) -> Self:
        await self._server.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._server.__aexit__(kind, fault, trace)

    @property
    def provider(self) -> Provider:
        """The catalogue entry for this server."""
        title = f"Replay of {len(self._exchanges)} recorded exchanges (no model)"
        return scripted_provider(f"http://127.0.0.1:{self._server.port}/v1", title)

    async def _answer(self, peer: Peer, target: str, body: bytes) -> None:
        dialect = dialect_of(target)
        if dialect is None:
            await refuse_path(peer, target)
            return
        if self._next >= len(self._exchanges):
            await self._refuse(peer, f"the recording ends after {len(self._exchanges)} exchanges")
            return
        exchange = self._exchanges[self._next]
        if exchange.dialect is not dialect:
            await self._refuse(peer, f"the recording speaks {exchange.dialect}, {dialect} was asked for")
            return
        self._next += 1
        kind = "text/event-stream" if exchange.status == 200 else "application/json"
        length = str(len(exchange.body))
        await peer.send_head(exchange.status, [("content-type", kind), ("content-length", length)])
        await peer.send_data(exchange.body)
        await peer.end()

    async def _refuse(self, peer: Peer, why: str) -> None:
        error = {"type": "script_mismatch", "code": "script_mismatch", "message": f"replay: {why}"}
        await peer.send_json(400, {"type": "error", "error": error})
