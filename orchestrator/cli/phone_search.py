"""`pocketbuild phone list` and `phone pair`: finding phones, on the network, too."""

import json
import re
from dataclasses import asdict
from functools import partial

import click

from builder_bridge.adb.announcements import Announcement
from builder_bridge.adb.discovery import LISTEN_S
from builder_bridge.adb.pairing import pair
from builder_bridge.adb.phones import Sighting, find_pairing, look_for_phones
from builder_bridge.errors import PhoneUnavailable
from orchestrator.cli.phone_output import as_json_option, plain, run, say, show

_CODE = re.compile(r"[0-9]{4,10}")
_listen = click.option(
    "--listen",
    "listen_s",
    type=click.FloatRange(0, 60),
    default=LISTEN_S,
    show_default=True,
    help="Seconds to listen for phones that announce themselves on the network; 0 for not at all.",
)


@click.command(name="list")
@_listen
@as_json_option
def list_command(listen_s: float, as_json: bool) -> None:
    """List phones at the adb server, on USB, on the network and those reached before, each with its state."""
    sighting = run(partial(look_for_phones, listen_s), as_json)
    if as_json:
        document = {
            "phones": [asdict(seen) for seen in sighting.phones],
            "network": {"listened_s": listen_s, "trouble": sighting.trouble or None},
        }
        click.echo(json.dumps(document, indent=1))
        return
    _print(sighting, listen_s)


def _print(sighting: Sighting, listen_s: float) -> None:
    if not sighting.phones:
        click.echo("No phone was found. Connect one by USB, or by `pocketbuild phone connect HOST:PORT`.")
    for seen in sighting.phones:
        click.echo(plain(f"{seen.serial:24} {seen.state:22} {seen.address:32} {seen.model}"))
        if seen.detail:
            click.echo(plain(f"    {seen.detail}"))
    if sighting.trouble:
        say(sighting.trouble)
    elif listen_s and not any(seen.way == "mdns" for seen in sighting.phones):
        say(f"Within {listen_s:g} s no phone announced itself on the network.")


@click.command(name="pair")
@click.argument("address", required=False)
@click.argument("code", required=False)
@as_json_option
def pair_command(address: str | None, code: str | None, as_json: bool) -> None:
    """Pair with the phone that shows ADDRESS and CODE under wireless debugging; once is enough.

    Without ADDRESS the phone whose pairing dialog is open is found on the network. This takes an adb of
    platform-tools 30 or newer; what it pairs is paired for Pocketbuild too. The code is asked for when it
    is not given.
    """
    if address is not None and code is None and _CODE.fullmatch(address):
        address, code = None, address
    name = None
    if address is None:
        phone = run(_the_one_that_pairs, as_json)
        address, name = phone.addresses[0], phone.name
        say(f"{phone.name} waits for its code at {address}.")
    code = code or click.prompt("Code that the phone shows", hide_input=False, err=True)
    told = run(partial(pair, address, str(code)), as_json)
    show({"address": address, "paired": True, **({"name": name} if name else {}), "adb": told}, as_json)


async def _the_one_that_pairs() -> Announcement:
    waiting, trouble = await find_pairing()
    if len(waiting) == 1:
        return waiting[0]
    if waiting:
        listed = ", ".join(f"{each.addresses[0]} ({each.name})" for each in waiting)
        raise PhoneUnavailable(
            f"{len(waiting)} phones wait to be paired: {listed}.",
            hint="Name the one whose code you see: `pocketbuild phone pair HOST:PORT CODE`.",
        )
    raise PhoneUnavailable(
        trouble or f"Within {LISTEN_S:g} s no phone on the network announced that it waits to be paired.",
        hint="Open `Pair device with pairing code` on the phone and leave it open, "
        "or name the address that it shows there.",
    )
