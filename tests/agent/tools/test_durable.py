"""Files that are put in place whole, on disk, and without a trace of an attempt that was cut short."""

from pathlib import Path

import pytest

from agent.message import ToolCall
from agent.tools.confine import Workspace
from agent.tools.durable import put, unfinished
from agent.tools.edits import Change, Edits
from agent.tools.files import walk
from agent.tools.tool import CallContext
from builder_bridge.workspace.scan import scan
from tests.fakes_provider import Watcher

CONTEXT = CallContext(ToolCall("c", "write_file", {}), lambda note: None, Watcher())


def test_a_file_is_put_into_folders_that_are_made_and_is_taken_away_again(tmp_path: Path) -> None:
    path = tmp_path / "a/b/c.txt"
    put(path, b"one")
    assert path.read_bytes() == b"one"
    path.chmod(0o750)
    put(path, b"two")
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"two", 0o750)
    put(path, None)
    put(path, None)
    assert list((tmp_path / "a/b").iterdir()) == []


def test_a_name_as_long_as_a_file_system_takes_is_written(tmp_path: Path) -> None:
    put(tmp_path / ("n" * 255), b"one")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"one"]


@pytest.mark.parametrize("is_dangling", [True, False])
def test_a_link_in_the_place_of_the_new_content_leads_nowhere(tmp_path: Path, is_dangling: bool) -> None:
    outside, path = tmp_path / "outside", tmp_path / "w/a.txt"
    path.parent.mkdir()
    if not is_dangling:
        outside.write_bytes(b"kept")
    unfinished(path).symlink_to(outside)
    put(path, b"new")
    assert path.read_bytes() == b"new"
    assert not path.is_symlink()
    assert outside.exists() is not is_dangling
    assert is_dangling or outside.read_bytes() == b"kept"


def test_what_a_killed_edit_left_is_neither_listed_nor_built(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one\n")
    unfinished(path).write_text("half")
    assert list(walk(Workspace(tmp_path), tmp_path)) == ["a.txt"]
    snapshot = scan(tmp_path)
    assert [file.path for file in snapshot.files] == ["a.txt"]
    assert [(note.code, note.detail) for note in snapshot.notes] == [
        ("left_out", "an edit that was cut short")
    ]


def test_what_a_killed_edit_left_goes_when_its_run_goes_on_or_the_file_is_put_again(tmp_path: Path) -> None:
    root = tmp_path / "w"
    root.mkdir()
    path, other, gone = root / "a.txt", root / "b.txt", root / "gone/c.txt"
    edits = Edits(Workspace(root), tmp_path / "edits")
    edits.make([Change(path, None, b"one"), Change(gone, None, b"one")], CONTEXT)
    put(gone, None)
    gone.parent.rmdir()
    gone.parent.write_text("a file now")
    for each in (path, other):
        unfinished(each).write_text("half")
    Edits(Workspace(root), tmp_path / "edits")
    assert not unfinished(path).exists()
    put(other, b"two")
    assert sorted(each.name for each in root.iterdir()) == ["a.txt", "b.txt", "gone"]
