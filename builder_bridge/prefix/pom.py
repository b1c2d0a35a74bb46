"""Reads a Maven POM: bytes of a stranger → frozen values. Pure.

A document type is refused, so no entity can be declared; size, elements, depth and the growth of
properties are bounded. What a POM may say is told by Maven's POM reference (model 4.0.0). Profiles
are not read, as Gradle reads none that must be activated.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html.entities import name2codepoint
from xml.parsers import expat

MAX_POM_BYTES = 4 << 20
MAX_ELEMENTS = 100_000
MAX_DEPTH = 40
MAX_TEXT = 2000
MAX_ROUNDS = 20
_PLAIN = r"[A-Za-z0-9_][A-Za-z0-9_+-]*"
_GROUP = re.compile(rf"{_PLAIN}(\.{_PLAIN})*")
_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")
_NAMED = re.compile(rb"&([A-Za-z]{2,8}[0-9]{0,2});")
_XML_OWN = frozenset({"amp", "lt", "gt", "quot", "apos"})
_PROPERTY = re.compile(r"\$\{([^${}]+)\}")


class PomFault(ValueError):
    """A document that is not what it should be; the message says of which and why."""


@dataclass(frozen=True, slots=True, order=True)
class Coordinate:
    """Group, name and version of a module; all three are safe as parts of a path."""

    group: str
    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.group}:{self.name}:{self.version}"

    @property
    def folder(self) -> str:
        """Where its files lie in a repository of Maven's layout."""
        return f"{self.group.replace('.', '/')}/{self.name}/{self.version}"

    def path(self, suffix: str) -> str:
        """Give the path of its file that ends so, like `.pom` or `-sources.jar`."""
        return f"{self.folder}/{self.name}-{self.version}{suffix}"


def make_coordinate(group: str, name: str, version: str) -> Coordinate:
    """Check the parts and give the coordinate; an exact range as in `[1.0]` is its version."""
    exact = re.fullmatch(r"\[([^,\[\]]+)\]", version)
    version = exact[1] if exact else version
    is_plain = _GROUP.fullmatch(group) and is_plain_part(name) and is_plain_part(version)
    if not is_plain or len(group) > 200:
        raise PomFault(f"{group}:{name}:{version}"[:300] + " is no coordinate with one plain version")
    return Coordinate(group, name, version)


def parse_coordinate(text: str) -> Coordinate:
    """Read `group:name:version`; raises `PomFault`."""
    parts = text.strip().split(":")
    if len(parts) != 3:
        raise PomFault(f"{text[:300]!r} is not group:name:version")
    return make_coordinate(*parts)


def is_plain_part(text: str) -> bool:
    """Whether a text may stand as one step of a path in a repository."""
    return len(text) <= 200 and _PART.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class Dependency:
    """A dependency as written: texts may hold properties, "" stands for what is not said."""

    group: str
    name: str
    version: str
    kind: str
    classifier: str
    scope: str
    is_optional: bool
    exclusions: frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Pom:
    """One POM as written, without its parents; `packaging` is `jar` where it says nothing."""

    parent: tuple[str, str, str] | None
    group: str
    name: str
    version: str
    packaging: str
    properties: Mapping[str, str]
    dependencies: tuple[Dependency, ...]
    managed: tuple[Dependency, ...]
    relocation: tuple[str, str, str] | None


@dataclass(slots=True)
class _Element:
    name: str
    text: str = ""
    children: list["_Element"] = field(default_factory=list)

    def child(self, *names: str) -> "_Element":
        found = self
        for name in names:
            found = next((each for each in found.children if each.name == name), _Element(name))
        return found

    def said(self, name: str) -> str:
        text = self.child(name).text.strip()
        return text if len(text) <= MAX_TEXT else ""


