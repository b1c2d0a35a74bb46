"""Version control without running anything that the workspace names."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from agent.errors import ToolFault
from agent.message import JsonObject, ToolCall
from agent.tools.confine import Workspace
from agent.tools.durable import unfinished
from agent.tools.git import Author, Git
from agent.tools.tool import CallContext, Output
from tests.fakes_provider import Watcher

pytestmark = pytest.mark.anyio


def git(root: Path, *arguments: str) -> str:
    command = ["git", "-C", str(root), "-c", "user.name=t", "-c", "user.email=t@t.invalid", *arguments]
    return subprocess.run(
        command, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL
    ).stdout


def attempt(root: Path, *arguments: str) -> None:
    """Run git as it is, to see that a trap works; it may fail."""
    command = ["git", "-C", str(root), *arguments]
    subprocess.run(command, check=False, capture_output=True, stdin=subprocess.DEVNULL, timeout=60)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    git(tmp_path, "init", "--quiet")
    (tmp_path / "a.txt").write_text("one\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message=start")
    return tmp_path


async def call(
    root: Path,
    name: str,
    notes: list[JsonObject] | None = None,
    earlier: JsonObject | None = None,
    **arguments: Any,
) -> Output:
    tools = {tool.name: tool for tool in Git(Workspace(root), Author("Ann", "ann@example.invalid")).tools()}
    note = (notes if notes is not None else []).append
    context = CallContext(ToolCall("c", name, arguments), note, Watcher(), earlier)
    output: Output = await tools[name].run(tools[name].parse(arguments), context)
    return output


async def test_status_diff_and_commit(root: Path) -> None:
    (root / "a.txt").write_text("two\n")
    (root / "b.txt").write_text("new\n")
    assert " M a.txt\n?? b.txt" in (await call(root, "git_status")).text
    assert "-one\n+two" in (await call(root, "git_diff")).text
    assert "Change a" in (await call(root, "git_commit", message="Change a\n\nBecause.")).text
    assert git(root, "log", "-1", "--format=%an <%ae> %s") == "Ann <ann@example.invalid> Change a\n"
    assert git(root, "status", "--porcelain") == ""
    assert (await call(root, "git_diff")).text == "[no differences]"


async def test_a_diff_that_is_far_too_long_is_cut(root: Path) -> None:
    (root / "a.txt").write_text("a line of a long file\n" * 300_000)
    shown = (await call(root, "git_diff")).text
    assert len(shown) < 5 << 20
    assert shown.endswith("\n[cut after 4 MiB; git goes on]")


async def test_files_that_hold_secrets_are_neither_shown_nor_committed(root: Path) -> None:
    (root / "app").mkdir()
    (root / "app/.env").write_text("TOKEN=1\n")
    (root / "app/release.JKS").write_text("key\n")
    (root / "a.txt").write_text("two\n")
    await call(root, "git_commit", message="m")
    assert git(root, "show", "--format=", "--name-only").split() == ["a.txt"]


async def test_what_a_killed_edit_left_is_not_committed(root: Path) -> None:
    (root / "app").mkdir()
    for path in (root / "a.txt", root / "app/b.txt"):
        unfinished(path).write_text("half")
        path.write_text("two\n")
    await call(root, "git_commit", message="m")
    assert git(root, "show", "--format=", "--name-only").split() == ["a.txt", "app/b.txt"]


def hostile(root: Path, program: Path) -> None:
    """Name a program wherever a repository's own configuration lets git start one."""
    for hook in ("pre-commit", "post-commit", "commit-msg", "prepare-commit-msg", "post-index-change",
                 "reference-transaction"):  # fmt: skip
        path = root / ".git/hooks" / hook
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{program} hook-{hook}\n")
        path.chmod(0o755)
    for key in PROGRAMS:
        git(root, "config", key, f"{'!' if key.startswith('alias') else ''}{program} {key}")
    for key in ("commit.gpgSign", "log.showSignature", "status.submoduleSummary", "submodule.recurse"):
        git(root, "config", key, "true")
    for name in FILTERS:
        for key in ("clean", "smudge", "process"):
            git(root, "config", f"filter.{name}.{key}", f"{program} filter-{key}")
    lines = (f"{n}.txt filter={name} diff=evil" for n, name in enumerate(FILTERS))
    (root / ".gitattributes").write_text("\n".join(lines) + "\n")
    for n, _ in enumerate(FILTERS):
        (root / f"{n}.txt").write_text("two\n")
    (root / "a.txt").write_text("two\n")


PROGRAMS = (
    "core.fsmonitor", "diff.external", "core.pager", "core.editor", "gpg.program", "core.sshCommand",
    "core.askPass", "credential.helper", "sequence.editor", "core.alternateRefsCommand", "alias.status",
    "diff.evil.textconv", "diff.evil.command", "trailer.x.command",
)  # fmt: skip
FILTERS = ("evil", "a=b", "a.b", "a\x0bb", "a\u00a0b", "UPPER")
"""Names of filters, some of which come apart where a program splits or puts them into arguments."""


