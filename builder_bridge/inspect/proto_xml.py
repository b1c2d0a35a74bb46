"""The manifest of an app bundle → elements.

Bundles store it as the protocol buffer `aapt.pb.XmlNode` (`Resources.proto` of AAPT2); the few fields
that are needed are read by number, anything else is passed over.
"""

from collections.abc import Iterator

from builder_bridge.inspect.element import MAX_DEPTH, MAX_ELEMENTS, Element
from builder_bridge.inspect.package import PackageFault

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_NODE_ELEMENT = 1
_ELEMENT_NAME, _ELEMENT_ATTRIBUTE, _ELEMENT_CHILD = 3, 4, 5
_ATTRIBUTE_NAME, _ATTRIBUTE_VALUE, _ATTRIBUTE_ITEM = 2, 3, 6
_ITEM_REFERENCE, _ITEM_STRING, _ITEM_PRIMITIVE = 1, 2, 7
_REFERENCE_ID = 2
_PRIMITIVE_DECIMAL, _PRIMITIVE_HEX, _PRIMITIVE_BOOLEAN = 6, 7, 8


def read_proto_xml(data: bytes) -> Element:
    """Read a bundle's manifest and give its outermost element; raises PackageFault if it is none."""
    counter = [0]
    element = _node(data, 0, counter)
    if element is None:
        raise PackageFault("the bundle's manifest has no elements")
    return element


def _node(data: bytes, depth: int, counter: list[int]) -> Element | None:
    counter[0] += 1
    if counter[0] > MAX_ELEMENTS or depth > MAX_DEPTH:
        raise PackageFault(
            f"the manifest has over {MAX_ELEMENTS} elements or is nested over {MAX_DEPTH} deep"
        )
    for number, value in _fields(data):
        if number == _NODE_ELEMENT and isinstance(value, bytes):
            return _element(value, depth, counter)
    return None


def _element(data: bytes, depth: int, counter: list[int]) -> Element:
    element = Element("")
    for number, value in _fields(data):
        if not isinstance(value, bytes):
            continue
        if number == _ELEMENT_NAME:
            element.name = _text(value)
        elif number == _ELEMENT_ATTRIBUTE:
            name, text = _attribute(value)
            element.attributes.setdefault(name, text)
        elif number == _ELEMENT_CHILD:
            child = _node(value, depth + 1, counter)
            if child is not None:
                element.children.append(child)
    return element


def _attribute(data: bytes) -> tuple[str, str]:
    name, text, compiled = "", "", None
    for number, value in _fields(data):
        if not isinstance(value, bytes):
            continue
        if number == _ATTRIBUTE_NAME:
            name = _text(value)
        elif number == _ATTRIBUTE_VALUE:
            text = _text(value)
        elif number == _ATTRIBUTE_ITEM:
            compiled = _item(value)
    return name, text or compiled or ""


def _item(data: bytes) -> str | None:
    for number, value in _fields(data):
        if not isinstance(value, bytes):
            continue
        inner = dict(_fields(value))
        if number == _ITEM_STRING:
            text = inner.get(1)
            return _text(text) if isinstance(text, bytes) else None
        if number == _ITEM_REFERENCE:
            identity = inner.get(_REFERENCE_ID)
            return f"@{identity:08x}" if isinstance(identity, int) else None
        if number == _ITEM_PRIMITIVE:
            return _primitive(inner)
    return None


def _primitive(fields: dict[int, int | bytes]) -> str | None:
    boolean = fields.get(_PRIMITIVE_BOOLEAN)
    if isinstance(boolean, int):
        return "true" if boolean else "false"
    for number in (_PRIMITIVE_DECIMAL, _PRIMITIVE_HEX):
        value = fields.get(number)
        if isinstance(value, int):
            return str(value)
    return None


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    position = 0
    while position < len(data):
        key, position = _varint(data, position)
        kind = key & 7
        if kind == _VARINT:
            value, position = _varint(data, position)
            yield key >> 3, value
            continue
        if kind == _BYTES:
            length, position = _varint(data, position)
        elif kind in (_FIXED64, _FIXED32):
            length = 8 if kind == _FIXED64 else 4
        else:
            raise PackageFault(f"the bundle's manifest has a field of unknown wire type {kind}")
        if position + length > len(data):
            raise PackageFault("the bundle's manifest is cut off")
        yield key >> 3, data[position : position + length]
        position += length


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if position >= len(data):
            raise PackageFault("the bundle's manifest is cut off")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return value, position
    raise PackageFault("the bundle's manifest has a number of over ten bytes")


def _text(value: bytes) -> str:
    return value.decode(errors="replace")
