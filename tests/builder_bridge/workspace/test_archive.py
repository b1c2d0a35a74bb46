"""Archives: the same bytes for the same content, and nothing hostile gets out of one."""

import os
import stat
import subprocess
import zipfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder_bridge.errors import WorkspaceFault
from builder_bridge.workspace.archive import UnpackLimits, time_from_digest, unpack, write_archive, write_pack
from builder_bridge.workspace.scan import scan


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    root = tmp_path / "workspace"
    for path, content in {
        "settings.gradle": "include ':app'",
        "gradlew": "#!/bin/sh",
        "app/ümläut/ and space.txt": "x" * 5000,
        "app/libs/a.jar": "PK stored",
        "app/empty": "",
        "app/new\nline": "y",
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(content)
    (root / "gradlew").chmod(0o755)
    (root / "app/link").symlink_to("../gradlew")
    return root


def test_the_same_content_gives_the_same_bytes_whatever_its_times(workspace: Path, tmp_path: Path) -> None:
    first = write_archive(scan(workspace), tmp_path / "1.zip")
    for path in workspace.rglob("*"):
        os.utime(path, (0, 0), follow_symlinks=False)
    second = write_archive(scan(workspace), tmp_path / "2.zip")
    assert (tmp_path / "1.zip").read_bytes() == (tmp_path / "2.zip").read_bytes()
    assert first.sha256 == second.sha256
    assert first.entries == 7


def test_content_modes_and_links_come_back_from_unpacking(workspace: Path, tmp_path: Path) -> None:
    write_archive(scan(workspace), tmp_path / "a.zip")
    assert unpack(tmp_path / "a.zip", tmp_path / "out") == 7
    assert scan(tmp_path / "out").fingerprint == scan(workspace).fingerprint


def test_info_zip_gives_the_same_files_and_the_times_of_their_digests(
    workspace: Path, tmp_path: Path
) -> None:
    snapshot = scan(workspace)
    write_archive(snapshot, tmp_path / "a.zip")
    environment = {**os.environ, "TZ": "UTC0", "LC_ALL": "C.UTF-8"}
    subprocess.run(
        ["unzip", "-q", "-^", tmp_path / "a.zip", "-d", tmp_path / "out"], check=True, env=environment
    )
    assert scan(tmp_path / "out").fingerprint == snapshot.fingerprint
    for file in snapshot.files:
        seconds = zipfile.ZipInfo("x", time_from_digest(file.sha256)).date_time
        listed = subprocess.run(
            ["date", "-u", "-r", tmp_path / "out" / file.path, "+%Y %-m %-d %-H %-M %-S"],
            check=True,
            capture_output=True,
            text=True,
        )
        assert tuple(int(word) for word in listed.stdout.split()) == seconds


def test_a_changed_file_of_the_same_size_gets_another_time(tmp_path: Path) -> None:
    times = set()
    for content in ("a", "b", "c"):
        (tmp_path / "f").write_text(content)
        times.add(time_from_digest(scan(tmp_path).files[0].sha256))
    assert len(times) == 3


def test_a_pack_holds_wanted_contents_once_under_their_digests(workspace: Path, tmp_path: Path) -> None:
    (workspace / "copy").write_text("y")
    snapshot = scan(workspace)
    wanted = [file.sha256 for file in snapshot.files if file.path in ("copy", "app/new\nline", "gradlew")]
    pack = write_pack(snapshot, [*wanted, "0" * 64], tmp_path / "pack.zip")
    assert pack.entries == 2
    with zipfile.ZipFile(tmp_path / "pack.zip") as source:
        assert sorted(source.namelist()) == sorted(set(wanted))


def test_a_file_that_changed_since_the_scan_never_gets_into_an_archive(
    workspace: Path, tmp_path: Path
) -> None:
    snapshot = scan(workspace)
    (workspace / "gradlew").write_text("other")
    with pytest.raises(WorkspaceFault, match="gradlew"):
        write_archive(snapshot, tmp_path / "a.zip")


@pytest.mark.slow
def test_more_entries_than_a_plain_zip_can_count_arrive_whole(tmp_path: Path) -> None:
    template = tmp_path / "workspace"
    template.mkdir()
    (template / "f").write_text("x")
    one = scan(template)
    files = tuple(replace(one.files[0], path=f"d{n % 100}/f{n}", content=b"x") for n in range(70_000))
    archive = write_archive(replace(one, files=files), tmp_path / "a.zip")
    assert archive.entries == 70_000
    total = subprocess.run(["unzip", "-Zt", tmp_path / "a.zip"], check=True, capture_output=True, text=True)
    assert total.stdout.startswith("70000 files, 70000 bytes uncompressed")
    assert sum(1 for _ in zipfile.ZipFile(tmp_path / "a.zip").namelist()) == 70_000


def hostile(path: Path, *entries: tuple[str, bytes, int]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for name, content, mode in entries:
            info = zipfile.ZipInfo("placeholder")
            info.filename = info.orig_filename = name
            info.create_system = 3
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = mode << 16
            out.writestr(info, content)
    return path


FILE, LINK = stat.S_IFREG | 0o644, stat.S_IFLNK | 0o777
HOSTILE = {
    "absolute": [("/etc/passwd", b"x", FILE)],
    "dot_dot": [("a/../../x", b"x", FILE)],
    "only_dot_dot": [("..", b"x", FILE)],
    "dot": [("./x", b"x", FILE)],
    "empty_part": [("a//b", b"x", FILE)],
    "link_outside": [("l", b"../../etc", LINK)],
    "link_absolute": [("l", b"/etc/passwd", LINK)],
    "through_link": [("d", b"sub", LINK), ("d/x", b"x", FILE)],
    "through_file": [("d", b"x", FILE), ("d/x", b"x", FILE)],
    "twice": [("x", b"1", FILE), ("x", b"2", FILE)],
    "folder_and_file": [("x", b"1", FILE), ("x/", b"", stat.S_IFDIR | 0o755)],
    "device": [("x", b"", stat.S_IFCHR | 0o644)],
    "pipe": [("x", b"", stat.S_IFIFO | 0o644)],
    "bomb": [("x", b"\0" * (3 << 20), FILE)],
}


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_archive_is_refused_and_writes_nothing_outside(tmp_path: Path, name: str) -> None:
    archive = hostile(tmp_path / "a.zip", *HOSTILE[name])
    with pytest.raises(WorkspaceFault):
        unpack(archive, tmp_path / "deep/er/out")
    outside = [path for path in tmp_path.rglob("*") if path.is_file() and "out" not in path.parts]
    assert outside == [archive]


def test_setuid_bits_of_an_archive_are_not_set(tmp_path: Path) -> None:
    unpack(hostile(tmp_path / "a.zip", ("x", b"x", stat.S_IFREG | 0o6755)), tmp_path / "out")
    assert stat.S_IMODE((tmp_path / "out/x").stat().st_mode) == 0o755


@pytest.mark.parametrize("limits", [UnpackLimits(max_entries=1), UnpackLimits(max_size_bytes=10)])
def test_an_archive_over_the_limits_is_refused(tmp_path: Path, limits: UnpackLimits) -> None:
    archive = hostile(tmp_path / "a.zip", ("x", b"123456", FILE), ("y", b"123456", FILE))
    with pytest.raises(WorkspaceFault, match="allowed"):
        unpack(archive, tmp_path / "out", limits)


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_content_that_no_longer_unpacks_is_refused_whatever_packed_it(tmp_path: Path, method: int) -> None:
    archive = tmp_path / "a.zip"
    with zipfile.ZipFile(archive, "w", method) as out:
        out.writestr("x", bytes(number * number % 251 for number in range(4000)))
    content = bytearray(archive.read_bytes())
    content[60:90] = b"\xff" * 30
    archive.write_bytes(content)
    with pytest.raises(WorkspaceFault, match=r"cannot unpack a\.zip"):
        unpack(archive, tmp_path / "out")


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_damaged_archives_are_refused_with_a_named_fault_or_give_files_inside(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("fuzz")
    archive = hostile(folder / "a.zip", ("d/x", b"hello" * 50, FILE), ("l", b"d/x", LINK), ("y", b"", FILE))
    content = bytearray(archive.read_bytes())
    for _ in range(data.draw(st.integers(1, 6))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    archive.write_bytes(content[: data.draw(st.integers(0, len(content)))])
    with suppress(WorkspaceFault):
        unpack(archive, folder / "out")
    assert {path.name for path in folder.iterdir()} <= {"a.zip", "out"}
