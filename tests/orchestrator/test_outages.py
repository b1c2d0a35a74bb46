"""What the service outlives: a disk, an object store or a database that fails for a while."""

import os
from pathlib import Path

import pytest
import sqlalchemy as sa
from obstore.exceptions import BaseError as StoreError
from sqlalchemy.exc import OperationalError
from structlog.testing import capture_logs

from builder_bridge.workspace.scan import scan
from orchestrator.engine.outage import is_outage
from orchestrator.store.tables import webhooks
from orchestrator.store.workspaces import WorkspaceStore
from tests.orchestrator.conftest import Start
from tests.orchestrator.test_builds import ended, submit
from tests.orchestrator.test_operation import receiver
from tests.orchestrator.waiting import eventually
from tests.orchestrator.workspaces import make_workspace

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("fault", "passes"),
    [
        (OperationalError("select 1", {}, Exception("gone")), True),
        (OSError("disk"), True),
        (StoreError("the bucket does not answer"), True),
        (ExceptionGroup("both", [OSError("disk"), StoreError("bucket")]), True),
        (ExceptionGroup("both", [OSError("disk"), ValueError("defect")]), False),
        (ValueError("defect"), False),
    ],
)
async def test_faults_of_what_keeps_things_may_pass_and_defects_do_not(
    fault: Exception, passes: bool
) -> None:
    assert is_outage(fault) is passes


async def test_a_sweep_passes_over_what_goes_away_meanwhile(tmp_path: Path) -> None:
    store = WorkspaceStore(tmp_path)
    for folder in ("trees", "incoming", "hashes", "blobs"):
        # A name whose status cannot be had, like that of an entry that was taken away since it was listed.
        (tmp_path / folder / "gone").symlink_to("nowhere")
    store.sweep_incoming(0)
    assert store.fingerprints() == []
    assert store.remove_unused_blobs(0, dry_run=False) == 0


def test_an_idle_workspace_that_somebody_takes_before_it_goes_stays(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "a.txt").write_text("a")
    store = WorkspaceStore(tmp_path / "kept")
    snapshot = store.adopt(scan(source))
    os.utime(tmp_path / "kept/trees" / snapshot.fingerprint, (1, 1))
    (chosen,) = store.fingerprints()
    store.adopt(scan(source))
    assert not store.remove(*chosen)
    assert (store.get(chosen[0], "w", "p").root / "a.txt").read_text() == "a"
    (chosen,) = store.fingerprints()
    assert store.remove(*chosen)
    assert not store.take(chosen[0])
    assert store.fingerprints() == []
    assert (store.adopt(scan(source)).root / "a.txt").read_text() == "a"


async def test_a_sweep_that_fails_does_not_end_the_service(start: Start, projects: Path) -> None:
    with capture_logs() as events:
        async with start("p1", retention={"every_s": 0.05}) as running:
            hashes = running.settings.data_dir / "workspaces/hashes"
            hashes.rmdir()
            hashes.write_text("a file stands where the folder was")

            async def has_failed_twice() -> bool:
                return [event["event"] for event in events].count("retention.failed") >= 2

            await eventually(has_failed_twice)
            hashes.unlink()
            hashes.mkdir()
            build = await submit(running, make_workspace(projects / "w"))
            assert (await ended(running, build["id"]))["outcome"] == "succeeded"


async def test_a_database_that_fails_while_an_end_is_told_ends_nothing(start: Start, projects: Path) -> None:
    async with receiver([500]) as (url, heard):
        with capture_logs() as events:
            async with start("p1", webhooks={"urls": [url], "secret": "s", "allow_private": True}) as running:
                build = await submit(running, make_workspace(projects / "w"))
                await ended(running, build["id"])
                database = running.service.stores.database

                async def ask(statement: str) -> None:
                    await database.run(lambda c: c.execute(sa.text(statement)))

                async def is_told() -> bool:
                    return len(heard) >= 1

                await eventually(is_told)
                await ask("alter table builds rename to builds_away")

                async def has_failed_often() -> bool:
                    await database.run(lambda c: c.execute(webhooks.update().values(due_s=0.0)))
                    running.service.stores.bells.ring("builds")
                    return [event["event"] for event in events].count("database.failed") >= 6

                await eventually(has_failed_often)
                await ask("alter table builds_away rename to builds")

                async def is_told_again() -> bool:
                    return len(heard) >= 2

                await eventually(is_told_again)
