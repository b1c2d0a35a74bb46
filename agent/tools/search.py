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
from agent.tools.tool import AnyTool, Arguments, CallContext, Effect, Output, Tool

_DEADLINE_S = 20.0
_MAX_LINE_CHARS = 300


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
    with anyio.move_on_after(_DEADLINE_S) as deadline:
        done = await anyio.run_process(
            [*command, "--regexp", wanted.pattern, "--", f"./{start}"], cwd=workspace.root, check=False
        )
    if deadline.cancelled_caught:
        raise ToolFault(f"the search took longer than {_DEADLINE_S:.0f} s; name a smaller folder or a glob")
    hits: list[str] = []
    for line in done.stdout.decode("utf-8", "replace").split("\n"):
        name, _, rest = line.partition("\0")
        path = PurePosixPath(name)
        if not rest or is_closed(path) or is_made(path):
            continue
        number, _, text = rest.partition(":")
        hits.append(f"{path}:{number}: {text.removesuffix(chr(13))[:_MAX_LINE_CHARS]}")
        if len(hits) > wanted.max_hits:
            break
    return hits
