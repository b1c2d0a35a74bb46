"""Opens the database: one SQLite file by default, Postgres for several hosts; the same code on top.

The engine of the durable workflows keeps its own tables in the same database. A commit is on the
disk when it returns (SQLite in WAL with `synchronous=full`, Postgres by its own default), so what a
caller was told survives a power cut as well as a `kill -9`. It costs one fsync a writing
transaction, a fraction of a millisecond on an SSD.
"""

import secrets
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

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
            self.engine = _open_sqlite(self.url, "begin immediate", "pragma synchronous=full")
            self._reading = _open_sqlite(self.url, "begin", "pragma query_only=on")
        else:
            self.url = self.url.set(drivername="postgresql+psycopg")
            self.engine = sa.create_engine(self.url, pool_pre_ping=True, pool_size=8, max_overflow=8)
            self._reading = self.engine.execution_options(postgresql_readonly=True)
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
        return await to_thread.run_sync(_transaction, self.engine, work, limiter=self._limiter)

    async def read(self, work: Callable[[sa.Connection], T]) -> T:
        """Run `work` on one consistent state that it may not change.

        On SQLite it neither waits for a writer nor holds one up.
        """
        return await to_thread.run_sync(_transaction, self._reading, work, limiter=self._limiter)

    async def migrate(self) -> int:
        """Bring the schema up to date; give the version that was found."""
        return await self.run(migrate)

    async def lab_id(self) -> str:
        """Give the random name of this database; made once, when it is first asked for."""
        return await self.run(_lab_id)

    def close(self) -> None:
        """Close every connection."""
        self.engine.dispose()
        self._reading.dispose()


def _transaction(engine: sa.Engine, work: Callable[[sa.Connection], T]) -> T:
    with engine.begin() as connection:
        return work(connection)


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


def _open_sqlite(url: sa.URL, begin: str, pragma: str) -> sa.Engine:
    options = {"timeout": BUSY_MS / 1000, "check_same_thread": False}
    engine = sa.create_engine(url, connect_args=options)

    def set_up(raw: sqlite3.Connection, _record: object) -> None:
        raw.isolation_level = None
        raw.execute(f"pragma busy_timeout={BUSY_MS}")
        raw.execute(pragma)

    sa.event.listen(engine, "connect", set_up)
    sa.event.listen(engine, "begin", lambda connection: connection.exec_driver_sql(begin))
    return engine
