"""Which phones are within reach, and in which state each of them is."""

from dataclasses import dataclass

import anyio

from builder_bridge.adb.blocking_wire import list_usb
from builder_bridge.adb.keys import load_keys
from builder_bridge.adb.known_phones import KnownPhone, load_known_phones
from builder_bridge.adb.server import list_served
from builder_bridge.adb.transports import connect
from builder_bridge.errors import BridgeError, PhoneUnavailable

PROBE_TIMEOUT_S = 3.0


@dataclass(frozen=True, slots=True)
class PhoneSeen:
    """A phone on one way to it; `state` is `device` or the code of what keeps us out.

    `address` is what `connect` takes, `way` one of server, usb, tcp.
    """

    serial: str
    address: str
    way: str
    state: str
    model: str = ""
    detail: str = ""


async def list_phones() -> list[PhoneSeen]:
    """Look for phones at the adb server, on USB, and at the addresses of known ones, all at once."""
    seen = list[PhoneSeen]()

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

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(look_at_server)
        tasks.start_soon(look_at_usb)
        for phone in (await anyio.to_thread.run_sync(load_known_phones)).values():
            tasks.start_soon(look_at, phone)
    return sorted(seen, key=lambda phone: (phone.serial, phone.way))


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
