"""The manifest of an AAR, which is plain XML → elements; a document type is refused."""

from xml.parsers import expat

from builder_bridge.inspect.element import MAX_DEPTH, MAX_ELEMENTS, Element
from builder_bridge.inspect.package import PackageFault


def read_plain_xml(data: bytes) -> Element:
    """Read a manifest and give its outermost element; raises PackageFault if it is not well-formed."""
    root = Element("")
    open_elements = [root]
    count = 0

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal count
        count += 1
        if count > MAX_ELEMENTS or len(open_elements) > MAX_DEPTH:
            raise PackageFault(
                f"the manifest has over {MAX_ELEMENTS} elements or is nested over {MAX_DEPTH} deep"
            )
        plain = {key.rpartition(":")[2]: value for key, value in attributes.items()}
        element = Element(name, plain)
        open_elements[-1].children.append(element)
        open_elements.append(element)

    def end(_: str) -> None:
        open_elements.pop()

    def refuse(*_: object) -> None:
        raise PackageFault("the manifest has a document type; it is not read")

    parser = expat.ParserCreate()
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(data, True)
    except expat.ExpatError as fault:
        raise PackageFault(f"the manifest is not well-formed XML: {fault}") from fault
    return root.children[0]
