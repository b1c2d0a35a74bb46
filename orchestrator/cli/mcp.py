"""`pocketbuild mcp`: an MCP server over standard input and output, for agents on this machine."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import click

from orchestrator.cli import connect, terminal
from orchestrator.settings import Settings


@click.command()
@click.option("--config", type=click.Path(path_type=Path), help="Another settings file.")
def mcp(config: Path | None) -> None:
    """Serve MCP over standard input and output.

    Uses the service of the data folder where one runs, else runs one as long as the client stays.
    """
    with terminal.told_faults():
        settings = connect.load_quietly(config).settings
    terminal.run_async(_serve, settings)


async def _serve(settings: Settings) -> int:
    from orchestrator.app import VERSION
    from orchestrator.mcp import make_mcp_server
    from orchestrator.mcp_doors import OuterDoor
    from orchestrator.observe import set_up_logs

    set_up_logs(settings)
    async with terminal.one_fault(), connect.service(settings) as client:

        @asynccontextmanager
        async def open_door(_context: Any) -> AsyncIterator[OuterDoor]:
            yield OuterDoor(client)

        await make_mcp_server(open_door, VERSION).run_stdio_async()
    return terminal.DONE
