"""Scanning: what is in a snapshot, what is left out, what is refused."""

import os
from pathlib import Path

import pytest

from builder_bridge.errors import WorkspaceFault
from builder_bridge.workspace.hashes import HashCache
from builder_bridge.workspace.ignore import ScanRules
from builder_bridge.workspace.scan import read_chunks, scan
from builder_bridge.workspace.snapshot import Snapshot, SnapshotLink


def make(root: Path, *paths: str) -> Path:
    for path in paths:
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(path)
    return root


def paths_of(snapshot: Snapshot) -> list[str]:
    return [file.path for file in snapshot.files]


def notes_of(snapshot: Snapshot) -> dict[str, str]:
    return {note.path: note.code for note in snapshot.notes}


def test_what_gradle_made_stays_behind_and_a_package_called_build_goes(tmp_path: Path) -> None:
    make(
        tmp_path, "settings.gradle", "app/build.gradle", "app/build/out.apk", "build/x", ".gradle/y",
        "app/src/main/java/org/build/Tool.java", "lib/build/kept.txt", ".git/HEAD", ".idea/ws.xml",
        "app/app.iml",
    )  # fmt: skip
    assert paths_of(scan(tmp_path)) == [
        "app/build.gradle",
        "app/src/main/java/org/build/Tool.java",
        "lib/build/kept.txt",
        "settings.gradle",
    ]


def test_git_goes_along_when_the_rules_say_so(tmp_path: Path) -> None:
    make(tmp_path, "settings.gradle", ".git/HEAD")
    assert ".git/HEAD" in paths_of(scan(tmp_path, ScanRules(has_git=True)))


def test_an_ignore_file_adds_patterns_and_takes_back_built_in_ones(tmp_path: Path) -> None:
    make(
        tmp_path, "settings.gradle", "build/keep.txt", "docs/a.md", "docs/b.txt", "sub/docs/c.md", "sub/x.log"
    )
    (tmp_path / ".pocketbuildignore").write_text("/docs/*\n!/docs/b.txt\n!build/\n*.log\n")
    (tmp_path / "sub/.pocketbuildignore").write_text("!x.log\n")
    assert paths_of(scan(tmp_path)) == [
        ".pocketbuildignore", "build/keep.txt", "docs/b.txt", "settings.gradle",
        "sub/.pocketbuildignore", "sub/docs/c.md", "sub/x.log",
    ]  # fmt: skip


@pytest.mark.parametrize("line", ["!", "odd\\", "[z-a]x"])
def test_a_pattern_that_is_none_is_named_by_file_and_line(tmp_path: Path, line: str) -> None:
    make(tmp_path, "sub/a.txt")
    (tmp_path / "sub/.pocketbuildignore").write_text(f"*.log\n{line}\n")
    with pytest.raises(WorkspaceFault) as caught:
        scan(tmp_path)
    assert str(caught.value) == f"line 2 of sub/.pocketbuildignore is no pattern: {line!r}"


def test_modes_keep_the_bit_for_running_and_nothing_else(tmp_path: Path) -> None:
    make(tmp_path, "gradlew", "a.txt")
    (tmp_path / "gradlew").chmod(0o4777)
    (tmp_path / "a.txt").chmod(0o660)
    assert {file.path: file.mode for file in scan(tmp_path).files} == {"gradlew": 0o755, "a.txt": 0o644}


def test_links_inside_are_kept_as_links_and_absolute_ones_made_relative(tmp_path: Path) -> None:
    make(tmp_path, "shared/res/a.png")
    (tmp_path / "app").mkdir()
    (tmp_path / "app/res").symlink_to("../shared/res")
    (tmp_path / "app/abs").symlink_to(tmp_path / "shared/res/a.png")
    snapshot = scan(tmp_path)
    assert snapshot.links == (
        SnapshotLink("app/abs", "../shared/res/a.png"),
        SnapshotLink("app/res", "../shared/res"),
    )
    assert paths_of(snapshot) == ["shared/res/a.png"]


def test_a_link_to_outside_is_refused_by_name_or_copied_when_allowed(tmp_path: Path) -> None:
    outside = make(tmp_path / "outside", "assets/deep/a.bin")
    workspace = make(tmp_path / "workspace", "settings.gradle")
    (workspace / "assets").symlink_to(outside / "assets")
    with pytest.raises(WorkspaceFault, match="assets links to"):
        scan(workspace)
    copied = scan(workspace, ScanRules(materialise_outside_links=True))
    assert paths_of(copied) == ["assets/deep/a.bin", "settings.gradle"]
    assert notes_of(copied)["assets"] == "materialised"
    file = copied.files[0]
    assert b"".join(read_chunks(copied, file)) == b"assets/deep/a.bin"


