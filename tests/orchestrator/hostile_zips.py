"""Zips that no honest program writes, each with how the service refuses it."""

import hashlib
import io
import stat
import struct
import zipfile
from dataclasses import dataclass

BAD = "preflight_bad_workspace"


@dataclass(frozen=True, slots=True)
class HostileZip:
    data: bytes
    status: int = 422
    code: str = BAD


def zip_of(*entries: tuple[str | zipfile.ZipInfo, bytes]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries:
            archive.writestr(name, content)
    return data.getvalue()


def special(name: str, kind: int, content: bytes = b"") -> tuple[zipfile.ZipInfo, bytes]:
    info = zipfile.ZipInfo(name)
    info.create_system = 3
    info.external_attr = (kind | 0o777) << 16
    return info, content


def many(count: int) -> bytes:
    """Write empty entries by hand, for the library takes seconds for so many."""
    files, directory = bytearray(), bytearray()
    for number in range(count):
        name = b"f%06d" % number
        shared = struct.pack("<HHHHHIIIHH", 20, 0, 0, 0, 33, 0, 0, 0, len(name), 0)
        directory += b"PK\1\2" + struct.pack("<H", 20) + shared
        directory += struct.pack("<HHHII", 0, 0, 0, 0, len(files)) + name
        files += b"PK\3\4" + shared + name
    ends = struct.pack("<QHHIIQQQQ", 44, 45, 45, 0, 0, count, count, len(directory), len(files))
    tail = b"PK\6\6" + ends + b"PK\6\7" + struct.pack("<IQI", 0, len(files) + len(directory), 1)
    tail += b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    return bytes(files + directory + tail)


def lying_size() -> bytes:
    """Say that an entry of a megabyte has three bytes."""
    data = bytearray(zip_of(("a", hashlib.sha512(b"a").digest() * 16_384)))
    directory = data.rindex(b"PK\1\2")
    data[directory + 24 : directory + 28] = struct.pack("<I", 3)
    return bytes(data)


NOISE = [hashlib.sha512(bytes([n])).digest() * 20_000 for n in range(5)]
ZIPS = {
    "a name above": HostileZip(zip_of(("../escape", b"x"))),
    "an absolute name": HostileZip(zip_of(("/etc/escape", b"x"))),
    "a name that climbs from inside": HostileZip(zip_of(("a/../../escape", b"x"))),
    "backslashes": HostileZip(zip_of(("a\\..\\..\\escape", b"x"), ("a/../c", b"y"))),
    "a link outside and a file through it": HostileZip(
        zip_of(special("evil", stat.S_IFLNK, b"/etc"), ("evil/escape", b"x"))
    ),
    "a link upwards": HostileZip(zip_of(special("evil", stat.S_IFLNK, b"../../.."))),
    "a device": HostileZip(zip_of(special("dev", stat.S_IFCHR))),
    "a pipe": HostileZip(zip_of(special("pipe", stat.S_IFIFO))),
    "a bomb": HostileZip(zip_of(("zeros", bytes(64 << 20)))),
    "more than may be unpacked": HostileZip(zip_of(*((f"f{n}", noise) for n, noise in enumerate(NOISE)))),
    "a size that lies": HostileZip(lying_size()),
    "more entries than are allowed": HostileZip(many(2_000)),
    "70,000 entries": HostileZip(many(70_000)),
    "a file that is a folder, too": HostileZip(zip_of(("a", b"1"), ("a/b", b"2"))),
    "a name that is too long": HostileZip(zip_of(("x" * 300, b"1"))),
    "no zip": HostileZip(b"PK\x03\x04 this is no zip at all"),
    "half a zip": HostileZip(zip_of(("a", b"x" * 5000))[:-30]),
    "nothing": HostileZip(b""),
}
