"""Artifacts get from a repository into the prefix, whole, once, and the next offline build finds them."""

import hashlib
import json
import subprocess
import sys
import zipfile
from io import BytesIO
from pathlib import Path

import anyio
import httpx
import pytest

from builder_bridge.adb import AdbConnection, connect, shell
from builder_bridge.box import Box
from builder_bridge.box.prefix import SHELL_DIR_PREFIX
from builder_bridge.bridge import Bridge, open_bridge
from builder_bridge.build import BuildSpec, LogChunk, RunId
from builder_bridge.errors import SeedFault
from builder_bridge.log.digest import make_digest
from builder_bridge.log.reader import LogReader
from builder_bridge.prefix.pom import parse_coordinate
from builder_bridge.prefix.repository import FolderRepository, HttpRepository, verify
from builder_bridge.prefix.seed import open_repositories, seed
from builder_bridge.routes.probe import pick_route
from builder_bridge.workspace.scan import scan
from tests.fake_prefix import files_of

pytestmark = pytest.mark.anyio
CLASS = b'package org.example; public final class Lib { public static String greet() { return "seeded"; } }\n'


def lay_module(repository: Path, coordinate: str, *dependencies: str, jar: bytes | None = None) -> None:
    """Put a module into a repository, with checksums as repositories have them."""
    at = parse_coordinate(coordinate)
    wants = "".join(
        f"<dependency><groupId>{each.group}</groupId><artifactId>{each.name}</artifactId>"
        f"<version>{each.version}</version></dependency>"
        for each in map(parse_coordinate, dependencies)
    )
    pom = (
        f"<project><modelVersion>4.0.0</modelVersion><groupId>{at.group}</groupId><artifactId>{at.name}"
        f"</artifactId><version>{at.version}</version><dependencies>{wants}</dependencies></project>"
    )
    for suffix, content in (
        (".pom", pom.encode()),
        (".jar", jar if jar is not None else b"PK" + at.name.encode()),
    ):
        path = repository / at.path(suffix)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        sha1 = hashlib.sha1(content, usedforsecurity=False).hexdigest()
        path.with_name(path.name + ".sha1").write_text(f"{sha1}  {path.name}\n")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    lay_module(folder, "org.example:top:1.0", "org.example.deep:below:2.0-rc+1")
    lay_module(folder, "org.example.deep:below:2.0-rc+1")
    return folder


@pytest.mark.box
@pytest.mark.parametrize("route_name", ["run_as", "shell_dir"])
async def test_what_was_brought_is_there_whole_and_is_not_brought_again(
    fake_box: Box, repository: Path, route_name: str
) -> None:
    wanted = [parse_coordinate("org.example:top:1.0")]
    async with connect(fake_box.serial) as adb, open_repositories([str(repository)]) as repositories:
        route = await pick_route(adb, (route_name,))
        first = await seed(route, wanted, repositories)
        again = await seed(route, wanted, repositories)
        lay_module(repository, "org.example:top:1.0", jar=b"PK another")
        mended = await seed(route, wanted, repositories)
    assert [path.rpartition("/")[2] for path in first.brought] == [
        "below-2.0-rc+1.jar", "below-2.0-rc+1.pom", "top-1.0.jar", "top-1.0.pom",
    ]  # fmt: skip
    assert first.missing == ()
    assert (again.brought, again.present) == ((), first.brought)
    assert {path.rpartition(".")[2] for path in mended.brought} == {"jar", "pom"}
    seeds = files_of(fake_box, route_name) / "usr/share/maven"
    for path in (*mended.brought, first.brought[0]):
        assert (seeds / path).read_bytes() == (repository / path).read_bytes()


@pytest.mark.box
async def test_nothing_is_sent_where_a_coordinate_is_unknown_or_a_file_is_damaged(
    fake_box: Box, repository: Path
) -> None:
    damaged = repository / parse_coordinate("org.example.deep:below:2.0-rc+1").path(".jar")
    damaged.write_bytes(b"PK damaged")
    seeds = files_of(fake_box, "shell_dir") / "usr/share/maven/org/example"
    before = sorted(seeds.rglob("*"))
    async with connect(fake_box.serial) as adb, open_repositories([str(repository)]) as repositories:
        route = await pick_route(adb, ("shell_dir",))
        for coordinate, told in (
            ("org.example:gone:1", "has org.example:gone:1"),
            ("org.example:top:1.0", "sha1"),
        ):
            with pytest.raises(SeedFault, match=told):
                await seed(route, [parse_coordinate(coordinate)], repositories)
    assert sorted(seeds.rglob("*")) == before


@pytest.mark.box
async def test_the_command_says_what_it_brought_and_what_is_missing(fake_box: Box, repository: Path) -> None:
    lay_module(repository, "org.example:half:1.0", "org.example:nowhere:9")
    command = [sys.executable, "-m", "orchestrator", "seed", "org.example:half:1.0", "--json"]
    options = ["--from", str(repository), "--device", fake_box.serial, "--route", "shell_dir"]
    ended = await anyio.run_process([*command, *options], check=False)
    assert ended.returncode == 1, ended.stderr
    document = json.loads(ended.stdout)
    assert document["missing"] == ["org.example:nowhere:9: no repository has its POM"]
    assert {*document["brought"]} == {f"org/example/half/1.0/half-1.0.{end}" for end in ("jar", "pom")}


