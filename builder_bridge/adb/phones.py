"""Which phones are within reach, and in which state each of them is."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import anyio

from builder_bridge.adb.announcements import Announcement, Service
from builder_bridge.adb.blocking_wire import list_usb
from builder_bridge.adb.discovery import LISTEN_S, PhoneBrowser, browse
from builder_bridge.adb.keys import load_keys
from builder_bridge.adb.known_phones import KnownPhone, load_known_phones, remember_phone
from builder_bridge.adb.server import list_served
from builder_bridge.adb.transports import connect
from builder_bridge.errors import BridgeError, PhoneUnavailable

PROBE_TIMEOUT_S = 3.0
MAX_PROBED = 32
MAX_PROBED_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class PhoneSeen:
    """A phone on one way to it; `state` is `device` or the code of what keeps us out.

    `address` is what `connect` takes, `way` one of server, usb, tcp, mdns. A phone that is `pairing`
    waits for a code at its address; one that is `announced` was not asked, because there are too many.
    """

    serial: str
    address: str
    way: str
    state: str
    model: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Sighting:
    """What a look around found; `trouble` says why phones on the network could not be heard."""

    phones: tuple[PhoneSeen, ...]
    trouble: str = ""


async def look_for_phones(listen_s: float = LISTEN_S) -> Sighting:
    """Look at the adb server, on USB, at the addresses of known phones, and listen on the network, at once.

    Nobody listens with `listen_s` 0. Nothing opens a dialog on a phone.
    """
    seen, announced = list[PhoneSeen](), list[Announcement]()
    trouble = list[str]()

    async def look_at_server() -> None:
        try:
            for phone in await list_served():
                model = phone.properties.get("model", "")
                seen.append(PhoneSeen(phone.serial, f"server:{phone.serial}", "server", phone.state, model))
        except PhoneUnavailable:
            return  # most hosts run none

    async def look_at_usb() -> None:
        for serial in await anyio.to_thread.run_sync(list_usb):
            seen.append(PhoneSeen(serial, f"usb:{serial}", "usb", "attached"))

    async def look_at(phone: KnownPhone) -> None:
        seen.append(await probe_phone(phone))

    async def hear() -> None:
        async with browse() as browser:
            await browser.settle(listen_s)
            announced.extend(browser.heard)
            trouble.extend(_trouble_of(browser))

    known = await anyio.to_thread.run_sync(load_known_phones)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(look_at_server)
        tasks.start_soon(look_at_usb)
        for phone in known.values():
            tasks.start_soon(look_at, phone)
        if listen_s > 0:
            tasks.start_soon(hear)
    here = {(phone.serial, phone.address) for phone in seen if (phone.way, phone.state) == ("tcp", "device")}
    elsewhere = [each for each in announced if each.service is Service.PAIRING or not _is_among(here, each)]
    found = await probe_announced(elsewhere, known)
    answering = {phone.serial for phone in found if phone.way == "mdns" and phone.state == "device"}
    seen = [phone for phone in seen if phone.way != "tcp" or phone.serial not in answering] + found
    phones = tuple(sorted(seen, key=lambda phone: (phone.serial, phone.way, phone.address)))
    return Sighting(phones, " ".join(trouble))


def _is_among(here: set[tuple[str, str]], each: Announcement) -> bool:
    return any((each.serial, address) in here for address in each.addresses)


def _trouble_of(browser: PhoneBrowser) -> list[str]:
    left_out = f"{browser.left_out} more announcements were left out." if browser.left_out else ""
    return [text for text in (browser.trouble, left_out) if text]


async def probe_phone(phone: KnownPhone) -> PhoneSeen:
    """Try to reach a known phone where it was last, without opening a dialog on it."""
    state, detail, serial, model = "device", "", phone.serial, phone.model
    keys = await anyio.to_thread.run_sync(load_keys)
    try:
        async with connect(phone.address, keys=keys, timeout_s=PROBE_TIMEOUT_S, dialog_timeout_s=0) as adb:
            serial, model = adb.serial, adb.banner.properties.get("ro.product.model", model)
    except BridgeError as fault:
        state, detail = fault.code, str(fault)
    if serial != phone.serial:
        state, detail = "device_changed", f"{phone.serial} was there; now it is {serial}."
    return PhoneSeen(phone.serial, phone.address, "tcp", state, model, detail)


async def probe_announced(
    announced: Iterable[Announcement], known: dict[str, KnownPhone] | None = None
) -> list[PhoneSeen]:
    """Try to reach phones that announce themselves, each once, a few at a time.

    A known phone that answers is remembered at its new address.
    """
    known, seen = known or {}, list[PhoneSeen]()
    places = set[tuple[str, str]]()
    for each in announced:
        if each.service is Service.PAIRING:
            name = each.serial or each.name
            seen.append(PhoneSeen(name, each.addresses[0], "mdns", "pairing", "", PAIRING_HINT))
        else:
            places.add((each.serial, each.addresses[0]))
    limiter = anyio.CapacityLimiter(MAX_PROBED_AT_ONCE)

    async def probe(serial: str, address: str) -> None:
        async with limiter:
            found = await probe_phone(
                KnownPhone(
                    serial=serial, address=address, model=known[serial].model if serial in known else ""
                )
            )
        if found.state == "device" and serial in known:
            moved = known[serial].model_copy(update={"address": address})
            await anyio.to_thread.run_sync(remember_phone, moved)
        seen.append(replace(found, way="mdns"))

    async with anyio.create_task_group() as tasks:
        # Known phones come first, so that no crowd of others keeps them out.
        for number, (serial, address) in enumerate(sorted(places, key=lambda place: place[0] not in known)):
            if number < MAX_PROBED:
                tasks.start_soon(probe, serial, address)
            else:
                detail = f"Not asked: more than {MAX_PROBED} phones announce themselves."
                seen.append(PhoneSeen(serial, address, "mdns", "announced", "", detail))
    return seen


PAIRING_HINT = "Its owner has opened `Pair device with pairing code`: run `pocketbuild phone pair`."


async def find_pairing(listen_s: float = LISTEN_S) -> tuple[list[Announcement], str]:
    """Listen for phones whose owner has opened the pairing dialog; then what kept us from hearing, if any."""
    async with browse() as browser:
        await browser.settle(listen_s)
        places = {each.addresses[0]: each for each in browser.heard if each.service is Service.PAIRING}
        return list(places.values()), browser.trouble
