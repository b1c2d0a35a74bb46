"""The lease: which build holds which phone. It is a column, taken and given back in transactions.

A phone is held from before the first byte goes to it until the transaction that ends the build, so
no crash in between frees it early or leaves it held.
"""

from typing import Any

import sqlalchemy as sa

from orchestrator.engine.placement import Placing, place, recent_projects
from orchestrator.settings import PhoneCare
from orchestrator.store import builds as build_store
from orchestrator.store.records import BuildRow, Phase, PhoneRow, rows
from orchestrator.store.tables import builds, phones

_ONE_DISPATCHER = 7045282


def take(connection: sa.Connection, care: PhoneCare, now_s: float) -> Placing:
    """Give free phones to waiting builds in one transaction; say who got what and why others wait.

    On Postgres an advisory lock makes hosts decide one after the other; SQLite does so by itself.
    """
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"select pg_advisory_xact_lock({_ONE_DISPATCHER})")
    waiting = waiting_builds(connection)
    running = sa.select(builds.c.owner, sa.func.count()).where(builds.c.state == Phase.RUNNING.value)
    counts = connection.execute(running.group_by(builds.c.owner)).all()
    under_way = {row[0]: row[1] for row in counts}
    known = {phone.address: phone for phone in all_phones(connection)}
    placing = place(waiting, list(known.values()), under_way, care, now_s)
    by_id = {build.id: build for build in waiting}
    for placement in placing.placements:
        _hold(connection, by_id[placement.build_id], known[placement.address], now_s)
    for build_id, reason in placing.reasons.items():
        if by_id[build_id].reason != reason:
            connection.execute(builds.update().where(builds.c.id == build_id).values(reason=reason))
    return placing


def is_any_waiting(connection: sa.Connection) -> bool:
    """Say whether a build waits for a phone; where none does, nobody need be held up by a decision."""
    return connection.execute(_waiting_query().limit(1)).first() is not None


def release(connection: sa.Connection, build_id: str) -> None:
    """Give back whatever phone a build holds."""
    held = phones.update().where(phones.c.build_id == build_id)
    connection.execute(held.values(build_id=None, leased_s=None))


def fence(connection: sa.Connection, build_id: str, run_id: str) -> None:
    """Take a phone from a build whose run may still be alive there: it is stopped before the next lease."""
    held = phones.update().where(phones.c.build_id == build_id)
    connection.execute(held.values(build_id=None, leased_s=None, stop_run=run_id))


def unfence(connection: sa.Connection, address: str, run_id: str) -> None:
    """Free a phone on which the fenced run is known to be over."""
    mine = sa.and_(phones.c.address == address, phones.c.stop_run == run_id)
    connection.execute(phones.update().where(mine).values(stop_run=None))


def held_by_host(connection: sa.Connection, host: str) -> list[tuple[PhoneRow, BuildRow]]:
    """Give the leased phones of a host, each with the build that holds it."""
    query = sa.select(phones).where(phones.c.host == host, phones.c.build_id.is_not(None))
    return [
        (phone, build_store.must_get(connection, str(phone.build_id)))
        for phone in rows(PhoneRow, connection.execute(query))
    ]


def all_phones(connection: sa.Connection) -> list[PhoneRow]:
    """Give every phone of every host."""
    return rows(PhoneRow, connection.execute(sa.select(phones).order_by(phones.c.address)))


def waiting_builds(connection: sa.Connection) -> list[BuildRow]:
    """Give every build that waits for a phone."""
    return rows(BuildRow, connection.execute(_waiting_query()))


def _waiting_query() -> sa.Select[Any]:
    return sa.select(builds).where(builds.c.state == Phase.QUEUED.value, builds.c.cancel_asked == 0)


def _hold(connection: sa.Connection, build: BuildRow, phone: PhoneRow, now_s: float) -> None:
    free = sa.and_(phones.c.address == phone.address, phones.c.build_id.is_(None))
    held = connection.execute(
        phones.update()
        .where(free)
        .values(build_id=build.id, leased_s=now_s, last_project=recent_projects(phone, build))
        .returning(phones.c.host)
    ).first()
    if held is None:
        raise RuntimeError(f"phone {phone.address} was leased outside of a dispatching transaction")
    build_store.begin_run(connection, build, phone.address, held[0], now_s)