def test_without_a_repository_the_command_says_how_to_name_one(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "orchestrator", "seed", "a:b:1"],
        env={"HOME": str(tmp_path), "PATH": "/nonexistent"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 2
    assert "--from" in ended.stderr
    assert "repositories = [" in ended.stderr


async def test_a_folder_that_is_none_is_no_repository(tmp_path: Path) -> None:
    with pytest.raises(SeedFault, match="neither"):
        async with open_repositories([str(tmp_path / "none")]):
            pass


def serving(files: dict[str, httpx.Response]) -> httpx.AsyncClient:
    transport = httpx.MockTransport(lambda request: files.get(request.url.path, httpx.Response(404)))
    return httpx.AsyncClient(transport=transport, follow_redirects=True, max_redirects=5)


async def test_a_server_gives_files_and_its_checksums_are_believed(tmp_path: Path) -> None:
    good = hashlib.sha256(b"jar").hexdigest()
    answers = {
        "/m/a.jar": httpx.Response(200, content=b"jar"),
        "/m/a.jar.sha256": httpx.Response(200, text=good),
        "/m/b.jar": httpx.Response(200, content=b"jar"),
        "/m/b.jar.sha1": httpx.Response(200, text="0" * 40),
        "/m/c.jar": httpx.Response(302, headers={"location": "http://repo.invalid/m/a.jar"}),
        "/m/d.jar": httpx.Response(403),
    }
    async with serving(answers) as http:
        there = HttpRepository(http, "https://me:secret@repo.invalid/m")
        assert await there.read("a.jar", tmp_path / "a", 10)
        await verify(there, "a.jar", tmp_path / "a")
        assert (tmp_path / "a").read_bytes() == b"jar"
        assert not await there.read("gone.jar", tmp_path / "x", 10)
        assert await there.read("b.jar", tmp_path / "b", 10)
        with pytest.raises(SeedFault, match="its repository says 0000"):
            await verify(there, "b.jar", tmp_path / "b")
        for path, told, limit in (
            ("c.jar", "plain http", 10),
            ("d.jar", "403", 10),
            ("a.jar", "over 2 bytes", 2),
        ):
            with pytest.raises(SeedFault, match=told) as fault:
                await there.read(path, tmp_path / "x", limit)
            assert "secret" not in str(fault.value)


async def test_a_folder_gives_no_file_that_is_too_large(tmp_path: Path) -> None:
    (tmp_path / "a.jar").write_bytes(b"12345")
    with pytest.raises(SeedFault, match="over 4 bytes"):
        await FolderRepository(tmp_path).read("a.jar", tmp_path / "out", 4)


async def make_jar(adb: AdbConnection) -> bytes:
    """Compile the library with the prefix's own javac, and pack it."""
    line = (
        f". {SHELL_DIR_PREFIX}/etc/env.sh; made=$TMPDIR/library; mkdir -p $made && cat >$made/Lib.java"
        " && javac --release 8 -Xlint:-options -d $made $made/Lib.java >&2"
        " && cat $made/org/example/Lib.class; rm -rf $made"
    )
    result = await shell.run(adb, f"env -i /system/bin/sh -c '{line}'", CLASS)
    assert result.stdout, result.stderr
    jar = BytesIO()
    with zipfile.ZipFile(jar, "w") as out:
        out.writestr("org/example/Lib.class", result.stdout)
    return jar.getvalue()


def lay_workspace(root: Path) -> Path:
    for path, content in {
        "settings.gradle": "rootProject.name = 'wanting'\ninclude ':app'\n",
        "app/build.gradle": "apply plugin: 'java'\nrepositories { mavenCentral() }\n"
        "dependencies { compile 'org.example:lib:1.0' }\n",
        "app/src/main/java/Main.java": "class Main { String said = org.example.Lib.greet(); }\n",
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(content)
    return root


async def build(bridge: Bridge, run_id: str, workspace: Path) -> tuple[bool, bytes]:
    log = b""
    await bridge.submit(RunId(run_id), BuildSpec(tasks=("assemble",)), scan(workspace))
    async for event in bridge.follow(RunId(run_id)):
        if isinstance(event, LogChunk):
            log += event.data
    return (await bridge.result(RunId(run_id))).is_success, log


@pytest.mark.box
@pytest.mark.slow
@pytest.mark.xdist_group("agp")
async def test_a_build_that_lacks_a_library_is_green_after_the_line_its_digest_advises(
    agp_box: Box, tmp_path: Path
) -> None:
    repository = tmp_path / "repository"
    repository.mkdir()
    workspace = lay_workspace(tmp_path / "wanting")
    async with (
        connect(agp_box.serial) as adb,
        open_bridge(adb, ("shell_dir",), memory=tmp_path / "memory") as bridge,
        open_repositories([str(repository)]) as repositories,
    ):
        lay_module(repository, "org.example:lib:1.0", jar=await make_jar(adb))
        is_green, log = await build(bridge, "seed-before", workspace)
        assert not is_green
        reader = LogReader()
        reader.feed(log)
        digest = make_digest(reader.close())
        assert digest.kind == "offline_dependency", log.decode()[-3000:]
        assert any("`pocketbuild seed org.example:lib:1.0`" in line for line in digest.advice), digest
        route = await pick_route(adb, ("shell_dir",))
        report = await seed(route, [parse_coordinate("org.example:lib:1.0")], repositories)
        assert len(report.brought) == 2
        is_green, log = await build(bridge, "seed-after", workspace)
        assert is_green, log.decode()[-3000:]
        await shell.run(adb, f"rm -rf {SHELL_DIR_PREFIX}/share/maven")
