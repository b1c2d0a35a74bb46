"""Keep file tools inside the workspace, and away from what is nobody's business."""

import errno
import os
import re
from fnmatch import translate
from pathlib import Path, PurePosixPath

from agent.errors import ToolFault

UNFINISHED_SUFFIX = ".pocketbuild-new"
"""How the names of hidden files end that hold new content of another file; what builds leaves them out."""
CLOSED_FOLDERS = frozenset({".git", ".hg", ".svn", ".ssh", ".gnupg", ".pocketbuild"})
CLOSED_FILES = (
    ".env", ".env.*", "*.jks", "*.keystore", "*.p12", "*.pfx", "*.pem", "*.key", "id_rsa*", "id_ed25519*",
    ".netrc", ".npmrc", ".pypirc", "keystore.properties", "signing.properties", "secrets.properties",
    "service-account*.json", "credentials*.json", f".*{UNFINISHED_SUFFIX}",
)  # fmt: skip
_CLOSED_NAME = re.compile("|".join(map(translate, CLOSED_FILES)))
_MADE_FOLDERS = frozenset({"build", ".gradle", ".idea", ".kotlin", ".cxx", "node_modules", "__pycache__"})


class Workspace:
    """A folder that tools may work in; every path a model gives goes through `resolve`."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve(strict=True)
        self._prefix = f"{str(self.root).rstrip('/')}/"

    def resolve(self, given: str) -> Path:
        """Give the real place of a path in the workspace.

        Raises `ToolFault` for paths that lead out, by `..`, by a link or from the root, and for
        version control's folders and files that usually hold secrets.
        """
        if "\0" in given:
            raise ToolFault("a path cannot hold a NUL character")
        pure = PurePosixPath(given.replace("\\", "/"))
        if pure.is_absolute():
            if not pure.is_relative_to(self.root.as_posix()):
                raise ToolFault(f"{given} lies outside the workspace; give a path relative to its root")
            pure = pure.relative_to(self.root.as_posix())
        if ".." in pure.parts:
            raise ToolFault(f"{given}: `..` is not allowed; give a path relative to the workspace's root")
        joined = self._prefix + str(pure) if pure.parts else str(self.root)
        real = os.path.realpath(joined)
        place = Path(real)
        try:
            place.stat()
        except OSError as fault:
            if fault.errno == errno.ELOOP:
                raise ToolFault(f"{given} cannot be followed: {fault.strerror}") from fault
        names = [pure]
        if real != joined:
            if real != str(self.root) and not real.startswith(self._prefix):
                raise ToolFault(f"{given} is a link that leads out of the workspace")
            names.append(PurePosixPath(real[len(self._prefix) :]))
        for name in names:
            if is_closed(name):
                raise ToolFault(f"{given} is closed to tools: version control or secrets lie there")
        return place

    def named(self, *given: str) -> dict[str, tuple[str, ...]]:
        """Give by which names paths are known: as they are written, in plain form, and where links lead.

        Raises `ToolFault` as `resolve` does.
        """
        names: dict[str, None] = {}
        for path in given:
            real = self.name(self.resolve(path))
            plain = PurePosixPath(path.replace("\\", "/"))
            names[str(plain.relative_to(self.root) if plain.is_absolute() else plain)] = None
            names[real] = None
        return {"path": tuple(names)}

    def name(self, path: Path) -> str:
        """Give a path as the model should write it."""
        return path.relative_to(self.root).as_posix()


def is_closed(path: PurePosixPath) -> bool:
    """Say whether tools must not look into this path, relative to the workspace."""
    *folders, name = path.parts or ("",)
    return is_closed_name(name) or any(part.casefold() in CLOSED_FOLDERS for part in folders)


def is_closed_name(name: str) -> bool:
    """Say whether tools must not look into a file or folder of this name, wherever it lies."""
    folded = name.casefold()
    return folded in CLOSED_FOLDERS or _CLOSED_NAME.match(folded) is not None


def is_made(path: PurePosixPath) -> bool:
    """Say whether a path lies in a folder that builds and editors make anew."""
    return not _MADE_FOLDERS.isdisjoint(path.parts)


def is_made_name(name: str) -> bool:
    """Say whether a folder of this name is made anew by builds and editors."""
    return name in _MADE_FOLDERS