@pytest.fixture
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a program that writes down what it was started as, in `started` beside it."""
    folder = tmp_path_factory.mktemp("program")
    program = folder / "run"
    program.write_text(f'#!/bin/sh\necho "$1" >> {folder}/started\n')
    program.chmod(0o755)
    return program


def started(program: Path) -> set[str]:
    told = program.parent / "started"
    return set(told.read_text().split()) if told.exists() else set()


async def look_and_commit(root: Path) -> None:
    await call(root, "git_status")
    await call(root, "git_diff")
    await call(root, "git_diff", revision="HEAD", path="a.txt")
    await call(root, "git_commit", message="m")


async def test_nothing_that_the_workspace_names_is_run(root: Path, program: Path) -> None:
    hostile(root, program)
    await look_and_commit(root)
    assert started(program) == set()
    assert git(root, "-c", "log.showSignature=false", "log", "-1", "--format=%s") == "m\n"
    for n, _ in enumerate(FILTERS):
        (root / f"{n}.txt").write_text("three\n")
    attempt(root, "status")
    attempt(root, "add", "--all")
    assert {"filter-process", "core.fsmonitor"} <= started(program), "the trap does not work"


async def test_submodules_are_neither_looked_into_nor_committed(root: Path, program: Path) -> None:
    inner = root / "sub"
    git(root, "init", "--quiet", "sub")
    (inner / "0.txt").write_text("one\n")
    git(inner, "add", ".")
    git(inner, "commit", "--quiet", "--message=inner")
    git(root, "add", "sub")
    git(root, "commit", "--quiet", "--message=outer")
    hostile(inner, program)
    started_before = started(program)
    (root / "a.txt").write_text("two\n")
    await look_and_commit(root)
    assert started(program) == started_before
    assert git(root, "show", "--format=", "--name-only").split() == ["a.txt"]
    attempt(root, "status", "--short")
    assert started(program) > started_before, "the trap does not work"


@pytest.mark.parametrize("url", ["ext::{program} remote", "{root}"])
async def test_what_is_missing_is_not_fetched(root: Path, program: Path, url: str) -> None:
    blob = git(root, "rev-parse", "HEAD:a.txt").strip()
    (root / ".git/objects" / blob[:2] / blob[2:]).unlink()
    for key, value in (
        ("core.repositoryFormatVersion", "1"),
        ("extensions.partialClone", "origin"),
        ("remote.origin.url", url.format(program=program, root=root)),
        ("remote.origin.promisor", "true"),
        ("remote.origin.uploadpack", f"{program} remote"),
        ("protocol.ext.allow", "always"),
        ("protocol.file.allow", "always"),
    ):
        git(root, "config", key, value)
    (root / "a.txt").write_text("two\n")
    with pytest.raises(ToolFault):
        await call(root, "git_diff")
    assert started(program) == set()
    attempt(root, "diff", "HEAD")
    assert started(program) == {"remote"}, "the trap does not work"


async def test_a_broken_repository_never_leads_to_the_one_around_it(root: Path) -> None:
    inner = root / "inner"
    (inner / ".git").mkdir(parents=True)
    (inner / "b.txt").write_text("x\n")
    with pytest.raises(ToolFault, match="not a git repository"):
        await call(inner, "git_commit", message="m")
    assert git(root, "log", "--format=%s") == "start\n"


async def test_tracked_secrets_are_neither_shown_nor_committed(root: Path) -> None:
    (root / ".ssh").mkdir()
    names = [".env", ".ssh/config", "KEY.pem"]
    for name in names:
        (root / name).write_text("first\n")
    git(root, "add", ".")
    git(root, "commit", "--quiet", "--message=secrets")
    for name in names:
        (root / name).write_text("second\n")
    (root / "a.txt").write_text("two\n")
    shown = (await call(root, "git_diff")).text
    assert ["+two" in shown, "second" in shown] == [True, False]
    await call(root, "git_commit", message="m")
    assert git(root, "show", "--format=", "--name-only").split() == ["a.txt"]


async def test_a_diff_is_of_the_file_that_is_named_and_no_pattern(root: Path) -> None:
    (root / "[a].txt").write_text("x\n")
    git(root, "add", ".")
    git(root, "commit", "--quiet", "--message=more")
    (root / "a.txt").write_text("two\n")
    (root / "[a].txt").write_text("y\n")
    assert "+two" not in (await call(root, "git_diff", path="[a].txt")).text
    assert "+two" in (await call(root, "git_diff", path=f"{root}/a.txt")).text


async def test_a_commit_that_a_killed_process_had_made_is_not_made_twice(root: Path) -> None:
    (root / "a.txt").write_text("two\n")
    notes: list[JsonObject] = []
    first = await call(root, "git_commit", notes, message="m")
    again = await call(root, "git_commit", earlier=notes[-1], message="m")
    assert again.text == first.text
    assert git(root, "log", "--format=%s").split() == ["m", "start"]


async def test_an_empty_commit_is_a_fault_in_words(root: Path) -> None:
    with pytest.raises(ToolFault, match="nothing to commit"):
        await call(root, "git_commit", message="m")


@pytest.mark.parametrize("revision", ["--output=x", "HEAD;ls", "-p"])
async def test_a_revision_is_never_an_option(root: Path, revision: str) -> None:
    with pytest.raises(ToolFault, match="revision"):
        await call(root, "git_diff", revision=revision)


async def test_a_folder_without_a_repository_has_no_git_tools(tmp_path: Path) -> None:
    assert Git(Workspace(tmp_path), Author()).tools() == ()
