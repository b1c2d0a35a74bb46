"""Finds the service that a command works with, or runs one for as long as the command takes.

Every command goes through the HTTP API. If a service holds the data folder, it is asked; otherwise
one is started in this process on a free loopback port. Builds outlive it: the next service on the
same folder takes them up.
"""

import json
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio

from orchestrator.client import ApiClient, open_client
from orchestrator.errors import DataFolderTaken, ServiceUnreachable
from orchestrator.settings import LoadedSettings, Settings, load_settings

FIND_S = 15.0


def load_quietly(config: Path | None, **chosen: Any) -> LoadedSettings:
    """Load settings for a command, with logs of warnings only where the user did not say more.

    Logs of a service that lives only as long as the command would talk over the command.
    """
    loaded = load_settings(config, **chosen)
    quiet = {} if "log_level" in loaded.sources else {"log_level": "warning"}
    return load_settings(config, **chosen, **quiet)


@asynccontextmanager
async def service(settings: Settings) -> AsyncIterator[ApiClient]:
    """Give a client of the right service for the block.

    Raises `ServiceUnreachable` where one holds the data folder and does not answer.
    """
    if settings.service_url is not None:
        async with open_client(settings.service_url, token_of(settings)) as client:
            yield client
        return
    running = running_service(settings.data_dir)
    if running is not None and await _answers(running):
        async with open_client(running, token_of(settings)) as client:
            yield client
        return
    try:
        async with own_service(settings) as url, open_client(url, token_of(settings)) as client:
            yield client
    except DataFolderTaken:
        url = await _find(settings)
        async with open_client(url, token_of(settings)) as client:
            yield client


@asynccontextmanager
async def own_service(settings: Settings, bind: str = "127.0.0.1", port: int = 0) -> AsyncIterator[str]:
    """Run a service in this process for the block; give its URL."""
    from orchestrator.app import create_app
    from orchestrator.engine.bridges import opening_phones
    from orchestrator.serving import serving

    async with opening_phones() as open_phone, serving(create_app(settings, open_phone), bind, port) as url:
        with published(settings.data_dir, url):
            yield url


@contextmanager
def published(data_dir: Path, url: str) -> Iterator[None]:
    """Let other commands find the service of this data folder for the block."""
    note = data_dir / "service.json"
    partial = data_dir / "service.json.part"
    partial.write_text(json.dumps({"url": url, "pid": os.getpid()}))
    partial.replace(note)
    try:
        yield
    finally:
        note.unlink(missing_ok=True)


def running_service(data_dir: Path) -> str | None:
    """Give the URL that a service of this folder left, be it still alive or not."""
    try:
        return str(json.loads((data_dir / "service.json").read_text())["url"])
    except (FileNotFoundError, ValueError, KeyError):
        return None


def token_of(settings: Settings) -> str | None:
    """Give the token that commands send, if one is set."""
    return None if settings.token is None else settings.token.get_secret_value()


async def _answers(url: str) -> bool:
    import httpx

    try:
        async with httpx.AsyncClient(trust_env=False, timeout=3.0) as http:
            return (await http.get(f"{url}/healthz")).is_success
    except httpx.TransportError:
        return False


async def _find(settings: Settings) -> str:
    with anyio.move_on_after(FIND_S):
        while True:
            url = running_service(settings.data_dir)
            if url is not None and await _answers(url):
                return url
            await anyio.sleep(0.1)
    raise ServiceUnreachable(
        f"a process holds {settings.data_dir} and no service answers for it",
        hint=f"Look which process holds {settings.data_dir}/{settings.lab.host_id}.lock, and stop it.",
    )