def test_a_copied_link_that_holds_itself_is_refused(tmp_path: Path) -> None:
    workspace = make(tmp_path / "a/workspace", "settings.gradle")
    (workspace / "up").symlink_to(tmp_path / "a")
    with pytest.raises(WorkspaceFault, match="holds the link itself"):
        scan(workspace, ScanRules(materialise_outside_links=True))


def test_dangling_links_and_odd_files_are_left_out_with_a_note(tmp_path: Path) -> None:
    make(tmp_path, "settings.gradle")
    (tmp_path / ".#draft").symlink_to("user@host.1234")
    os.mkfifo(tmp_path / "pipe")
    snapshot = scan(tmp_path)
    assert paths_of(snapshot) == ["settings.gradle"]
    assert notes_of(snapshot) == {".#draft": "dangling_link", "pipe": "not_a_file"}


def test_names_that_fold_together_are_noted(tmp_path: Path) -> None:
    make(tmp_path, "Readme.txt", "README.txt", "é.txt", "e\u0301.txt")
    assert set(notes_of(scan(tmp_path)).values()) == {"case_clash", "same_after_normalising"}


@pytest.mark.parametrize(
    "name", ["a b.txt", "-rf", "$(x)", "quote'\"", "new\nline", "tab\t", "ünï.txt", "a;b|c&d", "*"]
)
def test_odd_names_are_taken_as_they_are(tmp_path: Path, name: str) -> None:
    make(tmp_path, name)
    assert paths_of(scan(tmp_path)) == [name]


def test_a_name_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"bad\xff.txt")).write_text("x")
    with pytest.raises(WorkspaceFault, match="not UTF-8"):
        scan(tmp_path)


def test_host_folders_leave_local_properties_in_the_copy_only(tmp_path: Path) -> None:
    original = "sdk.dir=/home/me/sdk\nmaps.key=abc\nndk.dir = C\\:\\\\\n"
    (tmp_path / "local.properties").write_text(original)
    snapshot = scan(tmp_path)
    assert b"".join(read_chunks(snapshot, snapshot.files[0])) == b"maps.key=abc\n"
    assert notes_of(snapshot) == {"local.properties": "rewritten"}
    assert (tmp_path / "local.properties").read_text() == original


def test_a_pinned_daemon_jvm_is_dropped_from_the_copy(tmp_path: Path) -> None:
    make(tmp_path, "gradle/gradle-daemon-jvm.properties", "gradle/wrapper/gradle-wrapper.properties")
    assert paths_of(scan(tmp_path)) == ["gradle/wrapper/gradle-wrapper.properties"]


@pytest.mark.parametrize(
    ("rules", "named"),
    [(ScanRules(max_files=2), "max_files = 2"), (ScanRules(max_size_bytes=5), "max_size_bytes = 5")],
)
def test_limits_are_named_when_they_are_passed(tmp_path: Path, rules: ScanRules, named: str) -> None:
    make(tmp_path, "aaa", "bbb", "ccc")
    with pytest.raises(WorkspaceFault, match=named):
        scan(tmp_path, rules)


def test_a_file_that_changes_after_the_scan_is_noticed(tmp_path: Path) -> None:
    make(tmp_path, "a.txt")
    snapshot = scan(tmp_path)
    (tmp_path / "a.txt").write_text("other")
    with pytest.raises(WorkspaceFault, match=r"a\.txt .*changed"):
        list(read_chunks(snapshot, snapshot.files[0]))


def test_the_fingerprint_counts_content_paths_and_modes_but_not_time_or_place(tmp_path: Path) -> None:
    first = make(tmp_path / "one", "a/b.txt", "c.txt")
    second = make(tmp_path / "two", "c.txt", "a/b.txt")
    os.utime(second / "c.txt", (1, 1))
    assert scan(first).fingerprint == scan(second).fingerprint
    (second / "c.txt").chmod(0o755)
    assert scan(first).fingerprint != scan(second).fingerprint
    assert scan(first).place != scan(second).place


def test_remembered_digests_follow_every_change_of_a_file(tmp_path: Path) -> None:
    workspace = make(tmp_path / "workspace", "a.txt", "b.txt")
    os.utime(workspace / "a.txt", (1_000_000_000, 1_000_000_000))
    store = tmp_path / "hashes.json"
    cache = HashCache(store)
    before = scan(workspace, hashes=cache)
    cache.save()
    (workspace / "a.txt").write_text("A.TXT")
    os.utime(workspace / "a.txt", (1_000_000_000, 1_000_000_000))
    again = scan(workspace, hashes=HashCache(store))
    assert again.fingerprint != before.fingerprint
    assert again.fingerprint == scan(workspace).fingerprint


@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": 1, "files": {"x": 3}}', '{"format": 9}'])
def test_a_damaged_memory_of_digests_counts_as_empty(tmp_path: Path, content: str) -> None:
    workspace = make(tmp_path / "workspace", "a.txt")
    (tmp_path / "hashes.json").write_text(content)
    assert scan(workspace, hashes=HashCache(tmp_path / "hashes.json")) == scan(workspace)
