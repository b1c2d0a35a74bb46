"""Finds out what modules need, transitively: POMs in, paths in a Maven repository out. Pure.

Every version that is asked for is kept, not the winner of a conflict alone: which one wins is up
to the build, and Gradle reads the losers' metadata, too.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from builder_bridge.prefix.gradle_module import GradleModule, Request, read_module
from builder_bridge.prefix.pom import (
    Coordinate,
    Dependency,
    Pom,
    PomFault,
    fill,
    is_plain_part,
    make_coordinate,
    properties_of,
    read_pom,
)

MAX_MODULES = 5000
_MAX_LINEAGE = 30
_JAR_KINDS = frozenset({"jar", "bundle", "maven-plugin", "ejb", "eclipse-plugin", "hk2-jar", "test-jar"})
_NEEDED_SCOPES = frozenset({"", "compile", "runtime"})
_Exclusions = frozenset[tuple[str, str]]
_Key = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True)
class Wanted:
    """A file to bring: the first of these paths that exists; one must where `is_needed`."""

    paths: tuple[str, ...]
    is_needed: bool


@dataclass(frozen=True, slots=True)
class Resolution:
    """Files to bring beside the POMs and module files, and what could not be found, as sentences."""

    files: tuple[Wanted, ...]
    missing: tuple[str, ...]


class _Lacks(Exception):
    """POMs that must be known first; a question, not a fault."""

    def __init__(self, coordinates: set[Coordinate]) -> None:
        self.coordinates = coordinates


class Resolver:
    """Asks for POMs until it knows everything: `asks`, then `feed` for each; when none is left, `close`."""

    def __init__(self, wanted: Sequence[Coordinate]) -> None:
        self._poms: dict[Coordinate, Pom | None] = {}
        self._modules: dict[Coordinate, GradleModule] = {}
        self._managed: dict[Coordinate, Mapping[_Key, Dependency]] = {}
        self._waiting: deque[tuple[Coordinate, _Exclusions]] = deque()
        self._visited: dict[Coordinate, list[_Exclusions]] = {}
        self._names: set[tuple[str, str]] = set()
        self._held: dict[tuple[str, str], set[Coordinate]] = {}
        self._files: dict[Wanted, None] = {}
        self._artifacts: dict[tuple[Coordinate, str, str], None] = {}
        self._missing: dict[str, None] = {}
        self._unversioned: dict[tuple[str, str], Coordinate] = {}
        for coordinate in wanted:
            self._visit(coordinate, frozenset(), "jar", "")

    def asks(self) -> tuple[Coordinate, ...]:
        """Give the coordinates whose POM is wanted now; nothing when all is known."""
        lacking: set[Coordinate] = set()
        stuck: list[tuple[Coordinate, _Exclusions]] = []
        while self._waiting:
            coordinate, exclusions = self._waiting.popleft()
            try:
                self._take(coordinate, exclusions)
            except _Lacks as lacks:
                lacking |= lacks.coordinates
                stuck.append((coordinate, exclusions))
            except PomFault as fault:
                self._missing[f"{coordinate}: {fault}"] = None
        self._waiting.extend(stuck)
        return tuple(sorted(lacking))

    def feed(self, coordinate: Coordinate, pom: bytes | None, module: bytes | None = None) -> None:
        """Take the documents of a coordinate, None where the repositories have none.

        Raises `PomFault` where there are more modules than `MAX_MODULES`. What is unreadable is
        told by `close`.
        """
        if len(self._poms) >= MAX_MODULES:
            raise PomFault(f"over {MAX_MODULES} modules are wanted")
        self._poms[coordinate] = None
        if pom is None:
            self._missing[f"{coordinate}: no repository has its POM"] = None
            return
        try:
            self._poms[coordinate] = read_pom(pom)
            if module is not None:
                self._modules[coordinate] = read_module(module)
        except PomFault as fault:
            self._missing[f"{coordinate}: {fault}"] = None

    def close(self) -> Resolution:
        """Give what is to be brought."""
        for coordinate, kind, classifier in self._artifacts:
            self._want_artifact(coordinate, kind, classifier)
        for name, asker in self._unversioned.items():
            if name not in self._names:
                self._missing[f"{':'.join(name)}: {asker} wants it in no version that can be told"] = None
        return Resolution(tuple(self._files), tuple(self._missing))

    def _visit(self, coordinate: Coordinate, exclusions: _Exclusions, kind: str, classifier: str) -> None:
        self._artifacts[coordinate, kind, classifier] = None
        visited = self._visited.setdefault(coordinate, [])
        if any(earlier <= exclusions for earlier in visited):
            return
        visited.append(exclusions)
        self._waiting.append((coordinate, exclusions))
        name = (coordinate.group, coordinate.name)
        self._names.add(name)
        for held in sorted(self._held.pop(name, ())):
            self._visit(held, frozenset(), "jar", "")

    def _take(self, coordinate: Coordinate, exclusions: _Exclusions) -> None:
        pom = self._pom(coordinate)
        if pom is None:
            return
        lineage = self._lineage(coordinate)
        properties = properties_of(lineage)
        managed = self._managed_by(coordinate, ())
        if pom.relocation is not None:
            group, name, version = (fill(part, properties) for part in pom.relocation)
            moved = make_coordinate(
                group or coordinate.group, name or coordinate.name, version or coordinate.version
            )
            self._visit(moved, exclusions, "jar", "")
        for request in self._modules.get(coordinate, GradleModule((), ())).requests:
            self._take_request(coordinate, request, exclusions)
        taken: set[_Key] = set()
        for each in (dependency for generation in lineage for dependency in generation.dependencies):
            filled = _filled(each, properties)
            if _key(filled) in taken:
                continue
            taken.add(_key(filled))
            self._take_dependency(coordinate, filled, managed.get(_key(filled)), exclusions)

    def _take_dependency(
        self, asker: Coordinate, each: Dependency, managed: Dependency | None, exclusions: _Exclusions
    ) -> None:
        scope = each.scope or (managed.scope if managed else "")
        version = each.version or (managed.version if managed else "")
        is_excluded = _is_excluded(each.group, each.name, exclusions)
        if each.is_optional or scope not in _NEEDED_SCOPES or is_excluded:
            return
        if not version:
            self._unversioned[each.group, each.name] = asker
            return
        try:
            coordinate = make_coordinate(each.group, each.name, version)
        except PomFault as fault:
            self._missing[f"{fault}, which {asker} wants"] = None
            return
        further = exclusions | each.exclusions | (managed.exclusions if managed else frozenset())
        self._visit(coordinate, further, each.kind, each.classifier)

    def _take_request(self, asker: Coordinate, request: Request, exclusions: _Exclusions) -> None:
        name = (request.group, request.name)
        if _is_excluded(*name, exclusions):
            return
        if not request.version:
            if not request.is_constraint:
                self._unversioned[name] = asker
            return
        try:
            coordinate = make_coordinate(*name, request.version)
        except PomFault as fault:
            self._missing[f"{fault}, which {asker} wants"] = None
            return
        if request.is_constraint and name not in self._names:
            self._held.setdefault(name, set()).add(coordinate)
        else:
            self._visit(coordinate, exclusions, "jar", "")

    def _pom(self, coordinate: Coordinate) -> Pom | None:
        if coordinate not in self._poms:
            raise _Lacks({coordinate})
        return self._poms[coordinate]

    def _lineage(self, coordinate: Coordinate) -> list[Pom]:
        lineage: list[Pom] = []
        pom = self._pom(coordinate)
        while pom is not None:
            lineage.append(pom)
            if pom.parent is None:
                break
            if len(lineage) > _MAX_LINEAGE:
                raise PomFault(f"it has over {_MAX_LINEAGE} parents above it")
            pom = self._pom(make_coordinate(*pom.parent))
        return lineage

    def _managed_by(self, coordinate: Coordinate, above: tuple[Coordinate, ...]) -> Mapping[_Key, Dependency]:
        """Give the versions that a POM manages; its own and its parents' go before those of imports."""
        if coordinate in self._managed:
            return self._managed[coordinate]
        if coordinate in above or len(above) > _MAX_LINEAGE:
            raise PomFault("imports of its dependency management go in a circle")
        lineage = self._lineage(coordinate)
        properties = properties_of(lineage) if lineage else {}
        managed: dict[_Key, Dependency] = {}
        imports: list[Coordinate] = []
        for each in (dependency for pom in lineage for dependency in pom.managed):
            filled = _filled(each, properties)
            if filled.scope == "import":
                imports.append(make_coordinate(filled.group, filled.name, filled.version))
            else:
                managed.setdefault(_key(filled), filled)
        lacking: set[Coordinate] = set()
        for imported in imports:
            try:
                managed = {**self._managed_by(imported, (*above, coordinate)), **managed}
            except _Lacks as lacks:
                lacking |= lacks.coordinates
        if lacking:
            raise _Lacks(lacking)
        self._managed[coordinate] = managed
        return managed

    def _want_artifact(self, coordinate: Coordinate, kind: str, classifier: str) -> None:
        pom, module = self._poms.get(coordinate), self._modules.get(coordinate)
        if pom is None or kind == "pom" or pom.relocation is not None:
            return
        for name in module.file_names if module else ():
            self._files[Wanted((f"{coordinate.folder}/{name}",), is_needed=True)] = None
        if kind == "test-jar":
            classifier = classifier or "tests"
        tail = f"-{classifier}" if classifier else ""
        kinds = ["jar" if kind in _JAR_KINDS else kind]
        if kinds == ["jar"] and not classifier:
            if pom.packaging == "pom":
                return
            if pom.packaging not in _JAR_KINDS:
                kinds.insert(0, pom.packaging)
        if not all(is_plain_part(f"x{tail}.{each}") for each in kinds):
            self._missing[f"{coordinate}: {classifier}.{kind} is no plain end of a file's name"[:300]] = None
            return
        paths = tuple(coordinate.path(f"{tail}.{each}") for each in kinds)
        self._files[Wanted(paths, is_needed=module is None or bool(classifier))] = None


def _filled(each: Dependency, properties: Mapping[str, str]) -> Dependency:
    return Dependency(
        group=fill(each.group, properties),
        name=fill(each.name, properties),
        version=fill(each.version, properties),
        kind=fill(each.kind, properties),
        classifier=fill(each.classifier, properties),
        scope=fill(each.scope, properties),
        is_optional=each.is_optional,
        exclusions=each.exclusions,
    )


def _key(each: Dependency) -> _Key:
    return each.group, each.name, each.kind, each.classifier


def _is_excluded(group: str, name: str, exclusions: _Exclusions) -> bool:
    return any(out_group in (group, "*") and out_name in (name, "*") for out_group, out_name in exclusions)
