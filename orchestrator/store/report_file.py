"""The reports of one run as one file: a zip, so that many small texts cost little."""

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path


def write_reports(path: Path, reports: Mapping[str, bytes]) -> None:
    """Write reports by their names into a new file."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sorted(reports.items()):
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)


def read_report_file(content: bytes) -> dict[str, bytes]:
    """Give the reports of a file that `write_reports` wrote, by their names."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}
