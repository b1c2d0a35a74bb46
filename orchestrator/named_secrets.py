"""Secrets that settings name: where each comes from, and who may have it. Values never stand in settings."""

import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict, model_validator

from builder_bridge.secret import MAX_FILE_BYTES, BadSecret, Secret
from orchestrator.errors import SettingsFault


class SecretSource(BaseModel):
    """A secret of the settings: a variable of the environment, or a file that only its owner may read.

    With `as_file` the property holds the path of a copy of the file; with `for_agents` builds of an agent
    get it, too. `owners` are those who may use it by its name through a service; without any, it is the
    machine's own user.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    env: str | None = None
    file: Path | None = None
    as_file: bool = False
    for_agents: bool = False
    owners: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _is_one(self) -> "SecretSource":
        if (self.env is None) == (self.file is None):
            raise ValueError("a secret has either `env`, a variable's name, or `file`, a path; never a value")
        if self.as_file and self.file is None:
            raise ValueError("`as_file` wants `file`")
        return self


def read_named(sources: Mapping[str, SecretSource], names: Iterable[str]) -> tuple[Secret, ...]:
    """Read secrets by name. Blocking.

    Raises `SettingsFault` that names the secret where there is none, where its file is open to others,
    or where it cannot be used.
    """
    return tuple(_read(name, sources[name]) for name in dict.fromkeys(names))


def text_of(content: bytes) -> bytes:
    """Give a value as a file holds it: one line end at its end is not part of it."""
    return content.removesuffix(b"\n").removesuffix(b"\r")


def make_secret(name: str, content: bytes, *, is_file: bool = False) -> Secret:
    """Make a secret; raises `SettingsFault` for one that cannot be used."""
    try:
        return Secret(name, content, is_file)
    except BadSecret as fault:
        raise SettingsFault(str(fault)) from None


def read_file(name: str, path: Path) -> bytes:
    """Read a secret's file; raises `SettingsFault` where it cannot be read or is too large."""
    try:
        with path.expanduser().open("rb") as file:
            return file.read(MAX_FILE_BYTES + 1)
    except OSError as fault:
        raise SettingsFault(f"the file {path} of secret {name} cannot be read: {fault.strerror}") from None


def _read(name: str, source: SecretSource) -> Secret:
    if source.env is not None:
        value = os.environ.get(source.env)
        if value is None:
            raise SettingsFault(f"secret {name} is to come from the variable {source.env}, which is not set")
        return make_secret(name, os.fsencode(value))
    assert source.file is not None
    content = read_file(name, source.file)
    mode = stat.S_IMODE(source.file.expanduser().stat().st_mode)
    if mode & 0o077:
        raise SettingsFault(
            f"the file {source.file} of secret {name} has mode {mode:04o}, open to others: chmod 600 it"
        )
    return make_secret(name, content if source.as_file else text_of(content), is_file=source.as_file)
