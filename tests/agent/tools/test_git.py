"""Version control without running anything that the workspace names."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from agent.errors import ToolFault
from agent.message import JsonObject, ToolCall
from agent.tools.confine import Workspace
from agent.tools.git import Author, Git
from agent.tools.tool import CallContext, Output
from tests.fakes_provider import Watcher

pytestmark = pytest.mark.anyio


def git(root: Path, *arguments: str) -> str:
    command = ["git", "-C", str(root), "-c", "user.name=t", "-c", "user.email=t@t.invalid", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


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


async def test_files_that_hold_secrets_are_neither_shown_nor_committed(root: Path) -> None:
    (root / "app").mkdir()
    (root / "app/.env").write_text("TOKEN=1\n")
    (root / "app/release.JKS").write_text("key\n")
    (root / "a.txt").write_text("two\n")
    await call(root, "git_commit", message="m")
    assert git(root, "show", "--format=", "--name-only").split() == ["a.txt"]


async def test_nothing_that_the_workspace_names_is_run(root: Path) -> None:
    witness = root.parent / "witness"
    program = f"touch {witness}"
    for hook in ("pre-commit", "post-commit", "commit-msg", "prepare-commit-msg", "post-index-change"):
        path = root / ".git/hooks" / hook
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{program}\n")
        path.chmod(0o755)
    for key in (
        "core.fsmonitor",
        "diff.external",
        "core.pager",
        "core.editor",
        "gpg.program",
        "core.sshCommand",
    ):
        git(root, "config", key, program)
    git(root, "config", "commit.gpgSign", "true")
    for key in ("clean", "smudge", "process"):
        git(root, "config", f"filter.evil.{key}", program)
    git(root, "config", "diff.evil.textconv", program)
    git(root, "config", "diff.evil.command", program)
    (root / ".gitattributes").write_text("* filter=evil diff=evil\n")
    (root / "a.txt").write_text("two\n")
    await call(root, "git_status")
    await call(root, "git_diff")
    await call(root, "git_commit", message="m")
    assert not witness.exists()
    assert git(root, "log", "-1", "--format=%s") == "m\n"


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
