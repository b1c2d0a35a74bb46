"""Workspaces between hosts of a lab: the host that took one in shares it, the phone's host gets it.

What is shared is an archive in the artifact store, which all hosts of a lab have in common.
"""

from pathlib import Path

from anyio import to_thread

from builder_bridge.workspace.archive import unpack, write_archive
from builder_bridge.workspace.ignore import ScanRules
from builder_bridge.workspace.scan import scan
from builder_bridge.workspace.snapshot import Snapshot
from orchestrator.engine.resources import Stores
from orchestrator.errors import Unprocessable
from orchestrator.store.records import BuildRow


async def share(stores: Stores, snapshot: Snapshot) -> None:
    """Let other hosts have a workspace; on a single host there is nobody to share it with."""
    if stores.database.is_sqlite:
        return
    with stores.workspaces.incoming() as folder:
        archive = await to_thread.run_sync(write_archive, snapshot, folder / "workspace.zip")
        await stores.artifacts.put_workspace(archive.path, snapshot.fingerprint)


async def get_shared(stores: Stores, build: BuildRow) -> Snapshot:
    """Give a build's workspace, from another host where this one has not seen it."""
    if not await to_thread.run_sync(stores.workspaces.take, build.fingerprint):
        with stores.workspaces.incoming() as folder:
            archive = folder / "workspace.zip"
            await stores.artifacts.get_workspace(build.fingerprint, archive)
            await to_thread.run_sync(_adopt, stores, archive, folder / "tree", build.fingerprint)
    place = str(build.spec["place"])
    return await to_thread.run_sync(stores.workspaces.get, build.fingerprint, build.project, place)


def _adopt(stores: Stores, archive: Path, folder: Path, fingerprint: str) -> None:
    unpack(archive, folder)
    snapshot = scan(folder, ScanRules(keep_local_properties=True))
    if snapshot.fingerprint != fingerprint:
        raise Unprocessable(f"the shared workspace {fingerprint} came as {snapshot.fingerprint}")
    stores.workspaces.adopt(snapshot)
