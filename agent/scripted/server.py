"""Serve a script over HTTP/1.1 on a port of this host, in every dialect at once."""

import json
from collections import Counter

import anyio

from agent.message import Dialect, JsonObject
from agent.providers.provider import Provider
from agent.scripted.address import dialect_of, refuse_path, scripted_provider
from agent.scripted.conversation import Conversation, Failure, Turn
from agent.scripted.hearing import hear, mismatch
from agent.scripted.hostile import spoil
from agent.scripted.local_server import LocalServer, Peer
from agent.scripted.render import render


class ScriptedProvider(LocalServer):
    """A provider that answers from a script; `async with ScriptedProvider(conversation) as server`.

    Which turn is served follows from the request itself, by the assistant's turns in it, so a client
    that asks again after a kill hears the same again. `mismatches` holds what did not fit, `requests`
    every body that came.
    """

    def __init__(self, conversation: Conversation) -> None:
        super().__init__()
        self.conversation = conversation
        self.requests: list[JsonObject] = []
        self.mismatches: list[str] = []
        self._served: Counter[tuple[str, int]] = Counter()

    @property
    def provider(self) -> Provider:
        """The catalogue entry for this server."""
        return scripted_provider(self.base_url, f"Scripted: {self.conversation.title} (a script, no model)")

    async def answer(self, peer: Peer, target: str, body: bytes) -> None:
        """Serve the turn that the request asks for, or say what does not fit."""
        dialect = dialect_of(target)
        if dialect is None:
            await refuse_path(peer, target)
            return
        parsed: JsonObject = json.loads(body)
        self.requests.append(parsed)
        heard = hear(parsed, dialect)
        number, turns = heard.turns, self.conversation.turns
        if number >= len(turns):
            await self._refuse(
                peer, f"the script ends after turn {len(turns)}, turn {number + 1} was asked for"
            )
            return
        turn = turns[number]
        for place, failure in enumerate(turn.failures):
            if self._count(f"failure {place}", number) <= failure.times:
                await _fail(peer, failure)
                return
        if (told := mismatch(heard, turn.expects)) is not None:
            await self._refuse(peer, f"turn {number + 1} does not fit: {told}")
            return
        await self._speak(peer, turn, number, dialect)

    def _count(self, what: str, number: int) -> int:
        self._served[what, number] += 1
        return self._served[what, number]

    async def _refuse(self, peer: Peer, why: str) -> None:
        self.mismatches.append(why)
        error = {"type": "script_mismatch", "code": "script_mismatch", "message": f"scripted provider: {why}"}
        await peer.send_json(400, {"type": "error", "error": error})

    async def _speak(self, peer: Peer, turn: Turn, number: int, dialect: Dialect) -> None:
        frames = render(turn, number, dialect)
        served = self._count("turn", number)
        if turn.hostile and served <= turn.hostile_times:
            frames = spoil(frames, turn.hostile, dialect)
        body = b"".join(frame.to_bytes() for frame in frames)
        is_cut = turn.cut_after_bytes is not None and served <= turn.cut_times
        await peer.send_head(200, [("content-type", "text/event-stream"), ("transfer-encoding", "chunked")])
        size = turn.piece_bytes or len(body)
        for at in range(0, len(body[: turn.cut_after_bytes] if is_cut else body), size):
            await anyio.sleep(turn.wait_s)
            await peer.send_data(body[at : at + size])
        if is_cut:
            raise anyio.ClosedResourceError
        await peer.end()


async def _fail(peer: Peer, failure: Failure) -> None:
    headers = [] if failure.retry_after_s is None else [("retry-after", str(failure.retry_after_s))]
    body = failure.body or {"error": {"message": f"scripted failure {failure.status}"}}
    await peer.send_json(failure.status, body, headers)
