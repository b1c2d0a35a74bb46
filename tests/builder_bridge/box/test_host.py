"""What the box asks of its host."""

import os
from pathlib import Path

import pytest

from builder_bridge.box import Kind, make_root, start
from builder_bridge.box.host import cache_folder, locked, mirror, run
from builder_bridge.box.recipe import PARTS, digest
from builder_bridge.errors import BoxFault


def test_the_cache_is_closed_to_other_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POCKETBUILD_BOX_CACHE", str(tmp_path / "cache"))
    assert cache_folder() == tmp_path / "cache"
    assert cache_folder().stat().st_mode & 0o777 == 0o700


def test_the_cache_lies_where_the_desktop_standard_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("POCKETBUILD_BOX_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "pocketbuild/box"


def test_a_mirror_that_was_named_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POCKETBUILD_BOX_MIRROR", "http://mirror.example/debian/")
    assert mirror() == "http://mirror.example/debian"


def test_a_failed_program_is_named_with_what_it_said() -> None:
    with pytest.raises(BoxFault, match=r"Trying: sh ended with 3: no such luck"):
        run(["sh", "-c", "echo no such luck >&2; exit 3"], why="Trying")


def test_a_missing_program_is_named() -> None:
    with pytest.raises(BoxFault, match="no-such-program could not be run"):
        run(["no-such-program"], why="Trying")


def test_a_lock_is_held_until_the_block_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POCKETBUILD_BOX_CACHE", str(tmp_path))
    with locked("it"):
        pass
    with locked("it"):
        assert len(list((tmp_path / "locks").iterdir())) == 1


def test_kinds_and_architectures_have_recipes_of_their_own() -> None:
    digests = {digest(kind, architecture) for kind in Kind for architecture in ("amd64", "arm64")}
    assert len(digests) == 4


def test_everything_a_root_is_made_of_lies_in_the_package() -> None:
    names = {path.relative_to(PARTS).as_posix() for path in PARTS.rglob("*") if path.is_file()}
    assert {
        "init.c",
        "run_as.c",
        "boxprops.cpp",
        "applets",
        "bin/getprop",
        "prefix/bin/gradle",
    } <= names


@pytest.mark.skipif(os.geteuid() != 0, reason="drops root to see what the box says without it")
def test_without_root_the_box_says_so_and_makes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POCKETBUILD_BOX_CACHE", str(tmp_path))
    os.seteuid(65534)
    try:
        with pytest.raises(BoxFault, match="it needs root"):
            make_root(Kind.TINY, print)
    finally:
        os.seteuid(0)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["", "Box", "a/b", "..", "-a", "a" * 33])
def test_a_name_that_is_no_plain_word_is_refused(name: str) -> None:
    with pytest.raises(BoxFault, match="cannot name a box"):
        start(Kind.TINY, name)
