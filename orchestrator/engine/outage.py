"""What a host does while its database does not answer: wait, and go on where it was."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio
import structlog
from obstore.exceptions import BaseError as StoreError
from sqlalchemy.exc import DBAPIError

log = structlog.get_logger(__name__)
T = TypeVar("T")
PAUSE_S = 0.5


async def outlast_outages(duty: Callable[[], Awaitable[T]]) -> T:
    """Do something that is safe to do again, for as often as the database fails it."""
    while True:
        try:
            return await duty()
        except* DBAPIError as faults:
            log.warning("database.failed", fault=str(faults.exceptions[0]).partition("\n")[0][:300])
        await anyio.sleep(PAUSE_S)


def is_outage(fault: BaseException) -> bool:
    """Say whether a fault, or all of a group, comes from database, disk or object store and so may pass."""
    if isinstance(fault, BaseExceptionGroup):
        return all(is_outage(each) for each in fault.exceptions)
    return isinstance(fault, DBAPIError | StoreError | OSError)
