"""Change files of the workspace so that each change is whole, can be undone, and survives a kill."""

import json
from base64 import b64decode, b64encode
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from agent.errors import ToolFault
from agent.message import JsonObject
from agent.tools.confine import Workspace
from agent.tools.durable import make_folder, put, unfinished
from agent.tools.tool import CallContext

MAX_FILE_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Change:
    """A file before and after; None where it is not there."""

    path: Path
    before: bytes | None
    after: bytes | None


class Edits:
    """Makes changes and keeps what was there before, in the folder of the run.

    Each set of changes is noted in the transcript with the digests of both sides before the first
    file is replaced. After a kill the same call finds out from the files what it had already done.
    """

    def __init__(self, workspace: Workspace, folder: Path) -> None:
        self._workspace = workspace
        self._folder = folder
        numbers = sorted(int(kept.stem) for kept in folder.glob("[0-9]*.json"))
        self._count = max(numbers, default=0)
        self._names = {number: list(self._kept(number)) for number in numbers}
        self._remove_unfinished()

    def make(self, changes: list[Change], context: CallContext) -> None:
        """Apply the changes, all of them or, after a fault, none that is not noted."""
        number = self._keep(changes)
        context.note({"undo": number, "changes": [self._digests(change) for change in changes]})
        for change in changes:
            put(change.path, change.after)

    def was_made(self, earlier: JsonObject | None) -> bool:
        """Say whether an earlier process that died in this call had made its changes.

        Changes that were half made are finished from what was kept. Raises `ToolFault` where a file
        has become something else in the meantime.
        """
        if earlier is None:
            return False
        for digests in earlier["changes"]:
            path = self._workspace.resolve(digests["path"])
            present = _digest(_read(path))
            if present == digests["after"]:
                continue
            if present != digests["before"]:
                raise ToolFault(
                    f"{digests['path']} was changed by somebody else; read it before the next edit"
                )
            put(path, self._kept(earlier["undo"])[digests["path"]][1])
        return True

    def undo(self, context: CallContext) -> list[str]:
        """Take back the latest set of changes that still stands; gives the names of its files."""
        number = context.earlier["undoing"] if context.earlier else self._latest()
        if self._is_undone(number):
            return self._names[number]
        kept = self._kept(number)
        for name, sides in kept.items():
            if _read(self._workspace.resolve(name)) not in (sides if context.earlier else sides[1:]):
                raise ToolFault(f"{name} was changed since; nothing was undone")
        context.note({"undoing": number})
        for name, (before, _) in kept.items():
            put(self._workspace.resolve(name), before)
        self._undone(number).touch()
        return self._names[number]

    def latest_names(self) -> list[str]:
        """Give the names of the files that `undo` would change, none where nothing is left to undo."""
        number = self._standing_number()
        return [] if number is None else self._names[number]

    def _latest(self) -> int:
        number = self._standing_number()
        if number is None:
            raise ToolFault("there is no change of this run left to undo")
        return number

    def _standing_number(self) -> int | None:
        kept = (number for number in reversed(self._names) if not self._is_undone(number))
        return next(kept, None)

    def _is_undone(self, number: int) -> bool:
        return self._undone(number).exists()

    def _undone(self, number: int) -> Path:
        return self._folder / f"{number}.undone"

    def original(self, path: Path) -> bytes | None:
        """Give the file as it was before this run first changed it; its present bytes if it never did."""
        name = self._workspace.name(path)
        first = next((number for number, names in self._names.items() if name in names), None)
        return _read(path) if first is None else self._kept(first)[name][0]

    def changed_paths(self) -> list[Path]:
        """Give the files that this run has changed and that are still there."""
        names = {name for names in self._names.values() for name in names}
        return [path for name in sorted(names) if (path := self._workspace.resolve(name)).is_file()]

    def _keep(self, changes: list[Change]) -> int:
        self._count += 1
        sides = {
            self._workspace.name(change.path): [_packed(change.before), _packed(change.after)]
            for change in changes
        }
        make_folder(self._folder, 0o700)
        put(self._folder / f"{self._count}.json", json.dumps(sides).encode())
        self._names[self._count] = list(sides)
        return self._count

    def _kept(self, number: int) -> dict[str, tuple[bytes | None, bytes | None]]:
        """Give each file of a set by its name, before and after."""
        sides = json.loads((self._folder / f"{number}.json").read_bytes())
        return {name: (_unpacked(before), _unpacked(after)) for name, (before, after) in sides.items()}

    def _remove_unfinished(self) -> None:
        """Remove what a process that died while it put a file in place left beside the file."""
        for name in {name for names in self._names.values() for name in names}:
            # A folder may be gone, a file, or a link to elsewhere by now: then nothing of ours lies there.
            with suppress(OSError, ToolFault):
                unfinished(self._workspace.resolve(name)).unlink(missing_ok=True)

    def _digests(self, change: Change) -> dict[str, Any]:
        return {
            "path": self._workspace.name(change.path),
            "before": _digest(change.before),
            "after": _digest(change.after),
        }


def _packed(data: bytes | None) -> str | None:
    return None if data is None else b64encode(data).decode()


def _unpacked(text: str | None) -> bytes | None:
    return None if text is None else b64decode(text)


def _digest(data: bytes | None) -> str | None:
    return None if data is None else sha256(data).hexdigest()


def _read(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def read_text(path: Path, name: str) -> str:
    """Give the text of a file; raises `ToolFault` where it is absent, too large or no text."""
    try:
        if path.is_dir():
            raise ToolFault(f"{name} is a folder; list_files shows what it holds")
        if path.stat().st_size > MAX_FILE_BYTES:
            raise ToolFault(f"{name} has {path.stat().st_size} bytes; tools read up to {MAX_FILE_BYTES}")
        data = path.read_bytes()
    except FileNotFoundError:
        raise ToolFault(f"{name} does not exist; list_files shows what does") from None
    except OSError as fault:
        raise ToolFault(f"{name} cannot be read: {fault.strerror}") from fault
    if b"\0" in data[:8192]:
        raise ToolFault(f"{name} is not text ({len(data)} bytes)")
    return data.decode("utf-8", "surrogateescape")


def split_lines(text: str) -> list[str]:
    """Give the lines as compilers count them: ends are LF or CRLF and nothing else."""
    lines = text.replace("\r\n", "\n").split("\n")
    return lines[:-1] if not lines[-1] else lines


def to_bytes(text: str) -> bytes:
    """Give the bytes of a text as `read_text` took them."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as fault:
        raise ToolFault(
            f"the text holds half of a surrogate pair at character {fault.start}; send it whole"
        ) from fault
