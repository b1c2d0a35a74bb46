"""Reads a workspace's files for the lines around a problem; nothing outside of it."""

from collections.abc import Callable
from pathlib import Path

MAX_SOURCE_BYTES = 4 << 20
"""The longest file that is read; a longer one is no source that a person wrote."""


def sources_in(workspace: Path) -> Callable[[str], str | None]:
    """Give a reader of files by their path inside a workspace, that follows no link out of it.

    It gives None for what is no file there, or too long. Blocking.
    """
    root = workspace.resolve()

    def read(path: str) -> str | None:
        try:
            file = (root / path).resolve()
            is_inside = file.is_relative_to(root) and file.is_file()
            if not is_inside or file.stat().st_size > MAX_SOURCE_BYTES:
                return None
            return file.read_text(encoding="utf-8", errors="replace")
        except (OSError, ValueError):
            # A log may name anything as a file: a path too long, or with a NUL in it.
            return None

    return read
