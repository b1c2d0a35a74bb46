"""Serve recorded exchanges again, in the order in which they were recorded."""

from agent.providers.provider import Provider
from agent.record import Exchange
from agent.scripted.address import dialect_of, refuse_path, scripted_provider
from agent.scripted.local_server import LocalServer, Peer


class ReplayProvider(LocalServer):
    """A provider that says what another one once said; `async with ReplayProvider(read_exchanges(folder))`.

    Bodies and statuses are those of the recording, whatever is asked. A request past the last one, or
    in another dialect than the recording's, is refused in words.
    """

    def __init__(self, exchanges: list[Exchange]) -> None:
        super().__init__()
        self._exchanges = exchanges
        self._next = 0

    @property
    def provider(self) -> Provider:
        """The catalogue entry for this server."""
        title = f"Replay of {len(self._exchanges)} recorded exchanges (no model)"
        return scripted_provider(self.base_url, title)

    async def answer(self, peer: Peer, target: str, body: bytes) -> None:
        """Serve the next exchange, or say what does not fit."""
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
