"""Opens the database: one SQLite file by default, Postgres for several hosts; the same code on top.

The engine of the durable workflows keeps its own tables in the same database.
"""

import secrets
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import anyio
import sqlalchemy as sa
from anyio import to_thread

from orchestrator.store.migrations import migrate
from orchestrator.store.tables import lab

T = TypeVar("T")
BUSY_MS = 20_000


def sqlite_url(data_dir: Path) -> str:
    """Say where the embedded database of a data folder lies."""
    return f"sqlite:///{data_dir / 'pocketbuild.db'}"


class Database:
    """Transactions on one database, run in worker threads so that the loop never waits for a disk."""

    def __init__(self, url: str) -> None:
        self.url = sa.make_url(url)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        if self.is_sqlite:
            _prepare_file(Path(self.url.database or ""))
            options: dict[str, Any] = {
                "connect_args": {"timeout": BUSY_MS / 1000, "check_same_thread": False}
            }
        else:
            self.url = self.url.set(drivername="postgresql+psycopg")
            options = {"pool_size": 8, "max_overflow": 8}
        self.engine = sa.create_engine(self.url, pool_pre_ping=True, **options)
        if self.is_sqlite:
            sa.event.listen(self.engine, "connect", _set_pragmas)
            sa.event.listen(self.engine, "begin", _begin_immediate)
        self._limiter = anyio.CapacityLimiter(8)

    @contextmanager
    def begin(self) -> Iterator[sa.Connection]:
        """Open a transaction that commits at the end of the block, for code already in a thread."""
        with self.engine.begin() as connection:
            yield connection

    async def run(self, work: Callable[[sa.Connection], T]) -> T:
        """Run `work` in one transaction in a worker thread and give what it returned.

        `work` must be safe to run again: a cancelled caller does not stop a transaction under way.
        """

        def transaction() -> T:
            with self.engine.begin() as connection:
                return work(connection)

        return await to_thread.run_sync(transaction, limiter=self._limiter)

    async def migrate(self) -> int:
        """Bring the schema up to date; give the version that was found."""
        return await self.run(migrate)

    async def lab_id(self) -> str:
        """Give the random name of this database; made once, when it is first asked for."""
        return await self.run(_lab_id)

    def close(self) -> None:
        """Close every connection."""
        self.engine.dispose()


def _lab_id(connection: sa.Connection) -> str:
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("select pg_advisory_xact_lock(7045283)")
    found = connection.execute(sa.select(lab.c.id)).scalar()
    if found is None:
        found = secrets.token_hex(8)
        connection.execute(lab.insert().values(id=found))
    return str(found)


def _prepare_file(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    raw = sqlite3.connect(path)
    try:
        raw.execute("pragma journal_mode=wal")
    finally:
        raw.close()


def _set_pragmas(raw: sqlite3.Connection, _record: object) -> None:
    raw.isolation_level = None
    raw.execute(f"pragma busy_timeout={BUSY_MS}")


def _begin_immediate(connection: sa.Connection) -> None:
    connection.exec_driver_sql("begin immediate")
