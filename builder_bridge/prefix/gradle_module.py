"""Reads Gradle's module metadata, which knows more of a module than its POM. Pure.

The format is Gradle's own, version 1.x. Of its variants only those count that a JVM or Android
build can choose: no documentation, no native or JavaScript platform.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from builder_bridge.prefix.pom import MAX_POM_BYTES, PomFault, is_plain_part

MARKER = b"published-with-gradle-metadata"
"""A POM that holds this has a module file beside it."""
_PLATFORMS = frozenset({"", "jvm", "androidJvm", "common"})
_CATEGORIES = frozenset({"", "library", "platform", "enforced-platform"})


@dataclass(frozen=True, slots=True)
class Request:
    """A module that a variant wants, or would hold to this version if another wants it."""

    group: str
    name: str
    version: str
    is_constraint: bool


@dataclass(frozen=True, slots=True)
class GradleModule:
    """What the variants that count want, and the names of their files in the module's folder."""

    requests: tuple[Request, ...]
    file_names: tuple[str, ...]


def read_module(data: bytes) -> GradleModule:
    """Read a module file; raises `PomFault` where it is none."""
    if len(data) > MAX_POM_BYTES:
        raise PomFault(f"its module file has {len(data)} bytes, {MAX_POM_BYTES} are allowed")
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as fault:
        raise PomFault(f"its module file is no JSON: {fault}") from fault
    requests: dict[Request, None] = {}
    names: dict[str, None] = {}
    for variant in _objects(document, "variants"):
        attributes = variant.get("attributes")
        if not _counts(attributes if isinstance(attributes, dict) else {}):
            continue
        away = variant.get("available-at")
        if isinstance(away, dict):
            requests[_request(away, away.get("version"), is_constraint=False)] = None
        for key, is_constraint in (("dependencies", False), ("dependencyConstraints", True)):
            for each in _objects(variant, key):
                requests[_request(each, _version(each.get("version")), is_constraint)] = None
        for each in _objects(variant, "files"):
            name = str(each.get("url", ""))
            if not is_plain_part(name):
                raise PomFault(f"its module file names the file {name[:200]!r}, which may lie outside")
            names[name] = None
    return GradleModule(tuple(requests), tuple(names))


def _counts(attributes: dict[str, Any]) -> bool:
    platform = str(attributes.get("org.jetbrains.kotlin.platform.type", ""))
    category = str(attributes.get("org.gradle.category", ""))
    return platform in _PLATFORMS and category in _CATEGORIES


def _objects(holder: object, key: str) -> Iterator[dict[str, Any]]:
    listed = holder.get(key) if isinstance(holder, dict) else None
    for each in listed if isinstance(listed, list) else ():
        if isinstance(each, dict):
            yield each


def _request(each: dict[str, Any], version: object, is_constraint: bool) -> Request:
    return Request(str(each.get("group", "")), str(each.get("module", "")), str(version or ""), is_constraint)


def _version(said: object) -> str:
    if not isinstance(said, dict):
        return ""
    return str(said.get("strictly") or said.get("requires") or said.get("prefers") or "")
