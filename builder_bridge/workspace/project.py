"""Reads what the preflight looks at: build scripts, settings and version catalogues of a snapshot."""

from builder_bridge.workspace.preflight import TEXT_NAMES
from builder_bridge.workspace.scan import read_chunks
from builder_bridge.workspace.snapshot import Snapshot

MAX_TEXT_BYTES = 512 << 10
MAX_TEXTS = 2_000


def project_texts(snapshot: Snapshot) -> dict[str, str]:
    """Give the texts by path; very long ones and those beyond `MAX_TEXTS` are passed over. Blocking.

    Raises `WorkspaceFault` where a file changed since the snapshot was taken.
    """
    wanted = [file for file in snapshot.files if file.path.rpartition("/")[2] in TEXT_NAMES]
    return {
        file.path: b"".join(read_chunks(snapshot, file)).decode("utf-8", "replace")
        for file in wanted[:MAX_TEXTS]
        if file.size_bytes <= MAX_TEXT_BYTES
    }