def read_pom(data: bytes) -> Pom:
    """Read a POM; raises `PomFault` where it is none, or more than the limits allow."""
    project = _read_xml(data)
    if project.name != "project":
        raise PomFault(f"it is a document of {project.name[:100]!r}, not a POM")
    parent = project.child("parent")
    relocation = project.child("distributionManagement", "relocation")
    properties = {each.name: each.text.strip() for each in project.child("properties").children}
    return Pom(
        parent=_three(parent) if parent.children else None,
        group=project.said("groupId"),
        name=project.said("artifactId"),
        version=project.said("version"),
        packaging=project.said("packaging") or "jar",
        properties={name: text for name, text in properties.items() if len(text) <= MAX_TEXT},
        dependencies=_dependencies(project.child("dependencies")),
        managed=_dependencies(project.child("dependencyManagement", "dependencies")),
        relocation=_three(relocation) if relocation.children else None,
    )


def properties_of(lineage: Sequence[Pom]) -> dict[str, str]:
    """Give what properties mean in a POM; `lineage` is it, its parent, the parent's parent…"""
    known: dict[str, str] = {}
    for pom in reversed(lineage):
        known |= pom.properties
    pom = lineage[0]
    parent = pom.parent or ("", "", "")
    own = {
        "groupId": pom.group or parent[0],
        "artifactId": pom.name,
        "version": pom.version or parent[2],
        "packaging": pom.packaging,
        "parent.groupId": parent[0],
        "parent.artifactId": parent[1],
        "parent.version": parent[2],
    }
    for name, text in own.items():
        known[f"project.{name}"] = known[f"pom.{name}"] = text
    return {name: known[f"project.{name}"] for name in ("groupId", "artifactId", "version")} | known


def fill(text: str, properties: Mapping[str, str]) -> str:
    """Put properties into a text; unknown ones stay. Raises `PomFault` where they grow without end."""
    for _ in range(MAX_ROUNDS):
        filled = _PROPERTY.sub(lambda match: properties.get(match[1], match[0]), text)
        if filled == text:
            return text
        if len(filled) > MAX_TEXT:
            raise PomFault("its properties grow without end")
        text = filled
    raise PomFault("its properties name each other in a circle")


def _three(element: _Element) -> tuple[str, str, str]:
    return element.said("groupId"), element.said("artifactId"), element.said("version")


def _dependencies(element: _Element) -> tuple[Dependency, ...]:
    return tuple(
        Dependency(
            *_three(each),
            kind=each.said("type") or "jar",
            classifier=each.said("classifier"),
            scope=each.said("scope"),
            is_optional=each.said("optional") == "true",
            exclusions=frozenset(
                (out.said("groupId"), out.said("artifactId")) for out in each.child("exclusions").children
            ),
        )
        for each in element.children
        if each.name == "dependency"
    )


def _read_xml(data: bytes) -> _Element:
    if len(data) > MAX_POM_BYTES:
        raise PomFault(f"it has {len(data)} bytes, {MAX_POM_BYTES} are allowed")
    outside = _Element("")
    opened = [outside]
    count = 0

    def start(name: str, _: dict[str, str]) -> None:
        nonlocal count
        count += 1
        if count > MAX_ELEMENTS or len(opened) > MAX_DEPTH:
            raise PomFault(f"it has over {MAX_ELEMENTS} elements or is nested over {MAX_DEPTH} deep")
        element = _Element(name.rpartition(":")[2])
        opened[-1].children.append(element)
        opened.append(element)

    def end(_: str) -> None:
        opened.pop()

    def text(piece: str) -> None:
        if len(opened[-1].text) <= MAX_TEXT:
            opened[-1].text += piece

    def refuse(*_: object) -> None:
        raise PomFault("it has a document type, which is not read")

    parser = expat.ParserCreate()
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = text
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(_NAMED.sub(_by_number, data), True)
    except (expat.ExpatError, LookupError, UnicodeError) as fault:
        raise PomFault(f"it is not well-formed XML: {fault}") from fault
    except ValueError as fault:
        raise fault if isinstance(fault, PomFault) else PomFault(f"it cannot be read: {fault}") from fault
    return outside.children[0]


def _by_number(match: re.Match[bytes]) -> bytes:
    """Number a letter that is named as in HTML: old POMs name people so, and Maven reads them."""
    name = match[1].decode("ascii")
    code = None if name in _XML_OWN else name2codepoint.get(name)
    return match[0] if code is None else b"&#%d;" % code
