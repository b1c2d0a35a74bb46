"""A service is replaced by a newer one while builds wait and run."""

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa

from orchestrator.store.database import Database, sqlite_url
from orchestrator.store.migrations import MIGRATIONS, migrate
from orchestrator.store.tables import metadata
from tests.orchestrator.fakes import starts_of
from tests.orchestrator.postgres import binaries, cluster
from tests.orchestrator.processes import kill, start_service
from tests.orchestrator.workspaces import make_workspace

LINES = [f"line {n}" for n in range(40)]


def take_back(url: str, version: int) -> None:
    """Make a database what the program of an earlier schema would have left, rows and all."""
    database = Database(url)
    try:
        with database.begin() as connection:
            kept = {
                table.name: [dict(row) for row in connection.execute(sa.select(table)).mappings()]
                for table in metadata.sorted_tables
            }
            metadata.drop_all(connection)
            connection.exec_driver_sql("drop table pocketbuild_schema")
            migrate(connection, up_to=version)
            earlier = sa.MetaData()
            earlier.reflect(connection, only=lambda name, _: name in kept)
            for table in earlier.sorted_tables:
                known = set(table.columns.keys())
                rows = [{name: row[name] for name in known & row.keys()} for row in kept[table.name]]
                if rows:
                    connection.execute(table.insert(), rows)
    finally:
        database.close()


def version_of(url: str) -> int:
    database = Database(url)
    try:
        with database.begin() as connection:
            query = sa.text("select max(version) from pocketbuild_schema")
            return int(connection.execute(query).scalar_one())
    finally:
        database.close()


@contextmanager
def database_at(kind: str, data: Path) -> Iterator[str]:
    with cluster() if kind == "postgres" else nullcontext() as server:
        data.mkdir()
        yield sqlite_url(data) if server is None else server.url


def wait_for(condition: Callable[[], bool], at_most_s: float = 300.0) -> None:
    deadline_s = time.monotonic() + at_most_s
    while not condition():
        assert time.monotonic() < deadline_s, "it did not come to pass"
        time.sleep(0.03)


@pytest.mark.parametrize(
    "kind",
    [
        "sqlite",
        pytest.param(
            "postgres",
            marks=[
                pytest.mark.slow,
                pytest.mark.skipif(binaries() is None, reason="PostgreSQL is not installed"),
            ],
        ),
    ],
)
def test_builds_in_flight_survive_the_change_from_the_schema_before(tmp_path: Path, kind: str) -> None:
    phones, data = tmp_path / "phones", tmp_path / "data"
    for phone in ("p1", "p2", "p3"):
        (phones / phone).mkdir(parents=True)
    settings: dict[str, Any] = {
        "phones": [{"address": phone} for phone in ("p1", "p2", "p3")],
        "workspace_roots": [str(tmp_path)],
        "artifacts_url": f"file://{tmp_path}/artifacts",
        "dispatch_poll_s": 0.1,
    }
    (tmp_path / "artifacts").mkdir()
    http = httpx.Client(timeout=60)

    def submit(url: str, name: str, phone: str, **plan: Any) -> str:
        workspace = make_workspace(tmp_path / name, text=name, lines=LINES, **plan)
        body = {"path": str(workspace), "phone": phone}
        return str(http.post(f"{url}/v1/builds", json=body).raise_for_status().json()["id"])

    def build(url: str, build_id: str) -> dict[str, Any]:
        body: dict[str, Any] = http.get(f"{url}/v1/builds/{build_id}").json()
        return body

    with database_at(kind, data) as database_url, http:
        if kind == "postgres":
            settings["database_url"] = database_url
        process, url = start_service(data, phones, **settings)
        wait_for(lambda: bool(http.get(f"{url}/v1/phones").json()["phones"]))
        done = submit(url, "done", "p1")
        wait_for(lambda: build(url, done)["state"] == "finished")
        digest = http.get(f"{url}/v1/builds/{done}/digest").json()
        running = {
            phone: submit(url, f"running-{phone}", phone, held_attempt=1) for phone in ("p1", "p2", "p3")
        }
        wait_for(lambda: all(build(url, each)["stage"] == "gradle" for each in running.values()))
        queued = [submit(url, f"queued-{phone}", phone) for phone in ("p1", "p2")]
        kill(process)

        take_back(database_url, len(MIGRATIONS) - 1)
        assert version_of(database_url) == len(MIGRATIONS) - 1
        (phones / "p1/runs" / f"{running['p1']}-1" / "hold").unlink()  # it goes on while nobody looks

        process, url = start_service(data, phones, **settings)
        try:
            assert version_of(database_url) == len(MIGRATIONS)
            (phones / "p2/runs" / f"{running['p2']}-1" / "hold").unlink()
            http.post(f"{url}/v1/builds/{running['p3']}/cancel").raise_for_status()
            all_ids = [*running.values(), *queued]
            wait_for(lambda: all(build(url, each)["state"] == "finished" for each in all_ids))
            outcomes = {each: build(url, each)["outcome"] for each in all_ids}
            assert outcomes == {**dict.fromkeys(all_ids, "succeeded"), running["p3"]: "cancelled"}
            assert Counter(starts_of(phones)) == Counter(f"{each}-1" for each in (done, *all_ids))
            for each in (done, running["p1"], running["p2"], *queued):
                assert http.get(f"{url}/v1/builds/{each}/log").text.splitlines() == LINES
                apk = http.get(f"{url}/v1/builds/{each}/artifacts/0").content
                assert hashlib.sha256(apk).hexdigest() == build(url, each)["artifacts"][0]["sha256"]
            assert http.get(f"{url}/v1/builds/{done}/digest").json() == digest
            assert not any(phone["is_busy"] for phone in http.get(f"{url}/v1/phones").json()["phones"])
        finally:
            kill(process)
