"""Android's binary XML → elements.

The form is that of `ResourceTypes.h`: chunks of type, header size and size; a string pool, a map of
attribute ids, then starts and ends of elements. Attributes are known by their id in that map, as
Android knows them, since tools may have taken their names away.
"""

import struct

from builder_bridge.inspect.element import MAX_DEPTH, MAX_ELEMENTS, Element
from builder_bridge.inspect.package import PackageFault

_XML = 0x0003
_STRING_POOL = 0x0001
_RESOURCE_MAP = 0x0180
_START_ELEMENT = 0x0102
_END_ELEMENT = 0x0103
_UTF8_FLAG = 1 << 8
_NO_STRING = 0xFFFFFFFF
MAX_STRINGS = 200_000

_TYPE_REFERENCE, _TYPE_STRING, _TYPE_INT_DEC, _TYPE_INT_HEX, _TYPE_BOOLEAN = 0x01, 0x03, 0x10, 0x11, 0x12

_NAMES_BY_ID = {
    0x01010003: "name",
    0x0101000F: "debuggable",
    0x0101020C: "minSdkVersion",
    0x0101021B: "versionCode",
    0x0101021C: "versionName",
    0x01010270: "targetSdkVersion",
    0x01010576: "versionCodeMajor",
}


def read_axml(data: bytes) -> Element:
    """Read a binary manifest and give its outermost element; raises PackageFault if it is none."""
    try:
        return _read(data)
    except (struct.error, IndexError, UnicodeDecodeError) as fault:
        raise PackageFault(f"the binary manifest of {len(data)} bytes is damaged: {fault}") from fault


def _read(data: bytes) -> Element:
    kind, header_size, size = struct.unpack_from("<HHI", data, 0)
    if kind != _XML:
        raise PackageFault(f"the manifest is no binary XML: it begins with chunk {kind:#06x}")
    strings: list[str] = []
    names: list[str | None] = []
    root = Element("")
    open_elements = [root]
    count = 0
    for kind, start, header, end in _chunks(data, header_size, min(size, len(data))):
        if kind == _STRING_POOL and not strings:
            strings = _strings(data, start, end)
        elif kind == _RESOURCE_MAP:
            ids = struct.unpack_from(f"<{(end - start - header) // 4}I", data, start + header)
            names = [_NAMES_BY_ID.get(identity) for identity in ids]
        elif kind == _START_ELEMENT:
            count += 1
            if count > MAX_ELEMENTS or len(open_elements) > MAX_DEPTH:
                raise PackageFault(
                    f"the manifest has over {MAX_ELEMENTS} elements or is nested over {MAX_DEPTH} deep"
                )
            element = _element(data, start + header, end, strings, names)
            open_elements[-1].children.append(element)
            open_elements.append(element)
        elif kind == _END_ELEMENT and len(open_elements) > 1:
            open_elements.pop()
    if not root.children:
        raise PackageFault("the binary manifest has no elements")
    return root.children[0]


def _chunks(data: bytes, position: int, end: int) -> list[tuple[int, int, int, int]]:
    """Give (type, start, header size, end) of each chunk; one that lies about its size ends the list."""
    found = []
    while position + 8 <= end:
        kind, header_size, size = struct.unpack_from("<HHI", data, position)
        if size < 8 or header_size < 8 or header_size > size or position + size > end:
            break
        found.append((kind, position, header_size, position + size))
        position += size
    return found


def _strings(data: bytes, start: int, end: int) -> list[str]:
    count, _, flags, strings_start, _ = struct.unpack_from("<5I", data, start + 8)
    if count > MAX_STRINGS or count * 4 > end - start:
        raise PackageFault(f"the manifest claims {count} strings in a pool of {end - start} bytes")
    header_size = struct.unpack_from("<H", data, start + 2)[0]
    offsets = struct.unpack_from(f"<{count}I", data, start + header_size)
    read = _utf8_string if flags & _UTF8_FLAG else _utf16_string
    return [read(data, start + strings_start + offset, end) for offset in offsets]


def _utf8_string(data: bytes, position: int, end: int) -> str:
    for _ in range(2):  # the length in characters, then the one in bytes that counts
        length = data[position]
        position += 1
        if length & 0x80:
            length = (length & 0x7F) << 8 | data[position]
            position += 1
    return data[position : min(position + length, end)].decode(errors="replace")


def _utf16_string(data: bytes, position: int, end: int) -> str:
    (length,) = struct.unpack_from("<H", data, position)
    position += 2
    if length & 0x8000:
        length = (length & 0x7FFF) << 16 | struct.unpack_from("<H", data, position)[0]
        position += 2
    return data[position : min(position + 2 * length, end)].decode("utf-16-le", errors="replace")


def _element(data: bytes, start: int, end: int, strings: list[str], names: list[str | None]) -> Element:
    _, name, attribute_start, attribute_size, count = struct.unpack_from("<IIHHH", data, start)
    element = Element(strings[name] if name < len(strings) else "")
    if attribute_size < 20:
        return element
    for index in range(count):
        position = start + attribute_start + index * attribute_size
        if position + 20 > end:
            break
        _, key, raw, _, _, kind, value = struct.unpack_from("<IIIHBBI", data, position)
        known = names[key] if key < len(names) else None
        label = known or (strings[key] if key < len(strings) else "")
        element.attributes.setdefault(label, _value(kind, value, raw, strings))
    return element


def _value(kind: int, value: int, raw: int, strings: list[str]) -> str:
    if raw != _NO_STRING and raw < len(strings):
        return strings[raw]
    match kind:
        case _ if kind == _TYPE_STRING:
            return strings[value] if value < len(strings) else ""
        case _ if kind == _TYPE_REFERENCE:
            return f"@{value:08x}"
        case _ if kind == _TYPE_BOOLEAN:
            return "true" if value else "false"
        case _ if kind == _TYPE_INT_HEX:
            return f"{value:#x}"
        case _:
            return str(value - (1 << 32) if kind == _TYPE_INT_DEC and value >> 31 else value)
