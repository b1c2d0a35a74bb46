"""Phones and hosts in the database. Every function works inside a transaction of its caller."""

from typing import Any

import sqlalchemy as sa

from orchestrator.settings import PhoneSettings
from orchestrator.store.records import HostRow, PhoneRow, rows
from orchestrator.store.tables import hosts, phones


def list_all(connection: sa.Connection) -> list[PhoneRow]:
    """Give every phone of every host."""
    return rows(PhoneRow, connection.execute(sa.select(phones).order_by(phones.c.address)))


def get(connection: sa.Connection, name: str) -> PhoneRow | None:
    """Give the phone of an address or a serial, or None."""
    named = sa.or_(phones.c.address == name, phones.c.serial == name)
    found = rows(PhoneRow, connection.execute(sa.select(phones).where(named).order_by(phones.c.address)))
    return found[0] if found else None


def of_host(connection: sa.Connection, host: str) -> list[PhoneRow]:
    """Give the phones of a host."""
    return rows(PhoneRow, connection.execute(sa.select(phones).where(phones.c.host == host)))


def add(connection: sa.Connection, host: str, wanted: PhoneSettings) -> None:
    """Add a phone to a host, or change its pool and route; its lease stays as it is.

    What was known of its state and health is forgotten, so that it is probed before it gets another build.
    """
    known = connection.execute(sa.select(phones.c.address).where(phones.c.address == wanted.address)).first()
    if known is None:
        connection.execute(
            phones.insert().values(
                address=wanted.address, host=host, pool=wanted.pool, route=wanted.route, state="unknown"
            )
        )
    else:
        known_now = {"host": host, "pool": wanted.pool, "route": wanted.route, "state": "unknown"}
        update(connection, wanted.address, **known_now, health=None)


def update(connection: sa.Connection, address: str, **values: Any) -> None:
    """Change what is known of a phone."""
    connection.execute(phones.update().where(phones.c.address == address).values(**values))


def remove(connection: sa.Connection, address: str) -> bool:
    """Forget a phone that no build holds; say whether it is gone."""
    free = sa.and_(phones.c.address == address, phones.c.build_id.is_(None))
    return connection.execute(phones.delete().where(free)).rowcount > 0


def list_hosts(connection: sa.Connection) -> list[HostRow]:
    """Give every host that ever served this database."""
    return rows(HostRow, connection.execute(sa.select(hosts).order_by(hosts.c.id)))


def get_host(connection: sa.Connection, host_id: str) -> HostRow | None:
    """Give a host, or None."""
    found = rows(HostRow, connection.execute(sa.select(hosts).where(hosts.c.id == host_id)))
    return found[0] if found else None


def register_host(
    connection: sa.Connection, host_id: str, process_id: str, url: str | None, now_s: float
) -> None:
    """Write that this process is now the host of this name."""
    values = {"process_id": process_id, "url": url, "heartbeat_s": now_s, "lost_s": None}
    if get_host(connection, host_id) is None:
        connection.execute(hosts.insert().values(id=host_id, **values))
    else:
        connection.execute(hosts.update().where(hosts.c.id == host_id).values(**values))


def beat(connection: sa.Connection, host_id: str, process_id: str, now_s: float) -> bool:
    """Say that this host lives; False where another process has become it."""
    mine = sa.and_(hosts.c.id == host_id, hosts.c.process_id == process_id)
    return connection.execute(hosts.update().where(mine).values(heartbeat_s=now_s, lost_s=None)).rowcount > 0
