"""Shorten what a tool gives, keeping head and tail and a handle to read on."""

from pathlib import Path

from pydantic import Field

from agent.errors import ToolFault
from agent.tools.tool import Arguments, CallContext, Effect, Output, Tool

MAX_RESULT_CHARS = 16_000
"""About 5,000 tokens: a file of 400 lines fits, a log does not."""
_TAIL_SHARE = 3
_MAX_LINE_CHARS = 2_000


class OutputStore:
    """Keeps long outputs of a run in its folder, by numbers that the model gets as handles."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._count = sum(1 for _ in folder.glob("*.txt")) if folder.is_dir() else 0

    def fit(self, text: str) -> str:
        """Give the text itself if it is short, else its head and tail and how to read the rest."""
        if len(text) <= MAX_RESULT_CHARS:
            return text
        self._count += 1
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._path(self._count).write_text(text, encoding="utf-8", errors="surrogateescape")
        lines = text.splitlines()
        head = _take(lines, MAX_RESULT_CHARS - MAX_RESULT_CHARS // _TAIL_SHARE)
        tail = _take(lines[len(head) :][::-1], MAX_RESULT_CHARS // _TAIL_SHARE)[::-1]
        left_out = len(lines) - len(head) - len(tail)
        gap = (
            f"[{left_out} of {len(lines)} lines left out; "
            f"read_output(handle={self._count}, first_line={len(head) + 1}) reads on]"
        )
        return "\n".join([*head, gap, *tail])

    def read(self, handle: int, first_line: int, line_count: int) -> str:
        """Give lines of a kept output; raises `ToolFault` where there is none under the handle."""
        path = self._path(handle)
        if not path.is_file():
            raise ToolFault(f"there is no output {handle}; handles are 1 to {self._count}")
        lines = path.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
        chosen = _take(lines[first_line - 1 : first_line - 1 + line_count], MAX_RESULT_CHARS - 200)
        last = first_line - 1 + len(chosen)
        return "\n".join([*chosen, f"[lines {first_line} to {last} of {len(lines)}]"])

    def _path(self, handle: int) -> Path:
        return self._folder / f"{handle}.txt"


def _take(lines: list[str], budget_chars: int) -> list[str]:
    taken: list[str] = []
    for line in lines:
        short = line if len(line) <= _MAX_LINE_CHARS else line[:_MAX_LINE_CHARS] + " […]"
        budget_chars -= len(short) + 1
        if budget_chars < 0:
            break
        taken.append(short)
    return taken


class ReadOutputArguments(Arguments):
    """Arguments of `read_output`."""

    handle: int = Field(description="The number given where the output was shortened.")
    first_line: int = Field(default=1, ge=1)
    line_count: int = Field(default=200, ge=1, le=1000)


def output_tools(store: OutputStore) -> tuple[Tool[ReadOutputArguments], ...]:
    """Give the tool that reads on in a shortened output."""

    async def run(arguments: ReadOutputArguments, context: CallContext) -> Output:
        return Output(store.read(arguments.handle, arguments.first_line, arguments.line_count))

    return (
        Tool(
            "read_output",
            "Read on in a tool output that was shortened.",
            ReadOutputArguments,
            Effect.READS,
            run,
            lambda arguments: f"output {arguments.handle} from line {arguments.first_line}",
        ),
    )
