"""`pocketbuild serve`: run the service until it is told to stop."""

import gc
import signal
from pathlib import Path
from typing import Any

import anyio
import click
import structlog

from orchestrator.cli import connect, terminal
from orchestrator.cli.terminal import say
from orchestrator.errors import SettingsFault
from orchestrator.settings import Settings, load_settings

log = structlog.get_logger()


@click.command()
@click.option("--bind", metavar="ADDRESS", help="Where to listen; loopback by default.")
@click.option("--port", type=int, help="Which port; 0 takes a free one.")
@click.option("--data-dir", type=click.Path(path_type=Path), help="Where everything is kept.")
@click.option("--device", "devices", multiple=True, metavar="SERIAL|HOST:PORT", help="A phone to build on.")
@click.option("--root", "roots", multiple=True, type=click.Path(path_type=Path),
              help="A folder from which workspaces may be taken.")  # fmt: skip
@click.option("--log-format", type=click.Choice(["json", "console"]))
@click.option("--config", type=click.Path(path_type=Path), help="Another settings file.")
def serve(config: Path | None, devices: tuple[str, ...], roots: tuple[Path, ...], **chosen: Any) -> None:
    """Run the service; builds on phones go on when it stops, and are taken up when it starts."""
    with terminal.told_faults():
        settings = load_settings(config, **chosen).settings
        if devices or roots:
            phones = [*settings.phones, *({"address": device} for device in devices)]
            all_roots = [*settings.workspace_roots, *roots]
            settings = load_settings(config, **chosen, phones=phones, workspace_roots=all_roots).settings
    terminal.run_async(_serve, settings)


async def _serve(settings: Settings) -> int:
    # Loading makes objects that stay; to look through them again and again is a sixth of the start.
    gc.disable()
    from orchestrator.observe import set_up_logs

    set_up_logs(settings)
    await check_access(settings)
    async with terminal.one_fault(), connect.own_service(settings, settings.bind, settings.port) as url:
        gc.freeze()
        gc.enable()
        say(f"pocketbuild serves {settings.data_dir} at {url}")
        log.info("service.started", url=url, host=settings.lab.host_id)
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async for received in signals:
                log.info("service.stop_asked", signal=signal.Signals(received).name)
                break
    return terminal.DONE


async def check_access(settings: Settings) -> None:
    """Refuse a bind that others can reach while no token exists that could keep them out."""
    from orchestrator.access import has_tokens
    from orchestrator.app import database_url
    from orchestrator.store.database import Database

    if settings.is_loopback and settings.require_token is not True:
        return
    if settings.require_token is False:
        raise SettingsFault(f"bind {settings.bind} can be reached by others, and require_token is false")
    database = Database(database_url(settings))
    try:
        await database.migrate()
        if not await database.run(has_tokens):
            raise SettingsFault(
                f"a service on {settings.bind} wants a token, and none exists",
                hint="Make one first: `pocketbuild token create NAME`.",
            )
    finally:
        database.close()
