"""Reads the archive in which a phone gives what a build's tests, lint and Gradle reported.

The archive is a tar made by the phone, and like all that comes from there it is a stranger's: paths
that may lead outside, entries that are no files and more than the limits are refused.
"""

import io
import tarfile
from collections.abc import Mapping

from builder_bridge.errors import ProtocolFault
from builder_bridge.outcome import is_inside

MAX_REPORTS = 500
MAX_REPORT_BYTES = 8 << 20
MAX_ARCHIVE_BYTES = 20 << 20
"""The phone sends at most 16 MB of reports; an entry's head and filling take up to 2 KB more."""


def read_archive(archive: bytes) -> Mapping[str, bytes]:
    """Give the reports in an archive by their paths in the workspace, sorted by path.

    Raises `ProtocolFault` for what is no such archive.
    """
    reports: dict[str, bytes] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as source:
            for entry in source:
                path = entry.name.removeprefix("./")
                if not entry.isreg() or not is_inside(path):
                    raise ProtocolFault(
                        f"The phone's reports hold {entry.name[:200]!r}, which may lie outside."
                    )
                if entry.size > MAX_REPORT_BYTES or len(reports) >= MAX_REPORTS:
                    raise ProtocolFault(f"The phone's reports are more than {MAX_REPORTS}, or too long.")
                content = source.extractfile(entry)
                data = b"" if content is None else content.read()
                if len(data) != entry.size:
                    raise ProtocolFault(f"The phone's report {path[:200]!r} is cut.")
                reports[path] = data
    except (tarfile.TarError, EOFError, ValueError, OSError) as error:
        raise ProtocolFault(f"The phone's reports are no archive: {error}.") from error
    return dict(sorted(reports.items()))
