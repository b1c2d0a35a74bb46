"""Writers of the forms that packages store their facts in; readers are tested against them."""

import struct
import zipfile
from pathlib import Path

_IDS = {
    "name": 0x01010003,
    "debuggable": 0x0101000F,
    "minSdkVersion": 0x0101020C,
    "versionCode": 0x0101021B,
    "versionName": 0x0101021C,
    "targetSdkVersion": 0x01010270,
}
Tree = tuple[str, dict[str, object], list["Tree"]]


def manifest_tree(
    permissions: tuple[str, ...] = ("android.permission.INTERNET",), version: str = "1.2"
) -> Tree:
    used: list[Tree] = [("uses-permission", {"name": name}, []) for name in permissions]
    return (
        "manifest",
        {"package": "net.acme.app", "versionCode": 7, "versionName": version},
        [
            ("uses-sdk", {"minSdkVersion": 24, "targetSdkVersion": 36}, []),
            *used,
            ("application", {"debuggable": True}, []),
        ],
    )


def axml(tree: Tree, *, has_names: bool = True) -> bytes:
    """Write binary XML; without names attributes are known by their ids alone, as some tools leave them."""
    strings = ["" if not has_names else name for name in _IDS]
    body = b"".join(_axml_element(tree, strings))
    pool = _pool(strings)
    resource_map = struct.pack("<HHI", 0x0180, 8, 8 + 4 * len(_IDS)) + struct.pack(
        f"<{len(_IDS)}I", *_IDS.values()
    )
    content = pool + resource_map + body
    return struct.pack("<HHI", 0x0003, 8, 8 + len(content)) + content


def _axml_element(tree: Tree, strings: list[str]) -> list[bytes]:
    name, attributes, children = tree
    written = [_axml_attribute(key, value, strings) for key, value in attributes.items()]
    head = struct.pack("<II", 0xFFFFFFFF, _index(name, strings)) + struct.pack(
        "<6H", 20, 20, len(written), 0, 0, 0
    )
    start = _chunk(0x0102, head + b"".join(written))
    inner = [piece for child in children for piece in _axml_element(child, strings)]
    return [start, *inner, _chunk(0x0103, struct.pack("<II", 0xFFFFFFFF, _index(name, strings)))]


def _axml_attribute(key: str, value: object, strings: list[str]) -> bytes:
    index = list(_IDS).index(key) if key in _IDS else _index(key, strings)
    match value:
        case bool():
            kind, raw, number = 0x12, 0xFFFFFFFF, 0xFFFFFFFF if value else 0
        case int():
            kind, raw, number = 0x10, 0xFFFFFFFF, value
        case _:
            number = raw = _index(str(value), strings)
            kind = 0x03
    return struct.pack("<IIIHBBI", 0xFFFFFFFF, index, raw, 8, 0, kind, number)


def _index(text: str, strings: list[str]) -> int:
    if text not in strings:
        strings.append(text)
    return strings.index(text)


def _chunk(kind: int, content: bytes) -> bytes:
    return struct.pack("<HHIII", kind, 16, 16 + len(content), 1, 0xFFFFFFFF) + content


def _pool(strings: list[str]) -> bytes:
    data = b""
    offsets = []
    for text in strings:
        offsets.append(len(data))
        data += struct.pack("<H", len(text)) + text.encode("utf-16-le") + b"\0\0"
    data += b"\0" * (-len(data) % 4)
    start = 28 + 4 * len(offsets)
    head = struct.pack("<HHI5I", 0x0001, 28, start + len(data), len(offsets), 0, 0, start, 0)
    return head + struct.pack(f"<{len(offsets)}I", *offsets) + data


def proto_xml(tree: Tree) -> bytes:
    """Write a manifest as app bundles have it."""
    name, attributes, children = tree
    element = _field(3, name.encode())
    for key, value in attributes.items():
        text = "true" if value is True else str(value)
        element += _field(4, _field(2, key.encode()) + _field(3, text.encode()))
    for child in children:
        element += _field(5, proto_xml(child))
    return _field(1, element)


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    written = b""
    while value > 0x7F:
        written += bytes([value & 0x7F | 0x80])
        value >>= 7
    return written + bytes([value])


def elf(page_bytes: int) -> bytes:
    """Write the head of a 64-bit library with one loadable segment."""
    head = (
        b"\x7fELF\x02\x01\x01"
        + b"\0" * 9
        + struct.pack("<HHIQQQIHHHHHH", 3, 183, 1, 0, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    )
    return head + struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, 0, 0, page_bytes)


def dex(methods: int) -> bytes:
    """Write the header of a dex file."""
    return b"dex\n035\0".ljust(88, b"\0") + struct.pack("<I", methods) + b"\0" * 20


def write_zip(path: Path, members: dict[str, bytes], stored: tuple[str, ...] = ()) -> Path:
    """Write a package with these members, packed but for the stored ones."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data, zipfile.ZIP_STORED if name in stored else zipfile.ZIP_DEFLATED)
    return path
