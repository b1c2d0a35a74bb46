"""Tools that look at and change the files of the workspace."""

import math
import os
import re
import time
from collections.abc import Iterator
from fnmatch import translate
from operator import attrgetter
from pathlib import Path

from anyio import to_thread
from pydantic import Field

from agent.errors import ToolFault
from agent.tools.confine import Workspace, is_closed_name, is_made_name
from agent.tools.edits import Change, Edits, read_text, split_lines, to_bytes
from agent.tools.patch import apply_hunks, parse_patch, paths_of
from agent.tools.tool import AnyTool, Arguments, CallContext, Effect, Output, Tool

_QUICK_S = 0.005
_MAX_LISTED = 500
_MAX_LINE_CHARS = 2_000


class ListFiles(Arguments):
    """Arguments of `list_files`."""

    path: str = Field(default=".", description="Folder, relative to the workspace's root.")
    pattern: str | None = Field(default=None, description="Only names or paths that match, e.g. *.kt")


class ReadFile(Arguments):
    """Arguments of `read_file`."""

    path: str = Field(description="File, relative to the workspace's root.")
    first_line: int = Field(default=1, ge=1)
    line_count: int = Field(default=400, ge=1, le=2000)


class WriteFile(Arguments):
    """Arguments of `write_file`."""

    path: str = Field(description="File, relative to the workspace's root; folders are made as needed.")
    content: str


class EditFile(Arguments):
    """Arguments of `edit_file`."""

    path: str = Field(description="File, relative to the workspace's root.")
    old: str = Field(min_length=1, description="Text to replace, exactly as it stands, without line numbers.")
    new: str = Field(description="Text to put in its place.")
    replace_all: bool = Field(default=False, description="Replace every place where `old` stands.")


class ApplyPatch(Arguments):
    """Arguments of `apply_patch`."""

    patch: str = Field(description="Unified diff over one or more files; all of it applies or none.")


class UndoEdit(Arguments):
    """Arguments of `undo_edit`."""


def walk(workspace: Workspace, start: Path) -> Iterator[str]:
    """Give the files below a folder, by name, without closed and made ones; links are not followed.

    Paths are relative to the workspace.
    """
    root_chars = len(str(workspace.root).rstrip("/")) + 1
    waiting = [str(start)]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(folder) as listed:
                entries = sorted((each for each in listed if not is_closed_name(each.name)), key=_name)
        except OSError:  # a folder that is gone or not ours to read has nothing to show
            continue
        yield from (each.path[root_chars:] for each in entries if not each.is_dir())
        folders = (each for each in reversed(entries) if each.is_dir(follow_symlinks=False))
        waiting += (each.path for each in folders if not is_made_name(each.name))


_name = attrgetter("name")


