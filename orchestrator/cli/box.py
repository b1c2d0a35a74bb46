"""`pocketbuild box`: the phone in a box, for CI and for trying things out without a phone."""

import json
import os
import shlex
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import ParamSpec

import click

from builder_bridge.adb.keys import load_keys
from builder_bridge.box import (
    DEFAULT_NAME,
    Box,
    Kind,
    Mode,
    boxes,
    find,
    remove,
    remove_everything,
    start,
    stop,
)
from builder_bridge.box.owner import allow_key
from builder_bridge.box.shell import shell_command
from builder_bridge.errors import BoxFault

_Args = ParamSpec("_Args")

_name = click.option(
    "--name", default=DEFAULT_NAME, show_default=True, help="Which box; any number run side by side."
)
_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")


def _explains_faults(command: Callable[_Args, None]) -> Callable[_Args, None]:
    """Let a BoxFault end the command with its message and the next step, not with a traceback."""

    @wraps(command)
    def run(*args: _Args.args, **kwargs: _Args.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except BoxFault as fault:
            raise click.ClickException(f"{fault}\n{fault.hint}") from fault

    return run


@click.group()
def box() -> None:
    """Make, start and stop phones in a box: Debian's real adbd with a builder prefix behind it.

    A box needs root on a Debian-like host. What it is made of lies in ~/.cache/pocketbuild/box, or where
    POCKETBUILD_BOX_CACHE says; the mirror is the one of the host's apt, or POCKETBUILD_BOX_MIRROR.
    """


@box.command()
@click.option(
    "--kind",
    type=click.Choice([kind.value for kind in Kind]),
    default=Kind.AGP.value,
    show_default=True,
    help="tiny: adbd and the device's tools; agp: and the Android toolchain.",
)
@_name
@click.option(
    "--port", type=click.IntRange(1, 65535), help="Port of 127.0.0.1 to listen on.  [default: a free one]"
)
@click.option(
    "--mode",
    type=click.Choice([mode.value for mode in Mode]),
    default=Mode.PLAIN.value,
    show_default=True,
    help="plain: anyone may connect; auth: with a key its owner allowed; tls: that within TLS.",
)
@click.option(
    "--kill-children", is_flag=True, help="When adbd ends, all it started ends with it, as on a phone."
)
@click.option("--mtu1500", is_flag=True, help="In a network namespace of its own, behind a link of that MTU.")
@_json
@_explains_faults
def up(
    kind: str, name: str, port: int | None, mode: str, kill_children: bool, mtu1500: bool, as_json: bool
) -> None:
    """Start a box; the first of its kind is made first, which takes a minute."""
    started = start(
        Kind(kind),
        name,
        port=port,
        mode=Mode(mode),
        kill_children=kill_children,
        mtu_1500=mtu1500,
        progress=lambda step: click.echo(step, err=True),
    )
    if as_json:
        _print_json(_describe(started))
    else:
        click.echo(f"Box {name} ({kind}) listens on {started.serial}")
        click.echo(
            f"Connect with: pocketbuild phone connect {started.serial}, or adb connect {started.serial}"
        )


@box.command()
@_name
@_json
@_explains_faults
def down(name: str, as_json: bool) -> None:
    """Stop a box; its files stay for the next start."""
    was_running = stop(name)
    if as_json:
        _print_json({"name": name, "was_running": was_running})
    else:
        click.echo(f"Stopped box {name}" if was_running else f"Box {name} was not running")


@box.command()
@_name
@_json
@_explains_faults
def rm(name: str, as_json: bool) -> None:
    """Stop a box and remove its files; what it was made of stays (see `clear`)."""
    existed = remove(name)
    if as_json:
        _print_json({"name": name, "existed": existed})
    else:
        click.echo(f"Removed box {name}" if existed else f"There is no box {name}")


@box.command()
@_name
@click.argument("key_file", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@_explains_faults
def allow(name: str, key_file: Path | None) -> None:
    """Let a box of mode auth or tls know a key for good, as its owner or as pairing would.

    KEY_FILE is an adbkey.pub; without it the keys are those that this host's adb and pocketbuild use.
    """
    found = _running(name)
    keys = [key_file.read_text()] if key_file else [key.public_key.decode() for key in load_keys()]
    for key in keys:
        allow_key(found, key)
    click.echo(f"Box {name} knows {len(keys)} more key{'s' if len(keys) != 1 else ''}")


@box.command()
@click.confirmation_option(prompt="Remove all boxes, their files, roots and downloads?")
@_explains_faults
def clear() -> None:
    """Remove every box and all that boxes are made of from the cache folder."""
    click.echo(f"Removed {remove_everything()}")


@box.command()
@_json
@_explains_faults
def status(as_json: bool) -> None:
    """List the boxes of this host."""
    found = boxes()
    if as_json:
        _print_json([_describe(one) for one in found])
    elif not found:
        click.echo("There are no boxes. Start one with: pocketbuild box up")
    for one in [] if as_json else found:
        state = f"runs on {one.serial}, init is pid {one.init.pid}" if one.is_running else "is stopped"
        click.echo(f"{one.name}: {one.kind} in {one.mode} mode, {state}")


@box.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@_name
@click.argument("command", nargs=-1)
@_explains_faults
def shell(name: str, command: tuple[str, ...]) -> None:
    """Open the device's shell as adb's user, or run COMMAND in it and give its exit code."""
    words = shell_command(_running(name), shlex.join(command) if len(command) > 1 else "".join(command))
    sys.stdout.flush()
    os.execvp(words[0], words)  # noqa: S606 - the shell takes this process's place, terminal and all


def _running(name: str) -> Box:
    found = find(name)
    if found is None or not found.is_running:
        raise BoxFault(f"Box {name} does not run.", hint=f"Start it with `pocketbuild box up --name {name}`.")
    return found


def _describe(one: Box) -> dict[str, object]:
    return {
        "name": one.name,
        "kind": one.kind.value,
        "mode": one.mode.value,
        "serial": one.serial,
        "running": one.is_running,
        "pid": one.init.pid,
        "boot_id": one.boot_id,
        "kill_children": one.kill_children,
        "mtu_1500": one.mtu_1500,
        "folder": str(one.folder),
    }


def _print_json(value: object) -> None:
    click.echo(json.dumps(value, indent=2))
