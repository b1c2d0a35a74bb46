"""A running service over fake phones, one at a time in each test process."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from orchestrator.app import create_app
from orchestrator.routes.context import Service
from orchestrator.serving import serving
from orchestrator.settings import Settings, load_settings
from tests.orchestrator.fakes import folder_phones


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@dataclass(frozen=True, slots=True)
class Running:
    """A service in this process, and a client of its API."""

    url: str
    http: httpx.AsyncClient
    service: Service
    settings: Settings
    phones: Path


Start = Callable[..., AbstractAsyncContextManager[Running]]


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """Give a function that runs a service with these settings and phones on one data folder."""
    phones = tmp_path / "phones"
    (tmp_path / "projects").mkdir()

    @asynccontextmanager
    async def running(*names: str, **chosen: Any) -> AsyncIterator[Running]:
        for name in names:
            (phones / name).mkdir(parents=True, exist_ok=True)
        values = {
            "data_dir": tmp_path / "data",
            "dispatch_poll_s": 0.1,
            "workspace_roots": [str(tmp_path / "projects")],
            "phones": [{"address": name} for name in names],
            **chosen,
        }
        settings = load_settings(**values).settings
        app = create_app(settings, folder_phones(phones))
        async with serving(app, "127.0.0.1", 0) as url, httpx.AsyncClient(base_url=url, timeout=60) as http:
            yield Running(url, http, app.state.service, settings, phones)

    return running


@pytest.fixture
def projects(tmp_path: Path, start: Start) -> Path:
    """The one folder from which the service takes workspaces."""
    return tmp_path / "projects"
