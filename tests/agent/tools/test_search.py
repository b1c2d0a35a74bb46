"""Searching the workspace gives the same with ripgrep and without."""

import shutil
from pathlib import Path

import pytest

from agent.errors import ToolFault
from agent.message import ToolCall
from agent.tools.confine import Workspace
from agent.tools.search import SearchText, search_tools
from agent.tools.tool import CallContext
from tests.fakes_provider import Watcher

pytestmark = pytest.mark.anyio
PROGRAMS = [None, shutil.which("rg")] if shutil.which("rg") else [None]


@pytest.fixture(params=PROGRAMS, ids=lambda program: "ripgrep" if program else "own")
def program(request: pytest.FixtureRequest) -> str | None:
    return request.param


async def search(root: Path, program: str | None, **arguments: object) -> list[str]:
    [tool] = search_tools(Workspace(root), program)
    context = CallContext(ToolCall("c", "search_text", {}), lambda note: None, Watcher())
    return (await tool.run(SearchText.model_validate(arguments), context)).text.splitlines()


def fill(root: Path) -> None:
    for name, text in {
        "app/A.kt": "val one = 1\r\nval two = 2\r\n",
        "b.txt": "one:two\n" * 3,
        "build/out.txt": "one\n",
        ".env": "one\n",
        ".git/config": "one\n",
        "image.bin": "one\0",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(text.encode())
    (root / "link.txt").symlink_to("/etc/passwd")


async def test_hits_have_place_and_text_and_closed_files_are_left_out(
    tmp_path: Path, program: str | None
) -> None:
    fill(tmp_path)
    hits = await search(tmp_path, program, pattern=r"\bone\b")
    assert sorted(hits) == ["app/A.kt:1: val one = 1", *(f"b.txt:{n}: one:two" for n in (1, 2, 3))]
    assert await search(tmp_path, program, pattern="one", glob="*.kt") == ["app/A.kt:1: val one = 1"]
    assert await search(tmp_path, program, pattern="two", path="app/A.kt") == ["app/A.kt:2: val two = 2"]
    assert await search(tmp_path, program, pattern="root", path=".") == ["[no hits]"]


async def test_many_hits_are_cut(tmp_path: Path, program: str | None) -> None:
    fill(tmp_path)
    assert await search(tmp_path, program, pattern="one:", max_hits=2) == [
        "b.txt:1: one:two",
        "b.txt:2: one:two",
        "[1 or more hits left out]",
    ]


async def test_a_pattern_that_is_none_is_refused_in_words(tmp_path: Path, program: str | None) -> None:
    with pytest.raises(ToolFault, match="is no regular expression of RE2"):
        await search(tmp_path, program, pattern="(?=x)")


async def test_a_search_outside_the_workspace_is_refused(tmp_path: Path, program: str | None) -> None:
    with pytest.raises(ToolFault, match="not allowed"):
        await search(tmp_path, program, pattern="x", path="..")


async def test_a_program_that_finds_without_end_is_ended_once_there_are_hits_enough(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    finds = tmp_path / "finds"
    finds.write_text("#!/bin/sh\nwhile :; do printf '.env\\0001:one\\na.txt\\0001:one\\n'; done\n")
    finds.chmod(0o755)
    hits = await search(tmp_path / "w", str(finds), pattern="one", max_hits=2)
    assert hits == ["a.txt:1: one", "a.txt:1: one", "[1 or more hits left out]"]


async def test_of_a_long_line_the_beginning_is_shown(tmp_path: Path, program: str | None) -> None:
    (tmp_path / "a.js").write_text("é" * 1_000_000 + "\nlast é\n")
    assert await search(tmp_path, program, pattern="é") == [f"a.js:1: {'é' * 300}", "a.js:2: last é"]
