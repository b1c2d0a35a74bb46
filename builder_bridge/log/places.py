"""Paths as a log on the phone names them → paths in the host's workspace."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import unquote

_DRIVE = re.compile(r"[A-Za-z]:/")
_SLASHED_DRIVE = re.compile(r"/[A-Za-z]:/")
_OWN_COPY = re.compile(r"/.*?/pocketbuild/trees/[0-9a-f]{20}/")
"""Where the runner on a phone keeps its copy of a workspace: `PREFIX/../pocketbuild/trees/PLACE`."""


@dataclass(frozen=True, slots=True)
class PathMap:
    """Which folders on the phone hold the workspace; the first that fits wins.

    Give every name of the folder that a log may use, such as `/data/data/…` and `/data/user/0/…`.
    """

    roots: tuple[PurePosixPath, ...]

    @classmethod
    def of(cls, roots: Sequence[str]) -> "PathMap":
        """Make a map from folder names."""
        return cls(tuple(PurePosixPath(root) for root in roots))

    def to_workspace(self, file: str) -> str | None:
        """Give the path relative to the workspace, or None where the file lies outside of it.

        Percent signs are decoded (Kotlin prints URIs) unless the raw name is the better fit. A
        relative path is taken to be in the workspace already; one that leaves it by `..` is not.
        The copy that our own runner keeps on a phone is known by its form.
        """
        name = decoded(file)
        path = PurePosixPath(name)
        if not path.is_absolute():
            is_inside = ".." not in path.parts and not _DRIVE.match(name)
            return str(path) if is_inside else None
        for root in self.roots:
            if path.is_relative_to(root) and ".." not in path.parts:
                return str(path.relative_to(root))
        own = _OWN_COPY.match(name)
        return str(PurePosixPath(name[own.end() :])) if own and ".." not in path.parts else None


def decoded(file: str) -> str:
    """Give a path that can be opened: percent-encoding undone, slashes forward, no slash before a drive.

    A percent sign that begins no encoded character stays.
    """
    name = (unquote(file, errors="strict") if _is_encoded(file) else file).replace("\\", "/")
    return name[1:] if _SLASHED_DRIVE.match(name) else name


def _is_encoded(file: str) -> bool:
    if not re.search(r"%[0-9A-Fa-f]{2}", file):
        return False
    try:
        unquote(file, errors="strict")
    except UnicodeDecodeError:
        return False
    return True


NOWHERE = PathMap(())
"""Maps relative paths and those of our own copies only."""
