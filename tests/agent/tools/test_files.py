"""The file tools: confined, whole, undoable, and safe to repeat after a kill."""

from pathlib import Path
from typing import Any

import pytest

from agent.errors import ToolFault
from agent.message import JsonObject, ToolCall
from agent.tools.confine import Workspace
from agent.tools.durable import unfinished
from agent.tools.edits import Edits
from agent.tools.files import FileTools
from agent.tools.tool import CallContext, Output
from tests.fakes_provider import Watcher

pytestmark = pytest.mark.anyio


class Desk:
    """File tools over a small workspace, called as the loop calls them."""

    def __init__(self, root: Path) -> None:
        self.root = root / "w"
        self.root.mkdir()
        workspace = Workspace(self.root)
        self.edits = Edits(workspace, root / "run" / "edits")
        self.tools = {tool.name: tool for tool in FileTools(workspace, self.edits).tools()}
        self.notes: list[JsonObject] = []

    async def call(self, name: str, earlier: JsonObject | None = None, **arguments: Any) -> Output:
        tool = self.tools[name]
        context = CallContext(ToolCall("c", name, arguments), self.notes.append, Watcher(), earlier)
        output: Output = await tool.run(tool.parse(arguments), context)
        return output

    def write(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        return path


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("../outside", "`..` is not allowed"),
        ("a/../../outside", "`..` is not allowed"),
        ("a\\..\\..\\outside", "`..` is not allowed"),
        ("/etc/passwd", "outside the workspace"),
        ("link/passwd", "a link that leads out"),
        ("a\0b", "NUL"),
        (".git/config", "closed"),
        ("sub/.GIT/config", "closed"),
        (".env", "closed"),
        ("release.jks", "closed"),
        ("git-link", "closed"),
        ("missing.txt", "does not exist"),
        (".", "is a folder"),
    ],
)
async def test_what_lies_outside_or_is_closed_is_refused(desk: Desk, path: str, told: str) -> None:
    desk.write(".git/config", "secret")
    desk.write("sub/.GIT/config", "secret")
    desk.write(".env", "secret")
    desk.write("release.jks", "secret")
    (desk.root / "link").symlink_to("/etc")
    (desk.root / "git-link").symlink_to(".git/config")
    with pytest.raises(ToolFault, match=told):
        await desk.call("read_file", path=path)
    with pytest.raises(ToolFault):
        await desk.call("edit_file", path=path, old="secret", new="x")


async def test_a_file_is_read_with_line_numbers_and_in_ranges(desk: Desk) -> None:
    desk.write("a.txt", "one\r\ntwo\u2028still two\nthree\n")
    assert (
        await desk.call("read_file", path="a.txt")
    ).text == "    1  one\n    2  two\u2028still two\n    3  three"
    part = await desk.call("read_file", path="a.txt", first_line=2, line_count=1)
    assert part.text == "    2  two\u2028still two\n[lines 2 to 2 of 3]"
    with pytest.raises(ToolFault, match="only 3 lines"):
        await desk.call("read_file", path="a.txt", first_line=9)


async def test_a_binary_file_is_not_read_as_text(desk: Desk) -> None:
    desk.write("a.png", "\x89PNG\0\0")
    with pytest.raises(ToolFault, match="is not text"):
        await desk.call("read_file", path="a.png")


async def test_listing_leaves_out_what_builds_make_and_what_is_closed(desk: Desk) -> None:
    for name in ("app/src/A.kt", "app/build/out.txt", ".git/HEAD", "local.jks", "b.kt"):
        desk.write(name, "x")
    assert (await desk.call("list_files")).text == "b.kt  1 bytes\napp/src/A.kt  1 bytes"
    assert (await desk.call("list_files", pattern="A.*")).text == "app/src/A.kt  1 bytes"


async def test_links_to_folders_are_neither_listed_nor_followed(desk: Desk) -> None:
    desk.write("a/one.kt", "1")
    (desk.root / "again").symlink_to("a")
    (desk.root / "two.kt").symlink_to("a/one.kt")
    listed = (await desk.call("list_files", pattern="*.kt")).text
    assert [line.split()[0] for line in listed.splitlines()] == ["two.kt", "a/one.kt"]
    assert (await desk.call("list_files", path="again")).text.startswith("a/one.kt  1 bytes")


async def test_a_link_that_leads_to_itself_is_refused(desk: Desk) -> None:
    (desk.root / "loop").symlink_to("loop")
    with pytest.raises(ToolFault, match="cannot be followed"):
        await desk.call("write_file", path="loop", content="x")


async def test_what_a_killed_process_had_only_half_kept_is_no_change(desk: Desk) -> None:
    path = desk.write("a.txt", "one\n")
    await desk.call("edit_file", path="a.txt", old="one", new="two")
    folder = desk.root.parent / "run/edits"
    unfinished(folder / "2.json").write_bytes(b'{"a.txt": ["b25l')
    again = Edits(Workspace(desk.root), folder)
    assert (again.original(path), again.changed_paths()) == (b"one\n", [path])
    desk.tools = {tool.name: tool for tool in FileTools(Workspace(desk.root), again).tools()}
    await desk.call("edit_file", path="a.txt", old="two", new="three")
    await desk.call("undo_edit")
    await desk.call("undo_edit")
    assert path.read_text() == "one\n"


