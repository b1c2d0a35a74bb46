"""The list of files of which a workspace is put together, as a stranger sends it."""

import os
from dataclasses import dataclass
from pathlib import PurePosixPath

from orchestrator.errors import Unprocessable

SHA256_HEX = 64
MAX_NAME_BYTES = 255
MAX_PATH_BYTES = 2048
"""What a disk takes of one name, and what is left of its limit on paths below the data folder."""


@dataclass(frozen=True, slots=True)
class ManifestFile:
    """A file of a workspace that is put together from blobs."""

    path: str
    sha256: str
    is_executable: bool = False


def is_sha256(text: str) -> bool:
    """Say whether a text is a sha256 in lower-case hexadecimal."""
    return len(text) == SHA256_HEX and set(text) <= set("0123456789abcdef")


def checked(file: ManifestFile) -> ManifestFile:
    """Give an entry back; raises `Unprocessable` for a path that leaves the workspace or fits no disk."""
    path = PurePosixPath(file.path)
    bad = (
        path.is_absolute()
        or not path.parts
        or ".." in path.parts
        or "\0" in file.path
        or "\\" in file.path
        or str(path) != file.path
        or max(len(os.fsencode(part)) for part in path.parts) > MAX_NAME_BYTES
        or len(os.fsencode(file.path)) > MAX_PATH_BYTES
    )
    if bad or not is_sha256(file.sha256):
        raise Unprocessable(
            f"{file.path!r} is no path inside a workspace, or its sha256 is malformed", code="bad_manifest"
        )
    return file
