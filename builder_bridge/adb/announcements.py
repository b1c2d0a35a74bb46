"""What phones announce of themselves on the network by multicast DNS, read with distrust.

Wireless debugging announces `adb-SERIAL-RANDOM` (six letters and digits, kept by the phone) as
`_adb-tls-connect._tcp`, at another port after each toggle; while its pairing dialog is open, the same
name as `_adb-tls-pairing._tcp`, or one that the scanned QR code asked for. `adb tcpip` announces
`adb-SERIAL` as `_adb._tcp`. A responder that finds its name taken adds ` (2)`. Source: AOSP
`adb/adb_mdns.h`, `adb/daemon/mdns.cpp`, RFC 6762 and 6763.

Anybody in the network can announce anything, so all of this is a hint where to look, never who it is.
"""

import ipaddress
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

MAX_ANNOUNCEMENTS = 128
"""More phones than that are not listed; one that is looked for is heard nevertheless."""
MAX_OF_ONE_SERIAL = 4
MAX_ADDRESSES = 4
_LABEL_BYTES = 63
_SERIAL = re.compile(r"[A-Za-z0-9._:-]{1,64}")
_TAKEN = re.compile(r" \([0-9]{1,6}\)$")
_RANDOM = re.compile(r"-[A-Za-z0-9]{6}$")
_SCOPE = re.compile(r"[A-Za-z0-9._@-]{1,15}")


class Service(Enum):
    """What an announcement offers; the values are the types' names in DNS."""

    CONNECT = "_adb-tls-connect._tcp.local."
    PAIRING = "_adb-tls-pairing._tcp.local."
    PLAIN = "_adb._tcp.local."


@dataclass(frozen=True, slots=True)
class Announcement:
    """One service of one phone, as it says.

    `serial` is empty where the name has none. `name` can be printed. `addresses` are HOST:PORT as
    `connect` takes them, the likeliest first, at least one.
    """

    service: Service
    serial: str
    name: str
    addresses: tuple[str, ...]


def read_announcement(
    service: Service, full_name: str, hosts: Iterable[str], port: int
) -> Announcement | None:
    """Read what was announced; None for what no phone can have meant.

    `hosts` are IP addresses, link-local ones of IPv6 with their scope.
    """
    name = full_name.removesuffix(f".{service.value}")
    if name == full_name or not 0 < len(name.encode("utf-8", "replace")) <= _LABEL_BYTES:
        return None
    serial = _serial_in(service, name)
    addresses = _addresses(hosts, port)
    if not addresses or not (serial or service is Service.PAIRING):
        return None
    return Announcement(service, serial, to_printable(name), addresses)


def to_printable(text: str, limit: int = 200) -> str:
    """Make a stranger's text harmless for a terminal: no control characters, no endless length."""
    shown = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text[:limit])
    return shown + "…" if len(text) > limit else shown


def _serial_in(service: Service, name: str) -> str:
    name = _TAKEN.sub("", name)
    if not name.startswith("adb-"):
        return ""
    serial = name.removeprefix("adb-")
    if service is not Service.PLAIN:
        serial = _RANDOM.sub("", serial)
    return serial if _SERIAL.fullmatch(serial) else ""


def _addresses(hosts: Iterable[str], port: int) -> tuple[str, ...]:
    if not 0 < port < 1 << 16:
        return ()
    ranked = dict[str, int]()
    for host in hosts:
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            continue
        if address.is_unspecified or address.is_multicast or address.is_loopback:
            continue
        if isinstance(address, ipaddress.IPv4Address):
            if address.is_reserved:
                continue
            ranked[f"{address}:{port}"] = 2 if address.is_link_local else 0
        elif not address.is_link_local:
            ranked[f"[{address}]:{port}"] = 1
        elif address.scope_id and _SCOPE.fullmatch(address.scope_id):
            ranked[f"[{address}]:{port}"] = 3
    return tuple(sorted(ranked, key=ranked.__getitem__)[:MAX_ADDRESSES])


class Announcements:
    """All that is announced now, within limits, however much a stranger announces."""

    def __init__(self) -> None:
        self._heard = dict[tuple[Service, str], Announcement]()
        self._wanted = set[str]()
        self.left_out = 0

    def __iter__(self) -> Iterator[Announcement]:
        """Give them, the latest last."""
        return iter(tuple(self._heard.values()))

    def want(self, serial: str) -> None:
        """Make room for a phone, whatever else is announced."""
        self._wanted.add(serial)

    def takes(self, service: Service, full_name: str) -> bool:
        """Tell whether there is room for what is announced by a name, before it is looked into."""
        if (service, full_name) in self._heard or len(self._heard) < MAX_ANNOUNCEMENTS:
            return True
        serial = _serial_in(service, full_name.removesuffix(f".{service.value}"))
        of_same = sum(1 for other in self._heard.values() if other.serial == serial)
        return serial in self._wanted and of_same < MAX_OF_ONE_SERIAL

    def is_wanted(self, service: Service, full_name: str) -> bool:
        """Tell whether a name is that of a phone that was wanted."""
        return _serial_in(service, full_name.removesuffix(f".{service.value}")) in self._wanted

    def hear(self, full_name: str, announcement: Announcement) -> None:
        """Take what is announced by a name, in place of what was announced by it before."""
        key = announcement.service, full_name
        if not self.takes(*key):
            self.left_out += 1
            return
        self._heard.pop(key, None)
        self._heard[key] = announcement

    def forget(self, service: Service, full_name: str) -> None:
        """Take back what was announced by a name."""
        self._heard.pop((service, full_name), None)

    def forget_all(self) -> None:
        """Take back everything."""
        self._heard.clear()

    def addresses_of(self, serial: str) -> tuple[str, ...]:
        """Tell where a phone says it can be connected to: inside TLS first, else the latest first."""
        connectable = [
            each
            for each in reversed(self._heard.values())
            if each.serial == serial and each.service is not Service.PAIRING
        ]
        connectable.sort(key=lambda each: each.service is Service.PLAIN)
        found = dict.fromkeys(place for each in connectable for place in each.addresses)
        return tuple(found)[:MAX_OF_ONE_SERIAL]
