"""Tokens in the database: only their sha256 is there. Each function works inside a transaction."""

import sqlalchemy as sa

from orchestrator.store.records import TokenRow, rows
from orchestrator.store.tables import tokens


def add(connection: sa.Connection, token: TokenRow) -> None:
    """Keep a new token."""
    connection.execute(
        tokens.insert().values(
            id=token.id,
            owner=token.owner,
            note=token.note,
            sha256=token.sha256,
            scopes=token.scopes,
            created_s=token.created_s,
            expires_s=token.expires_s,
        )
    )


def list_all(connection: sa.Connection) -> list[TokenRow]:
    """Give all tokens, oldest first."""
    return rows(TokenRow, connection.execute(sa.select(tokens).order_by(tokens.c.created_s)))


def valid(connection: sa.Connection, sha256: str, now_s: float) -> TokenRow | None:
    """Give the token of a digest, unless it is unknown, revoked or expired."""
    found = rows(TokenRow, connection.execute(sa.select(tokens).where(tokens.c.sha256 == sha256)))
    return found[0] if found and is_valid(found[0], now_s) else None


def is_valid(token: TokenRow, now_s: float) -> bool:
    """Say whether a token is neither revoked nor expired."""
    return token.revoked_s is None and (token.expires_s is None or token.expires_s > now_s)


def revoke(connection: sa.Connection, token_id: str, now_s: float) -> bool:
    """End a token; say whether there was one to end."""
    alive = sa.and_(tokens.c.id == token_id, tokens.c.revoked_s.is_(None))
    return connection.execute(tokens.update().where(alive).values(revoked_s=now_s)).rowcount > 0
