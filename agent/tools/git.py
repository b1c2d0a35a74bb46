"""Version control of the workspace: status, diff and commit, without running anything the workspace names.

Hooks, file system monitors, filters, signing and external diff programs can all be named in a workspace's own
configuration, and then git would run them on this host. Each is switched off for every call, and so is what
could lead elsewhere: submodules, whose configuration is their own, and fetching of what is missing.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field

from agent.errors import ToolFault
from agent.prompt import fill
from agent.tools.confine import CLOSED_FILES, CLOSED_FOLDERS, Workspace
from agent.tools.program import Collected, Ended, run_program
from agent.tools.tool import AnyTool, Arguments, CallContext, Effect, Output, Tool

_DEADLINE_S = 60.0
_MAX_SHOWN_MIB, _MAX_READ_MIB = 4, 64
_FILTER_KEYS = r"^filter\..*\.(clean|smudge|process)$"
_NO_PROGRAMS = ("--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=all")
_NOT_CLOSED = tuple(
    f":(exclude,icase,glob)**/{pattern}"
    for pattern in (*CLOSED_FILES, *(f"{folder}/**" for folder in sorted(CLOSED_FOLDERS)))
)


@dataclass(frozen=True, slots=True)
class Author:
    """Who the commits of a run are by."""

    name: str = "Pocketbuild agent"
    email: str = "agent@pocketbuild.invalid"


class GitStatus(Arguments):
    """Arguments of `git_status`."""


class GitDiff(Arguments):
    """Arguments of `git_diff`."""

    path: str = Field(default=".", description="File or folder, relative to the workspace's root.")
    revision: str = Field(default="HEAD", pattern=r"^[A-Za-z0-9_.~^/][A-Za-z0-9_.~^/-]*$")


class GitCommit(Arguments):
    """Arguments of `git_commit`."""

    message: str = Field(
        min_length=1, description="First line a short sentence, then a blank line and the why."
    )


class Git:
    """Git over one workspace."""

    def __init__(self, workspace: Workspace, author: Author) -> None:
        self._workspace = workspace
        self._author = author

    def tools(self) -> tuple[AnyTool, ...]:
        """Give the tools, none where the workspace is no git repository."""
        if not (self._workspace.root / ".git").exists():
            return ()
        return (
            Tool("git_status", "Say which files of the workspace differ from the last commit.",
                 GitStatus, Effect.READS, self.status, lambda a: "status"),
            Tool("git_diff", "Give the differences of the workspace to a commit as a unified diff.",
                 GitDiff, Effect.READS, self.diff, lambda a: f"{a.revision} {a.path}",
                 named=lambda a: self._workspace.named(a.path)),
            Tool("git_commit", "Commit all changes of the workspace. Files that hold secrets are left out.",
                 GitCommit, Effect.WRITES, self.commit, lambda a: a.message.splitlines()[0]),
        )  # fmt: skip

    async def status(self, arguments: GitStatus, context: CallContext) -> Output:
        """Give branch and changed files."""
        options = ("--short", "--branch", "--ignore-submodules=all")
        return Output((await self._git("status", *options, "--", ".", may_cut=True)).rstrip())

    async def diff(self, arguments: GitDiff, context: CallContext) -> Output:
        """Give the diff."""
        name = self._workspace.name(self._workspace.resolve(arguments.path))
        text = await self._git(
            "diff", *_NO_PROGRAMS, arguments.revision, "--", f":(literal){name}", *_NOT_CLOSED, may_cut=True
        )
        return Output(text.rstrip() or "[no differences]")

    async def commit(self, arguments: GitCommit, context: CallContext) -> Output:
        """Commit, unless a process that died in this call had done so."""
        before = await self._head()
        if context.earlier is not None and before != context.earlier["head"]:
            if await self._parent() == context.earlier["head"]:
                return Output(await self._latest())
            return Output(fill("interrupted"), is_error=True)
        own = (".", *_NOT_CLOSED, *await self._submodules())
        await self._git("add", "--all", "--", *own)
        context.note({"head": before})
        options = ("--no-verify", "--no-gpg-sign", "--quiet", f"--message={arguments.message}")
        await self._git("commit", *options, "--", *own)
        return Output(await self._latest())

    async def _latest(self) -> str:
        options = ("--stat", *_NO_PROGRAMS, "--format=%h %s")
        return (await self._git("show", *options, "HEAD", may_cut=True)).rstrip()

    async def _submodules(self) -> list[str]:
        """Give what leaves submodules out: git would look into each with its own configuration."""
        listed = (await self._git("ls-files", "--stage", "-z")).split("\0")
        names = (entry.partition("\t")[2] for entry in listed if entry.startswith(_SUBMODULE_MODE))
        return [f":(exclude,literal){name}" for name in names]

    async def _head(self) -> str:
        return (await self._git("rev-parse", "--verify", "--quiet", "HEAD", may_fail=True)).strip()

    async def _parent(self) -> str:
        return (await self._git("rev-parse", "--verify", "--quiet", "HEAD^", may_fail=True)).strip()

    async def _git(self, *arguments: str, may_fail: bool = False, may_cut: bool = False) -> str:
        """Give what git says; where a part of that does as well, git is ended once there is enough."""
        own = {
            **_SAFE,
            "user.name": self._author.name,
            "user.email": self._author.email,
            "safe.directory": str(self._workspace.root),
        }
        root = self._workspace.root
        # A filter's name may hold anything but NUL, so it is neither split nor put into an argument.
        _, filters = await _run(root, own, "config", "-z", "--name-only", "--get-regexp", _FILTER_KEYS)
        off = {os.fsdecode(key): "" for key in filters.split(b"\0") if key}
        ended, told = await _run(root, {**own, **off}, *arguments, may_cut=may_cut)
        text = told.decode("utf-8", "replace")
        if ended.was_enough:
            return f"{text}\n[cut after {_MAX_SHOWN_MIB} MiB; git goes on]"
        if ended.status != 0 and not may_fail:
            why = ended.faults.decode("utf-8", "replace") or text
            raise ToolFault(f"git {arguments[0]} ended with status {ended.status}: {why.strip()[:1000]}")
        return text


_SUBMODULE_MODE = "160000 "
_SAFE = {
    "core.hooksPath": os.devnull, "core.fsmonitor": "false", "core.pager": "cat", "core.editor": "false",
    "core.sshCommand": "false", "commit.gpgSign": "false", "log.showSignature": "false", "diff.external": "",
    "diff.ignoreSubmodules": "all", "submodule.recurse": "false", "status.submoduleSummary": "false",
    "protocol.allow": "never", "credential.helper": "", "safe.bareRepository": "explicit",
    "gc.auto": "0", "maintenance.auto": "false",
}  # fmt: skip


async def _run(
    root: Path, settings: Mapping[str, str], *arguments: str, may_cut: bool = False
) -> tuple[Ended, bytes]:
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": os.devnull,
        "LC_ALL": "C.UTF-8",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_CEILING_DIRECTORIES": str(root.parent),
        "GIT_CONFIG_COUNT": str(len(settings)),
    }
    for number, (key, value) in enumerate(settings.items()):
        environment |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    told = Collected((_MAX_SHOWN_MIB if may_cut else _MAX_READ_MIB) << 20)
    command = ["git", "--no-pager", *arguments]
    try:
        ended = await run_program(command, cwd=root, feed=told.feed, deadline_s=_DEADLINE_S, env=environment)
    except FileNotFoundError:
        raise ToolFault("git is not installed on this host") from None
    except TimeoutError:
        raise ToolFault(f"git {arguments[-1]} took longer than {_DEADLINE_S:.0f} s") from None
    if ended.was_enough and not may_cut:
        raise ToolFault(f"git {arguments[0]} said more than {_MAX_READ_MIB} MiB; nothing was done with that")
    return ended, bytes(told.data)
