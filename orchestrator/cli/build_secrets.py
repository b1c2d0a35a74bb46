"""`--secret` and `--secret-file`: where a build's secrets come from; a command line never holds one."""

import base64
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import click

from builder_bridge.secret import Secret, Secrets
from orchestrator.errors import SettingsFault
from orchestrator.named_secrets import make_secret, read_file, read_named, text_of
from orchestrator.settings import Settings

F = TypeVar("F", bound=Callable[..., Any])
USAGE = "NAME, NAME=env:VARIABLE or NAME=@FILE"


def secret_options(command: F) -> F:
    """Add the options that name secrets to a command."""
    secret = click.option(
        "--secret",
        "secrets",
        multiple=True,
        metavar="NAME[=env:VAR|=@FILE]",
        help="A Gradle property that nobody may see, from the settings or the variable NAME, from another "
        "variable, or from a file (@- is standard input).",
    )
    file = click.option(
        "--secret-file",
        "secret_files",
        multiple=True,
        metavar="NAME=PATH",
        help="A file that nobody may see, such as a keystore; the Gradle property holds its path there.",
    )
    return secret(file(command))


def read_secrets(settings: Settings, values: Iterable[str], files: Iterable[str]) -> dict[str, Any]:
    """Read what the options name; give the part of a wish that carries it. Blocking.

    Raises `SettingsFault` for what cannot be read or used, `click.UsageError` for an option that is none.
    """
    found = [_value(settings, each) for each in values]
    for each in files:
        name, is_given, path = each.partition("=")
        if not is_given or not path:
            raise click.UsageError(f"--secret-file wants NAME=PATH, not {name!r}")
        found.append(make_secret(name, read_file(name, Path(path)), is_file=True))
    return wish_of_secrets(found)


def agent_secrets(settings: Settings) -> dict[str, Any]:
    """Read the secrets that builds of an agent get; the model is told no value of them. Blocking."""
    names = [name for name, source in settings.secrets.items() if source.for_agents]
    return wish_of_secrets(read_named(settings.secrets, names))


def wish_of_secrets(found: Iterable[Secret]) -> dict[str, Any]:
    """Write secrets as the API takes them; nothing where there are none."""
    try:
        given = Secrets(tuple(found))
    except ValueError as fault:
        raise SettingsFault(str(fault)) from None
    if not given:
        return {}
    texts = {each.name: each.content.decode() for each in given.entries if not each.is_file}
    files = {each.name: base64.b64encode(each.content).decode() for each in given.entries if each.is_file}
    return {"secrets": texts, "secret_files": files}


def _value(settings: Settings, option: str) -> Secret:
    name, is_given, source = option.partition("=")
    if not is_given:
        if name in settings.secrets:
            return read_named(settings.secrets, [name])[0]
        return _from_variable(name, name)
    if source.startswith("env:"):
        return _from_variable(name, source.removeprefix("env:"))
    if source == "@-":
        return make_secret(name, text_of(sys.stdin.buffer.read()))
    if source.startswith("@"):
        return make_secret(name, text_of(read_file(name, Path(source[1:]))))
    # What stands behind "=" may be the secret itself, so it is not repeated.
    raise click.UsageError(
        f"--secret {name}=… is not understood: give {USAGE}. "
        "A value on the command line would be seen by everybody on this machine."
    )


def _from_variable(name: str, variable: str) -> Secret:
    value = os.environ.get(variable)
    if value is None:
        raise SettingsFault(
            f"secret {name}: the settings name none, and the variable {variable} is not set"
            if name == variable
            else f"secret {name}: the variable {variable} is not set",
            hint=f"Give it as {USAGE}, or in the settings under [secrets.{name}].",
        )
    return make_secret(name, os.fsencode(value))
