"""Looking through folders in which others work meanwhile."""

import os
from collections.abc import Iterator
from pathlib import Path


def files_below(folder: Path) -> Iterator[Path]:
    """Give the files below a folder; unlike `rglob` it passes over folders that go away meanwhile."""
    for parent, _, names in os.walk(folder):
        for name in names:
            yield Path(parent, name)
