"""`pocketbuild token`: make, list and revoke access tokens. Works on the data folder itself."""

import secrets
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import anyio
import click
import sqlalchemy as sa

from orchestrator.access import Permission, new_token
from orchestrator.app import database_url
from orchestrator.cli import terminal
from orchestrator.errors import NotFound
from orchestrator.settings import Settings, load_settings
from orchestrator.store import tokens
from orchestrator.store.database import Database
from orchestrator.store.records import TokenRow

T = TypeVar("T")
DEFAULT_SCOPES = (Permission.READ, Permission.WRITE, Permission.CANCEL)
DAY_S = 86_400


@click.group()
@click.option("--config", type=click.Path(path_type=Path), help="Another settings file.")
@click.option("--data-dir", type=click.Path(path_type=Path), help="Another data folder.")
@click.pass_context
def token(context: click.Context, config: Path | None, data_dir: Path | None) -> None:
    """Make, list and revoke access tokens of the service."""
    with terminal.told_faults():
        context.obj = load_settings(config, data_dir=data_dir).settings


@token.command()
@click.argument("owner")
@click.option("--scope", "scopes", multiple=True, type=click.Choice([each.value for each in Permission]),
              help="What it may do; may be given several times.")  # fmt: skip
@click.option("--days", type=click.FloatRange(min=0, min_open=True),
              help="After how many days it expires; never by default.")  # fmt: skip
@click.option("--note", default="", help="What it is for.")
@click.pass_obj
def create(settings: Settings, owner: str, scopes: tuple[str, ...], days: float | None, note: str) -> None:
    """Make a token for OWNER and print it; it can not be shown again."""
    secret, digest = new_token()
    now_s = time.time()
    row = TokenRow(
        id=secrets.token_hex(4),
        owner=owner,
        note=note,
        sha256=digest,
        scopes=sorted(scopes or DEFAULT_SCOPES),
        created_s=now_s,
        expires_s=None if days is None else now_s + days * DAY_S,
        revoked_s=None,
    )
    _in_database(settings, lambda connection: tokens.add(connection, row))
    terminal.say(f"token {row.id} for {owner}: {', '.join(row.scopes)}")
    click.echo(secret)


@token.command(name="list")
@click.pass_obj
def list_tokens(settings: Settings) -> None:
    """List all tokens, without their secrets."""
    rows = _in_database(settings, tokens.list_all)
    if not rows:
        terminal.say("there are no tokens; make one with `pocketbuild token create OWNER`")
    for row in rows:
        state = "revoked" if row.revoked_s else _until(row.expires_s)
        click.echo(f"{row.id}  {row.owner}  {','.join(row.scopes)}  {state}  {row.note}".rstrip())


@token.command()
@click.argument("token_id")
@click.pass_obj
def revoke(settings: Settings, token_id: str) -> None:
    """End a token at once."""
    with terminal.told_faults():
        if not _in_database(settings, lambda c: tokens.revoke(c, token_id, time.time())):
            raise NotFound(f"there is no valid token {token_id}", hint="See `pocketbuild token list`.")
    terminal.say(f"token {token_id} is revoked")


def _in_database(settings: Settings, work: Callable[[sa.Connection], T]) -> T:
    async def run() -> T:
        database = Database(database_url(settings))
        try:
            await database.migrate()
            return await database.run(work)
        finally:
            database.close()

    with terminal.told_faults():
        return anyio.run(run)


def _until(expires_s: float | None) -> str:
    if expires_s is None:
        return "for ever"
    state = "until" if expires_s > time.time() else "expired"
    return f"{state} {datetime.fromtimestamp(expires_s, UTC):%Y-%m-%d}"
