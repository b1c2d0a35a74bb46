"""Keep file tools inside the workspace, and away from what is nobody's business."""

from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from agent.errors import ToolFault

_CLOSED_FOLDERS = frozenset({".git", ".hg", ".svn", ".ssh", ".gnupg", ".pocketbuild"})
CLOSED_FILES = (
    ".env", ".env.*", "*.jks", "*.keystore", "*.p12", "*.pfx", "*.pem", "*.key", "id_rsa*", "id_ed25519*",
    ".netrc", ".npmrc", ".pypirc", "keystore.properties", "signing.properties", "secrets.properties",
    "service-account*.json", "credentials*.json",
)  # fmt: skip
_MADE_FOLDERS = frozenset({"build", ".gradle", ".idea", ".kotlin", ".cxx", "node_modules", "__pycache__"})


class Workspace:
    """A folder that tools may work in; every path a model gives goes through `resolve`."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve(strict=True)

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
        try:
            real = (self.root / pure).resolve()
        except (OSError, RuntimeError) as fault:
            raise ToolFault(f"{given} cannot be followed: {fault}") from fault
        if not real.is_relative_to(self.root):
            raise ToolFault(f"{given} is a link that leads out of the workspace")
        for name in (pure, PurePosixPath(real.relative_to(self.root))):
            if is_closed(name):
                raise ToolFault(f"{given} is closed to tools: version control or secrets lie there")
        return real

    def name(self, path: Path) -> str:
        """Give a path as the model should write it."""
        return path.relative_to(self.root).as_posix()


def is_closed(path: PurePosixPath) -> bool:
    """Say whether tools must not look into this path, relative to the workspace."""
    parts = [part.casefold() for part in path.parts]
    return any(part in _CLOSED_FOLDERS for part in parts) or any(
        fnmatchcase(parts[-1], pattern) for pattern in (CLOSED_FILES if parts else ())
    )


def is_made(path: PurePosixPath) -> bool:
    """Say whether a path lies in a folder that builds and editors make anew."""
    return any(part in _MADE_FOLDERS for part in path.parts)
