"""Brings an artifact to this host: to a `.part` file, resumed where bytes are missing, verified, renamed.

A large one may come in several streams of the same connection, each bringing a range of its own; see
`ranges.streams_for` for when that pays.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from anyio.to_thread import run_sync

from builder_bridge.build import Artifact, RunId
from builder_bridge.errors import BridgeError, PhoneLost, ProtocolFault, ServiceRefused, TransferFault
from builder_bridge.part_file import PartFile, too_long
from builder_bridge.ranges import Range, share_out
from builder_bridge.routes.route import Route

_BUFFER_BYTES = 4 << 20
_LEAST_BUFFER_BYTES = 512 << 10
_TRIES = 2
_ROUNDS = 3
"""So often the ranges of streams that failed are shared out again among several."""
_OF_ONE_STREAM = (PhoneLost, ProtocolFault, ServiceRefused)


async def fetch_artifact(
    route: Route, run_id: RunId, artifact: Artifact, destination: Path, streams: int = 1
) -> None:
    """Fetch in so many streams until the digest is right; what an earlier attempt brought is kept.

    Raises `TransferFault` when even a fetch from the first byte gives other content.
    """
    part = PartFile(destination, artifact)
    for _ in range(_TRIES):
        gaps = await run_sync(part.open, streams > 1)
        try:
            fetch = _Fetch(route, run_id, artifact, part)
            await fetch.bring(gaps, streams)
        finally:
            with anyio.CancelScope(shield=True):
                await run_sync(part.close)
        if await run_sync(part.finish):
            return
    raise TransferFault(
        f"The artifact {artifact.path} of run {run_id} arrives with another SHA-256 than the phone names.",
        hint="The phone's storage or the connection damages bytes; build again.",
    )


class _Fetch:
    """One attempt to bring what is missing. Each stream owns its range, so no byte is written twice."""

    def __init__(self, route: Route, run_id: RunId, artifact: Artifact, part: PartFile) -> None:
        self._route = route
        self._run_id = run_id
        self._artifact = artifact
        self._part = part
        self._brought_bytes = 0

    async def bring(self, gaps: Sequence[Range], streams: int) -> None:
        """Bring the gaps; a stream that fails costs the others nothing, and its rest is tried again."""
        if streams == 1:
            for start, end in gaps:
                await self._copy(_Share(start, end), _BUFFER_BYTES)
            return
        shares = [_Share(start, end) for start, end in share_out(gaps, streams)]
        for number in range(_ROUNDS):
            before = self._brought_bytes
            fault = await self._round(shares, streams)
            if fault is None:
                return
            if self._brought_bytes == before or number + 1 == _ROUNDS:
                raise fault
            rest = [(share.position, share.end) for share in shares if share.position < share.end]
            shares = [_Share(start, end) for start, end in share_out(rest, streams)]

    async def _round(self, shares: "Sequence[_Share]", streams: int) -> BridgeError | None:
        """Let so many streams work at shares; gives the first fault of one of them, if any failed."""
        waiting, faults = list(reversed(shares)), list[BridgeError]()
        buffer_bytes = max(_LEAST_BUFFER_BYTES, _BUFFER_BYTES // streams)

        async def work() -> None:
            while waiting:
                try:
                    await self._copy(waiting.pop(), buffer_bytes)
                except _OF_ONE_STREAM as fault:
                    faults.append(fault)
                    return

        try:
            async with anyio.create_task_group() as tasks:
                for _ in range(min(streams, len(shares))):
                    tasks.start_soon(work)
        except BaseExceptionGroup as group:
            raise group.exceptions[0] from group.exceptions[0].__cause__
        return faults[0] if faults else None

    async def _copy(self, share: "_Share", buffer_bytes: int) -> None:
        pieces_waiting = list[bytes]()
        size_bytes = 0

        async def put() -> None:
            nonlocal pieces_waiting, size_bytes
            pieces, pieces_waiting, count, size_bytes = pieces_waiting, [], size_bytes, 0
            await run_sync(self._part.write, share.position, pieces)
            share.position += count
            self._brought_bytes += count

        try:
            async with self._pieces(share.position) as pieces:
                async for piece in pieces:
                    room = share.end - share.position - size_bytes
                    if len(piece) > room and share.end == self._artifact.size_bytes:
                        raise too_long(self._artifact)
                    pieces_waiting.append(piece[:room])
                    size_bytes += min(room, len(piece))
                    if len(piece) >= room and share.end < self._artifact.size_bytes:
                        break  # what follows is another stream's
                    if size_bytes >= buffer_bytes:
                        await put()
        finally:
            if size_bytes:
                with anyio.CancelScope(shield=True):
                    await put()

    @asynccontextmanager
    async def _pieces(self, offset: int) -> AsyncIterator[AsyncIterator[bytes]]:
        async with self._route.get(self._run_id, str(self._artifact.index), offset) as pieces:
            try:
                yield pieces
            finally:
                if isinstance(pieces, AsyncGenerator):
                    await pieces.aclose()


class _Share:
    """A range that one stream brings; `position` is its first byte that is not written yet."""

    def __init__(self, start: int, end: int) -> None:
        self.position = start
        self.end = end
