"""Opens the durable engine of this process: DBOS, dispatcher, phone watch and janitor."""

import fcntl
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import anyio
import structlog
from anyio import to_thread
from dbos import DBOS, DBOSConfig, DBOSPortableJSONSerializer

from orchestrator.engine.dispatch import Dispatcher, queue_of
from orchestrator.engine.hooks import HookSender
from orchestrator.engine.janitor import Janitor
from orchestrator.engine.phone import OpenPhone, PhoneLines
from orchestrator.engine.phone_watch import PhoneWatch
from orchestrator.engine.resources import EngineResources, Stores, bound
from orchestrator.errors import DataFolderTaken

log = structlog.get_logger(__name__)
STORED_FORMAT = "build-1"
"""The version of what workflows store. It is a constant on purpose: the engine takes up only
workflows of its own version, and its default changes with every edit. A change of the steps goes
behind `DBOS.patch_async`; only where that can not be done does this number rise, and then runs
under way must end under the old program first."""


@contextmanager
def data_folder_lock(data_dir: Path, host_id: str) -> Iterator[None]:
    """Hold a data folder for one process; raises `DataFolderTaken` where another one has it.

    Two processes as one host would run every workflow twice and double each log.
    """
    data_dir.mkdir(parents=True, exist_ok=True)
    with (data_dir / f"{host_id}.lock").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as fault:
            raise DataFolderTaken(f"another process serves {data_dir} as host {host_id}") from fault
        yield


@asynccontextmanager
async def open_engine(stores: Stores, open_phone: OpenPhone) -> AsyncIterator[EngineResources]:
    """Run the engine for the block; builds that run on phones go on there after it.

    The caller holds the data folder's lock. Runs of this host that a crash interrupted are taken up
    at once.
    """
    settings = stores.settings
    async with anyio.create_task_group() as tasks:
        resources = EngineResources(stores, PhoneLines(open_phone, tasks))
        with bound(resources):
            janitor = Janitor(resources)
            await janitor.register_host()
            _launch(stores)
            try:
                if not stores.database.is_sqlite:
                    await DBOS.register_queue_async(
                        queue_of(resources.host_id),
                        partition_concurrency=1,
                        polling_interval_sec=settings.dispatch_poll_s,
                    )
                async with anyio.create_task_group() as duties:
                    duties.start_soon(PhoneWatch(resources).run)
                    duties.start_soon(janitor.run)
                    duties.start_soon(HookSender(resources).run)
                    duties.start_soon(Dispatcher(resources).run)
                    try:
                        yield resources
                    finally:
                        resources.closing.set()
                        duties.cancel_scope.cancel()
            finally:
                # Not before every duty has ended: one that was cancelled in mid-step still asks the engine.
                tasks.cancel_scope.cancel()
                with anyio.CancelScope(shield=True):
                    await to_thread.run_sync(_destroy)


def _destroy() -> None:
    DBOS.destroy(workflow_completion_timeout_sec=0)


def _is_told(record: logging.LogRecord) -> bool:
    """Leave out that runs are put down when the service stops: they are taken up at the next start."""
    return not record.getMessage().startswith("Asyncio task cancelled for workflow or step")


def _launch(stores: Stores) -> None:
    settings = stores.settings
    # The engine's own handler would write beside ours, and unstructured.
    engine_log = logging.getLogger("dbos")
    config: DBOSConfig = {
        "name": "pocketbuild",
        "system_database_url": stores.database.url.render_as_string(hide_password=False),
        "application_version": STORED_FORMAT,
        "executor_id": settings.lab.host_id,
        "serializer": DBOSPortableJSONSerializer(),
        "log_level": "WARNING",
        "notification_listener_polling_interval_sec": min(1.0, settings.dispatch_poll_s),
    }
    DBOS(config=config)
    engine_log.handlers.clear()
    engine_log.propagate = True
    engine_log.addFilter(_is_told)
    DBOS.listen_queues([] if stores.database.is_sqlite else [queue_of(settings.lab.host_id)])
    DBOS.launch()
    engine_log.handlers.clear()
