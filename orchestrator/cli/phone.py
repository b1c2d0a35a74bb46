"""`pocketbuild phone`: which phones there are, how to get to them, and a command on one of them."""

import json
import os
import re
import shlex
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import click

from builder_bridge.adb import AdbConnection, connect, shell
from builder_bridge.adb.known_phones import KnownPhone, forget_phone, remember_phone
from builder_bridge.adb.line import line_speed
from builder_bridge.bridge import open_bridge
from orchestrator.cli import terminal
from orchestrator.cli.phone_output import as_json_option, run, say, show
from orchestrator.cli.phone_search import list_command, pair_command

READ_BYTES = 64 << 10
FACTS = {
    "android": "ro.build.version.release",
    "sdk": "ro.build.version.sdk",
    "abi": "ro.product.cpu.abi",
    "manufacturer": "ro.product.manufacturer",
}

_address = click.argument("address", required=False)


@click.group()
def phone() -> None:
    """List, connect and inspect phones.

    ADDRESS is HOST:PORT, usb:SERIAL, server:SERIAL (of a running adb server) or a bare serial number, by
    which a phone with wireless debugging is found whatever its port; by default $ANDROID_SERIAL, or the
    only phone there is.
    """


phone.add_command(list_command)
phone.add_command(pair_command)


@phone.command(name="connect")
@_address
@click.option(
    "--wait", "wait_s", default=60.0, show_default=True, help="Seconds the owner has to allow this computer."
)
@as_json_option
def connect_command(address: str | None, wait_s: float, as_json: bool) -> None:
    """Connect to a phone, ask its owner if need be, and remember where it is."""

    async def work() -> dict[str, object]:
        async with connect(address, dialog_timeout_s=wait_s, on_dialog=say) as adb:
            return await _remember(adb, address)

    found = run(work, as_json)
    show(found, as_json)


@phone.command()
@_address
@as_json_option
def info(address: str | None, as_json: bool) -> None:
    """Tell what a phone is, what its adbd can do and how fast the line to it is."""

    async def work() -> dict[str, object]:
        async with connect(address, on_dialog=say) as adb:
            return await _describe(adb)

    show(run(work, as_json), as_json)


@phone.command()
@_address
@click.option(
    "--keep", type=click.IntRange(0), default=10, show_default=True, help="How many ended runs stay."
)
@as_json_option
def gc(address: str | None, keep: int, as_json: bool) -> None:
    """Free storage on a phone: remove ended runs but the newest; --keep 0 removes what was uploaded, too."""

    async def work() -> dict[str, object]:
        async with connect(address, on_dialog=say) as adb, open_bridge(adb) as bridge:
            before = len(await bridge.runs())
            await bridge.gc(keep)
            left = len(await bridge.runs())
            return {"serial": adb.serial, "removed_runs": before - left, "kept_runs": left}

    show(run(work, as_json), as_json)


@phone.command()
@click.argument("name")
@click.option("--config", type=click.Path(path_type=Path), help="Another settings file.")
def forget(name: str, config: Path | None) -> None:
    """Forget the phone of that address or serial number: nothing asks for it any more."""
    terminal.run_async(_forget, config, name)


@phone.command(name="shell", context_settings={"ignore_unknown_options": True})
@click.option("--phone", "address", help="Which phone; see `pocketbuild phone --help`.")
@click.option("--json", "as_json", is_flag=True, help="Print exit code and output as one JSON document.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def shell_command(address: str | None, as_json: bool, command: tuple[str, ...]) -> None:
    """Run COMMAND on a phone with this stdin, stdout, stderr and exit code.

    One word is a line for the phone's shell; several are a program and its arguments, passed on as they
    are. A phone that cannot be reached gives 4 and says so on stderr.
    """
    line = command[0] if len(command) == 1 else shlex.join(command)

    async def work() -> int:
        async with connect(address, on_dialog=say) as adb:
            if as_json:
                result = await shell.run(adb, line, _stdin())
                document = {
                    "exit_code": result.exit_code,
                    "stdout": result.stdout.decode("utf-8", "replace"),
                    "stderr": result.stderr.decode("utf-8", "replace"),
                }
                click.echo(json.dumps(document, indent=1))
                return result.exit_code
            return await shell.pass_through(adb, line, _stdin(), _pass_on)

    sys.exit(run(work, as_json))


async def _forget(config: Path | None, name: str) -> int:
    # The other commands need no service, and start without what speaks to one.
    from orchestrator.cli.connect import load_quietly, service
    from orchestrator.client import Refused
    from orchestrator.observe import set_up_logs

    settings = load_quietly(config).settings
    set_up_logs(settings)
    is_remembered = await anyio.to_thread.run_sync(forget_phone, name)
    async with terminal.one_fault(), service(settings) as client:
        try:
            await client.remove_phone(name)
        except Refused as refusal:
            if refusal.reason_code != "unknown_phone" or not is_remembered:
                raise
    if name in {phone.address for phone in settings.phones}:
        click.echo(f"{name} stands in the settings too: take it out there, or it is back at the next start")
    click.echo(f"{name} is forgotten")
    return terminal.DONE


async def _remember(adb: AdbConnection, address: str | None) -> dict[str, object]:
    model = adb.banner.properties.get("ro.product.model") or adb.banner.properties.get("model", "")
    is_tcp = address is not None and re.fullmatch(r"(tcp:)?.+:\d+", address) is not None
    if is_tcp and not str(address).startswith(("usb:", "server:")):
        place = str(address).removeprefix("tcp:")
        known = KnownPhone(serial=adb.serial, address=place, key_fingerprint=adb.key_fingerprint, model=model)
        await anyio.to_thread.run_sync(remember_phone, known)
    return {"serial": adb.serial, "model": model, "key": adb.key_fingerprint}


async def _describe(adb: AdbConnection) -> dict[str, object]:
    facts: dict[str, object] = {"serial": adb.serial, "key": adb.key_fingerprint}
    facts["model"] = adb.banner.properties.get("ro.product.model") or adb.banner.properties.get("model", "")
    line = "; ".join(f"getprop {name}" for name in FACTS.values())
    values = (await shell.run(adb, line)).stdout.decode("utf-8", "replace").splitlines()
    facts |= dict(zip(FACTS, values, strict=False))
    started = anyio.current_time()
    await shell.run(adb, "true")
    facts["shell_round_trip_ms"] = round((anyio.current_time() - started) * 1000, 1)
    speed = await line_speed(adb)
    facts["line_mb_per_s"] = round(speed / 1e6, 1) if speed < float("inf") else None
    free = (await shell.run(adb, "df -k /data | tail -n 1")).stdout.split()
    facts["free_mb"] = int(free[3]) // 1024 if len(free) > 3 and free[3].isdigit() else None
    facts["features"] = sorted(adb.features)
    return facts


async def _stdin() -> AsyncIterator[bytes]:
    """Give this command's stdin as it comes; none where it is a terminal, which would never end."""
    if sys.stdin.isatty():
        return
    while data := await anyio.to_thread.run_sync(
        os.read, sys.stdin.fileno(), READ_BYTES, abandon_on_cancel=True
    ):
        yield data


def _pass_on(stream: shell.Stream, data: memoryview) -> None:
    out = sys.stdout if stream is shell.Stream.STDOUT else sys.stderr
    out.buffer.write(data)
    out.buffer.flush()
