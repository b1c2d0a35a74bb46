"""Find text in the workspace: by ripgrep where it is installed, else by RE2, which is linear too."""

import shutil
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any

import anyio
import re2
from pydantic import Field

from agent.errors import ToolFault
from agent.tools.confine import Workspace, is_closed, is_made
from agent.tools.edits import MAX_FILE_BYTES, split_lines
from agent.tools.files import walk
from agent.tools.program import run_program
from agent.tools.tool import AnyTool, Arguments, CallContext, Effect, Output, Tool

_DEADLINE_S = 20.0
_MAX_LINE_CHARS = 300
_MAX_HELD_BYTES = 8 * 1024
"""Of one line of output: room for the longest path and as many characters as are shown."""


class SearchText(Arguments):
    """Arguments of `search_text`."""

    pattern: str = Field(min_length=1, description="Regular expression (RE2 or Rust syntax, no look-around).")
    path: str = Field(default=".", description="Folder or file, relative to the workspace's root.")
    glob: str | None = Field(default=None, description="Only file names that match, e.g. *.kt")
    max_hits: int = Field(default=100, ge=1, le=1000)


def ripgrep() -> str | None:
    """Give where ripgrep is installed, None where it is not."""
    return shutil.which("rg")


def search_tools(workspace: Workspace, program: str | None) -> tuple[AnyTool, ...]:
    """Give the tool that searches the workspace, with ripgrep at `program` or, if None, by itself."""

    async def run(arguments: SearchText, context: CallContext) -> Output:
        start = workspace.resolve(arguments.path)
        pattern = _compile(arguments.pattern)
        if program:
            hits = await _by_ripgrep(program, workspace, arguments)
        else:
            hits = await anyio.to_thread.run_sync(_by_walk, workspace, start, pattern, arguments)
        if not hits:
            return Output("[no hits]")
        left_out = len(hits) - arguments.max_hits
        shown = hits[: arguments.max_hits] + ([f"[{left_out} or more hits left out]"] if left_out > 0 else [])
        return Output("\n".join(shown))

    return (
        Tool(
            "search_text",
            "Search the workspace's text files for a regular expression; gives path:line: text.",
            SearchText,
            Effect.READS,
            run,
            lambda arguments: f"/{arguments.pattern}/ in {arguments.path}",
            named=lambda arguments: workspace.named(arguments.path),
        ),
    )


def _compile(pattern: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as fault:
        told = fault.args[0].decode() if fault.args and isinstance(fault.args[0], bytes) else str(fault)
        raise ToolFault(f"/{pattern}/ is no regular expression of RE2: {told}") from fault


def _by_walk(workspace: Workspace, start: Path, pattern: Any, wanted: SearchText) -> list[str]:
    hits: list[str] = []
    for path in [workspace.name(start)] if start.is_file() else walk(workspace, start):
        if wanted.glob and not fnmatchcase(path.rpartition("/")[2], wanted.glob):
            continue
        file = workspace.root / path
        if not file.is_file() or file.is_symlink() or file.stat().st_size > MAX_FILE_BYTES:
            continue
        data = file.read_bytes()
        if b"\0" in data[:8192]:
            continue
        for number, line in enumerate(split_lines(data.decode("utf-8", "replace")), start=1):
            if pattern.search(line):
                hits.append(f"{path}:{number}: {line[:_MAX_LINE_CHARS]}")
                if len(hits) > wanted.max_hits:
                    return hits
    return hits


async def _by_ripgrep(program: str, workspace: Workspace, wanted: SearchText) -> list[str]:
    command = [
        program, "--no-config", "--hidden", "--no-ignore", "--no-heading", "--with-filename", "--null",
        "--line-number", "--color=never", "--sort=path", f"--max-filesize={MAX_FILE_BYTES}",
    ]  # fmt: skip
    if wanted.glob:
        command.append(f"--glob={wanted.glob}")
    start = workspace.resolve(wanted.path).relative_to(workspace.root)
    hits = _Hits(wanted.max_hits + 1)
    command += ["--regexp", wanted.pattern, "--", f"./{start}"]
    try:
        await run_program(command, cwd=workspace.root, feed=hits.feed, deadline_s=_DEADLINE_S)
    except TimeoutError:
        raise ToolFault(
            f"the search took longer than {_DEADLINE_S:.0f} s; name a smaller folder or a glob"
        ) from None
    return hits.found


class _Hits:
    """Takes the output of ripgrep as it comes and keeps so many hits, of each what is shown of it."""

    def __init__(self, wanted: int) -> None:
        self.found: list[str] = []
        self._wanted = wanted
        self._line = bytearray()

    def feed(self, chunk: bytes) -> bool:
        """Take the next bytes; says whether there are hits enough."""
        *ended, rest = chunk.split(b"\n")
        for piece in ended:
            self._hold(piece)
            self._take()
            if len(self.found) >= self._wanted:
                return True
        self._hold(rest)
        return False

    def _hold(self, piece: bytes) -> None:
        self._line += piece[: _MAX_HELD_BYTES - len(self._line)]

    def _take(self) -> None:
        name, _, rest = self._line.decode("utf-8", "replace").partition("\0")
        self._line.clear()
        path = PurePosixPath(name)
        if rest and not is_closed(path) and not is_made(path):
            number, _, text = rest.partition(":")
            self.found.append(f"{path}:{number}: {text.removesuffix(chr(13))[:_MAX_LINE_CHARS]}")