async def test_an_edit_replaces_a_text_that_stands_once(desk: Desk) -> None:
    path = desk.write("a.kt", "fun a() = 1\nfun b() = 2\n")
    output = await desk.call("edit_file", path="a.kt", old="= 2", new="= 3")
    assert path.read_text() == "fun a() = 1\nfun b() = 3\n"
    assert (output.changed, output.text) == (
        True,
        "replaced 1 place in a.kt\n    1  fun a() = 1\n    2  fun b() = 3",
    )


async def test_an_edit_that_is_not_unique_or_not_there_says_where_to_look(desk: Desk) -> None:
    desk.write("a.kt", "x = 1\ny = 1\n  foo(\n    bar)\n")
    with pytest.raises(ToolFault, match=r"stands 2 times in a.kt \(lines 1, 2\)"):
        await desk.call("edit_file", path="a.kt", old="= 1", new="= 2")
    with pytest.raises(ToolFault, match="its first line is at line 3"):
        await desk.call("edit_file", path="a.kt", old="foo(\nbar)", new="foo()")
    with pytest.raises(ToolFault, match="read the file"):
        await desk.call("edit_file", path="a.kt", old="nowhere", new="x")
    output = await desk.call("edit_file", path="a.kt", old="= 1", new="= 2", replace_all=True)
    assert output.text.startswith("replaced 2 places")


async def test_an_edit_keeps_windows_line_ends_and_bytes_that_are_no_text(desk: Desk) -> None:
    path = desk.root / "a.txt"
    path.write_bytes(b"one\r\ntwo\r\n\xff\r\n")
    await desk.call("edit_file", path="a.txt", old="one\ntwo", new="1\n2\n3")
    assert path.read_bytes() == b"1\r\n2\r\n3\r\n\xff\r\n"


async def test_writing_makes_folders_and_keeps_the_mode(desk: Desk) -> None:
    await desk.call("write_file", path="new/deep/a.sh", content="#!/bin/sh\n")
    path = desk.root / "new/deep/a.sh"
    path.chmod(0o755)
    await desk.call("write_file", path="new/deep/a.sh", content="#!/bin/sh\ntrue\n")
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("#!/bin/sh\ntrue\n", 0o755)


async def test_a_patch_over_several_files_applies_whole_or_not_at_all(desk: Desk) -> None:
    a, b = desk.write("a.txt", "one\n"), desk.write("b.txt", "two\n")
    good = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+1\n"
    bad = "--- a/b.txt\n+++ b/b.txt\n@@ -1 +1 @@\n-zwei\n+2\n"
    with pytest.raises(ToolFault, match=r"b\.txt: hunk 1"):
        await desk.call("apply_patch", patch=good + bad)
    assert (a.read_text(), b.read_text()) == ("one\n", "two\n")
    moved = "--- a/b.txt\n+++ b/c.txt\n@@ -1 +1 @@\n-two\n+2\n"
    await desk.call("apply_patch", patch=good + moved)
    assert (a.read_text(), b.exists(), (desk.root / "c.txt").read_text()) == ("1\n", False, "2\n")


async def test_changes_are_undone_latest_first_unless_somebody_else_changed_the_file(desk: Desk) -> None:
    path = desk.write("a.txt", "one\n")
    await desk.call("edit_file", path="a.txt", old="one", new="two")
    await desk.call("write_file", path="b.txt", content="new\n")
    assert (await desk.call("undo_edit")).text == "undone in b.txt"
    assert not (desk.root / "b.txt").exists()
    path.write_text("somebody else\n")
    with pytest.raises(ToolFault, match="was changed since"):
        await desk.call("undo_edit")
    path.write_text("two\n")
    await desk.call("undo_edit")
    assert path.read_text() == "one\n"
    with pytest.raises(ToolFault, match="no change of this run left"):
        await desk.call("undo_edit")


async def test_an_edit_that_a_killed_process_had_made_is_not_made_twice(desk: Desk) -> None:
    path = desk.write("a.txt", "a\n")
    await desk.call("edit_file", path="a.txt", old="a", new="aa")
    again = await desk.call(
        "edit_file", earlier=desk.notes[-1], path="a.txt", old="a", new="aa", replace_all=True
    )
    assert (path.read_text(), again.changed) == ("aa\n", True)


async def test_a_patch_that_a_killed_process_had_half_made_is_finished(desk: Desk) -> None:
    a, b = desk.write("a.txt", "one\n"), desk.write("b.txt", "two\n")
    patch = (
        "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+1\n--- a/b.txt\n+++ b/b.txt\n@@ -1 +1 @@\n-two\n+2\n"
    )
    await desk.call("apply_patch", patch=patch)
    b.write_text("two\n")
    await desk.call("apply_patch", earlier=desk.notes[-1], patch=patch)
    assert (a.read_text(), b.read_text()) == ("1\n", "2\n")


async def test_an_edit_is_not_finished_over_somebody_elses_change(desk: Desk) -> None:
    path = desk.write("a.txt", "one\n")
    await desk.call("edit_file", path="a.txt", old="one", new="two")
    path.write_text("three\n")
    with pytest.raises(ToolFault, match=r"changed by somebody else"):
        await desk.call("edit_file", earlier=desk.notes[-1], path="a.txt", old="one", new="two")


async def test_arguments_that_do_not_fit_say_what_the_tool_takes(desk: Desk) -> None:
    with pytest.raises(ToolFault, match=r"edit_file was not run.*nwe.*It takes: path, old, new, replace_all"):
        await desk.call("edit_file", path="a.txt", old="a", nwe="b")