class FileTools:
    """The tools over one workspace."""

    def __init__(self, workspace: Workspace, edits: Edits) -> None:
        self._workspace = workspace
        self._edits = edits
        self._listing_s = math.inf

    def tools(self) -> tuple[AnyTool, ...]:
        """Give the tools as the loop takes them."""

        def path(arguments: ListFiles | ReadFile | WriteFile | EditFile) -> dict[str, tuple[str, ...]]:
            return self._workspace.named(arguments.path)

        return (
            Tool("list_files", "List the workspace's files with sizes, without folders that builds make.",
                 ListFiles, Effect.READS, self.list_files, lambda a: a.pattern or a.path, named=path),
            Tool("read_file", "Read a text file of the workspace, with line numbers.",
                 ReadFile, Effect.READS, self.read_file, lambda a: a.path, named=path),
            Tool("write_file", "Write a whole file. Prefer edit_file for a change of an existing one.",
                 WriteFile, Effect.WRITES, self.write_file, lambda a: a.path, named=path),
            Tool("edit_file", "Replace text in a file. `old` must stand there once, unless replace_all.",
                 EditFile, Effect.WRITES, self.edit_file, lambda a: a.path, named=path),
            Tool("apply_patch", "Apply a unified diff to files of the workspace.",
                 ApplyPatch, Effect.WRITES, self.apply_patch, lambda a: ", ".join(paths_of(a.patch)),
                 named=lambda a: self._workspace.named(*paths_of(a.patch))),
            Tool("undo_edit", "Take back the latest change that you made to files.",
                 UndoEdit, Effect.WRITES, self.undo_edit, lambda a: "latest change",
                 named=lambda a: {"path": tuple(self._edits.latest_names())}),
        )  # fmt: skip

    async def list_files(self, arguments: ListFiles, context: CallContext) -> Output:
        """Give names and sizes, at most 500."""
        start = self._workspace.resolve(arguments.path)
        if not start.is_dir():
            raise ToolFault(f"{arguments.path} is no folder of the workspace")
        # A large tree takes a while, and other runs and builds live in the same loop; a small one is
        # listed sooner than a thread has woken.
        began_s = time.monotonic()
        if self._listing_s < _QUICK_S:
            text = self._listed(start, arguments.pattern or "*")
        else:
            text = await to_thread.run_sync(self._listed, start, arguments.pattern or "*")
        self._listing_s = time.monotonic() - began_s
        return Output(text)

    def _listed(self, start: Path, pattern: str) -> str:
        fits = re.compile(translate(pattern)).match
        found = [path for path in walk(self._workspace, start) if fits(path) or fits(path.rpartition("/")[2])]
        listed = [
            f"{path}  {(self._workspace.root / path).lstat().st_size} bytes" for path in found[:_MAX_LISTED]
        ]
        if len(found) > _MAX_LISTED:
            listed.append(f"[{len(found) - _MAX_LISTED} more; name a folder or a pattern]")
        return "\n".join(listed) or "[no files]"

    async def read_file(self, arguments: ReadFile, context: CallContext) -> Output:
        """Give numbered lines and say which of how many they are."""
        lines = split_lines(read_text(self._workspace.resolve(arguments.path), arguments.path))
        first = arguments.first_line
        if first > max(1, len(lines)):
            raise ToolFault(f"{arguments.path} has only {len(lines)} lines")
        chosen = lines[first - 1 : first - 1 + arguments.line_count]
        if max(map(len, chosen), default=0) > _MAX_LINE_CHARS:
            chosen = [_clip(line) for line in chosen]
        numbered = [f"{number:>5}  {line}" for number, line in enumerate(chosen, start=first)]
        last = first - 1 + len(chosen)
        if first > 1 or last < len(lines):
            numbered.append(f"[lines {first} to {last} of {len(lines)}]")
        return Output("\n".join(numbered) or "[empty file]")

    async def write_file(self, arguments: WriteFile, context: CallContext) -> Output:
        """Write the file and say whether it is new."""
        path = self._workspace.resolve(arguments.path)
        if path.is_dir():
            raise ToolFault(f"{arguments.path} is a folder")
        before = path.read_bytes() if path.is_file() else None
        if not self._edits.was_made(context.earlier):
            change = Change(path, before, to_bytes(arguments.content))
            await to_thread.run_sync(self._edits.make, [change], context)
        lines = len(arguments.content.splitlines())
        return Output(f"wrote {arguments.path}, {lines} lines", changed=True)

    async def edit_file(self, arguments: EditFile, context: CallContext) -> Output:
        """Replace the text and show the lines around the first place."""
        path = self._workspace.resolve(arguments.path)
        text = read_text(path, arguments.path)
        if self._edits.was_made(context.earlier):
            return Output(f"replaced text in {arguments.path}", changed=True)
        old, new = arguments.old, arguments.new
        if "\r\n" in text and "\r\n" not in old:
            old, new = old.replace("\n", "\r\n"), new.replace("\r\n", "\n").replace("\n", "\r\n")
        count = text.count(old)
        if count == 0:
            raise ToolFault(_not_found(arguments.path, text, arguments.old))
        if count > 1 and not arguments.replace_all:
            places = ", ".join(str(line) for line in _lines_of(text, old)[:8])
            raise ToolFault(
                f"`old` stands {count} times in {arguments.path} (lines {places}); "
                "give more of the text around the one you mean, or set replace_all"
            )
        if old == new:
            raise ToolFault("`old` and `new` are the same text; nothing was changed")
        after = text.replace(old, new)
        await to_thread.run_sync(self._edits.make, [Change(path, to_bytes(text), to_bytes(after))], context)
        times = f"{count} places" if count > 1 else "1 place"
        return Output(
            f"replaced {times} in {arguments.path}\n{_around(after, text.index(old), new)}", changed=True
        )

    async def apply_patch(self, arguments: ApplyPatch, context: CallContext) -> Output:
        """Apply all hunks of all files."""
        patches = parse_patch(arguments.patch)
        if not self._edits.was_made(context.earlier):
            changes: list[Change] = []
            for patch in patches:
                source = self._workspace.resolve(patch.old) if patch.old else None
                text = read_text(source, patch.old or "") if source else ""
                after = apply_hunks(patch.new or patch.old or "", text, patch.hunks)
                target = self._workspace.resolve(patch.new) if patch.new else None
                if source and target != source:
                    changes.append(Change(source, to_bytes(text), None))
                if target:
                    before = target.read_bytes() if target.is_file() else None
                    changes.append(Change(target, before, to_bytes(after)))
            await to_thread.run_sync(self._edits.make, changes, context)
        names = ", ".join(patch.new or f"{patch.old} (removed)" for patch in patches)
        return Output(f"applied the patch to {names}", changed=True)

    async def undo_edit(self, arguments: UndoEdit, context: CallContext) -> Output:
        """Take back the latest set of changes."""
        names = await to_thread.run_sync(self._edits.undo, context)
        return Output(f"undone in {', '.join(names)}", changed=True)


def _clip(line: str) -> str:
    return line if len(line) <= _MAX_LINE_CHARS else f"{line[:_MAX_LINE_CHARS]} [… {len(line)} characters]"


def _lines_of(text: str, old: str) -> list[int]:
    places: list[int] = []
    at = text.find(old)
    while at >= 0:
        places.append(text.count("\n", 0, at) + 1)
        at = text.find(old, at + len(old))
    return places


def _not_found(name: str, text: str, old: str) -> str:
    first = next((line.strip() for line in old.splitlines() if line.strip()), "")
    near = [n for n, line in enumerate(split_lines(text), start=1) if first and first in line][:5]
    if near:
        return (
            f"`old` does not stand in {name} exactly; its first line is at line {', '.join(map(str, near))}, "
            "but what follows differs (white space counts). Read the file there and copy the text."
        )
    return f"`old` does not stand in {name}; read the file and copy the text without line numbers"


def _around(text: str, at: int, new: str) -> str:
    first = max(0, text.count("\n", 0, at) - 2)
    last = text.count("\n", 0, at) + new.count("\n") + 3
    lines = split_lines(text)[first : min(last, first + 40)]
    return "\n".join(f"{number:>5}  {_clip(line)}" for number, line in enumerate(lines, start=first + 1))
