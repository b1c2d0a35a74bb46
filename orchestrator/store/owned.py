"""Who sent which workspace. Each function works inside a transaction of its caller."""

import sqlalchemy as sa

from builder_bridge.workspace.snapshot import Snapshot
from orchestrator.store.tables import workspaces


def own(connection: sa.Connection, owner: str, snapshot: Snapshot, now_s: float) -> None:
    """Note that an owner sent a workspace; sending it again renews the note."""
    mine = sa.and_(workspaces.c.owner == owner, workspaces.c.fingerprint == snapshot.fingerprint)
    connection.execute(workspaces.delete().where(mine))
    connection.execute(
        workspaces.insert().values(
            owner=owner,
            fingerprint=snapshot.fingerprint,
            name=snapshot.name,
            files=len(snapshot.files),
            size_bytes=snapshot.size_bytes,
            used_s=now_s,
        )
    )


def name_of(connection: sa.Connection, owner: str, fingerprint: str) -> str | None:
    """Give the name under which an owner sent a workspace, or None where they never did."""
    mine = sa.and_(workspaces.c.owner == owner, workspaces.c.fingerprint == fingerprint)
    return connection.execute(sa.select(workspaces.c.name).where(mine)).scalar()


def forget(connection: sa.Connection, fingerprint: str, before_s: float) -> None:
    """Forget who sent a workspace that is no longer kept; who sends it again meanwhile is kept."""
    old = sa.and_(workspaces.c.fingerprint == fingerprint, workspaces.c.used_s <= before_s)
    connection.execute(workspaces.delete().where(old))
