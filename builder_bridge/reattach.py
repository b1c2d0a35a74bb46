"""Carries one run through lost connections: reconnects, finds the run again, goes on where it was.

Nothing is ever begun twice: the run is known by its id, the log by its offset, an artifact by the
part that is here already.
"""

import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, aclosing
from pathlib import Path

import anyio
import structlog

from builder_bridge.bridge import Bridge
from builder_bridge.build import BuildResult, BuildSpec, LogChunk, RunId, StateChanged
from builder_bridge.errors import BridgeError
from builder_bridge.workspace.snapshot import Snapshot

log = structlog.get_logger()

FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 5.0
PATIENCE_S = 300.0

OpenBridge = Callable[[], AbstractAsyncContextManager[Bridge]]
OnChunk = Callable[[LogChunk], Awaitable[None]]
OnState = Callable[[StateChanged], Awaitable[None]]


async def build_through_faults(
    open_again: OpenBridge,
    run_id: RunId,
    spec: BuildSpec,
    snapshot: Snapshot,
    on_chunk: OnChunk,
    on_state: OnState,
    *,
    offset: int = 0,
    artifacts_to: Path | None = None,
    patience_s: float = PATIENCE_S,
) -> BuildResult:
    """Submit a run, follow it from a log offset on, and fetch what it made, whatever the wire does.

    `open_again` opens a bridge to the same phone anew. Artifacts land in `artifacts_to` under their
    paths. A fault that connecting again cannot cure is raised at once, any other when for
    `patience_s` nothing has got further.
    """
    pause_s, since_s = FIRST_PAUSE_S, time.monotonic()
    while True:
        try:
            async with open_again() as bridge:
                await bridge.submit(run_id, spec, snapshot)
                pause_s, since_s = FIRST_PAUSE_S, time.monotonic()
                async with aclosing(bridge.follow(run_id, offset)) as events:
                    async for event in events:
                        since_s = time.monotonic()
                        if isinstance(event, StateChanged):
                            await on_state(event)
                        else:
                            await on_chunk(event)
                            offset = event.offset + len(event.data)
                result = await bridge.result(run_id)
                if artifacts_to is not None:
                    for artifact in result.artifacts:
                        await bridge.fetch(run_id, artifact, artifacts_to / artifact.path)
                        since_s = time.monotonic()
                return result
        except BridgeError as fault:
            if not fault.is_passing or time.monotonic() - since_s > patience_s:
                raise
            log.info("connection.was_lost", run=run_id, code=fault.code, fault=str(fault), offset=offset)
        await anyio.sleep(pause_s)
        pause_s = min(pause_s * 2, LONGEST_PAUSE_S)
