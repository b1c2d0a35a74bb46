"""One element of a manifest, whichever form it was stored in."""

from dataclasses import dataclass, field

MAX_ELEMENTS = 50_000
MAX_DEPTH = 100


@dataclass(slots=True)
class Element:
    """A name, attributes by their local name (values as text), and the elements inside."""

    name: str
    attributes: dict[str, str] = field(default_factory=dict)
    children: list["Element"] = field(default_factory=list)

    def all(self, name: str) -> list["Element"]:
        """Give the children of a name."""
        return [child for child in self.children if child.name == name]

    def first(self, name: str) -> "Element":
        """Give the first child of a name, an empty element where there is none."""
        return next(iter(self.all(name)), Element(name))
