"""Compares a project with the contract of a prefix before any byte moves. Pure.

It reads build scripts as text, so it only stops a build for what is written out plainly and cannot
work; all else is a note that helps to read a later failure.
"""

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

SETTINGS = ("settings.gradle", "settings.gradle.kts")
SCRIPTS = ("build.gradle", "build.gradle.kts")
TEXT_NAMES = (*SETTINGS, *SCRIPTS, "gradle-wrapper.properties", "gradle.properties", "libs.versions.toml")


@dataclass(frozen=True, slots=True)
class Needs:
    """What the prefix has of that which projects need; empty `platforms` and `agp` mean not told."""

    gradle: str | None = None
    agp: tuple[str, ...] = ()
    platforms: tuple[str, ...] = ()
    has_ndk: bool = False
    has_node: bool = False
    has_git: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """Something about the project: where, what, and whether a build is pointless until it is mended.

    `line` counts from one, 0 where it concerns no line. `is_workspace` tells a fault of the workspace
    from something that the prefix lacks.
    """

    code: str
    path: str
    line: int
    message: str
    is_fatal: bool = False
    is_workspace: bool = False

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else self.path
        return f"{place}: {self.message}"


_NATIVE = re.compile(r"\bexternalNativeBuild\s*\{[^{}]*\b(?:cmake|ndkBuild)\s*\{[^{}]*\bpath\b", re.DOTALL)
_COMPILE_SDK = re.compile(r"\bcompileSdk(?:Version)?\s*(?:=\s*|\(\s*|\s)(\d+)\b")
_INCLUDE_BUILD = re.compile(r"""\bincludeBuild\s*\(?\s*["']([^"'$]+)["']""")
_AGP = re.compile(
    r"""com\.android\.tools\.build:gradle:(\d[\w.-]*)|^\s*agp\s*=\s*"(\d[\w.-]*)\"""", re.MULTILINE
)
_WRAPPER = re.compile(r"^distributionUrl=.*gradle-(\d[\w.]*?)-(?:bin|all)\.zip", re.MULTILINE)
_STORE_FILE = re.compile(
    r"""\bstoreFile\s*=?\s*\(?\s*(?:file|File)?\s*\(?\s*["'](/[^"'$]+|[A-Za-z]:[^"'$]+)["']"""
)
_GIT = re.compile(r"""["']git["']\s*,|\bgit\s+(?:describe|rev-parse|rev-list)|org\.ajoberstar\.grgit""")
_NODE = re.compile(r"node_modules|com\.facebook\.react|nodeProject|com\.github\.node-gradle")
_SERVICES = re.compile(r"com\.google\.gms\.google-services")


def check_project(
    paths: frozenset[str], texts: Mapping[str, str], project_dir: str, needs: Needs
) -> tuple[Finding, ...]:
    """Give what stands in the way of a build, fatal findings first.

    `paths` are all files of the workspace, `texts` the contents of those named in `TEXT_NAMES`.
    """
    home = "" if project_dir == "." else project_dir.rstrip("/") + "/"
    scripts = {path: _without_comments(text) for path, text in texts.items() if path.startswith(home)}
    findings = [
        *_root(paths, home),
        *_included(paths, scripts),
        *_features(scripts, needs),
        *_files(paths, scripts),
        *_versions(scripts, needs),
    ]
    return tuple(sorted(findings, key=lambda finding: (not finding.is_fatal, finding.path, finding.line)))


def _root(paths: frozenset[str], home: str) -> Iterator[Finding]:
    if any(home + name in paths for name in (*SETTINGS, *SCRIPTS)):
        return
    found = sorted({posixpath.dirname(path) or "." for path in paths if posixpath.basename(path) in SETTINGS})
    where = f"; a Gradle root lies in {', '.join(found[:5])}" if found else ""
    message = f"no settings.gradle and no build.gradle lies here{where}"
    yield Finding("no_gradle_root", home or ".", 0, message, is_fatal=True, is_workspace=True)


def _included(paths: frozenset[str], scripts: Mapping[str, str]) -> Iterator[Finding]:
    for path, text in scripts.items():
        if posixpath.basename(path) not in SETTINGS:
            continue
        for match in _INCLUDE_BUILD.finditer(text):
            target = posixpath.normpath(posixpath.join(posixpath.dirname(path), match[1]))
            line = _line_of(text, match.start())
            if target.startswith(("..", "/")):
                message = (
                    f"includeBuild({match[1]!r}) lies outside the workspace; hand over the folder above it"
                )
                yield Finding("include_outside", path, line, message, is_fatal=True, is_workspace=True)
            elif target != "." and not any(other.startswith(target + "/") for other in paths):
                message = f"includeBuild({match[1]!r}) is empty: a submodule that is not checked out?"
                yield Finding("include_empty", path, line, message, is_fatal=True, is_workspace=True)


def _features(scripts: Mapping[str, str], needs: Needs) -> Iterator[Finding]:
    for path, text in scripts.items():
        if posixpath.basename(path) not in SCRIPTS:
            continue
        native = _NATIVE.search(text)
        if native and not needs.has_ndk:
            message = "builds native code, and the prefix has no NDK"
            yield Finding("needs_ndk", path, _line_of(text, native.start()), message, is_fatal=True)
        for match in _COMPILE_SDK.finditer(text):
            if needs.platforms and match[1] not in needs.platforms:
                message = (
                    f"compiles against Android {match[1]}, and the prefix has {', '.join(needs.platforms)}"
                )
                yield Finding("needs_platform", path, _line_of(text, match.start()), message, is_fatal=True)
        for pattern, has_it, code, message in (
            (_NODE, needs.has_node, "needs_node", "seems to run node, which the prefix has not"),
            (_GIT, needs.has_git, "needs_git", "seems to ask git, which the prefix has not"),
        ):
            found = pattern.search(text)
            if found and not has_it:
                yield Finding(code, path, _line_of(text, found.start()), message)


def _files(paths: frozenset[str], scripts: Mapping[str, str]) -> Iterator[Finding]:
    for path, text in scripts.items():
        if posixpath.basename(path) not in SCRIPTS:
            continue
        for match in _STORE_FILE.finditer(text):
            message = f"signs with {match[1]}, a path of this host"
            yield Finding("keystore_on_host", path, _line_of(text, match.start()), message)
        module = posixpath.join(posixpath.dirname(path), "")
        services = _SERVICES.search(text)
        has_file = any(other.startswith(module) and other.endswith("google-services.json") for other in paths)
        is_applied = services is not None and "apply false" not in text[services.end() : services.end() + 40]
        if services and is_applied and not has_file:
            message = "applies google-services, and no google-services.json lies in the module"
            yield Finding("google_services_missing", path, _line_of(text, services.start()), message)


def _versions(scripts: Mapping[str, str], needs: Needs) -> Iterator[Finding]:
    for path, text in scripts.items():
        for match in _AGP.finditer(text):
            wanted = match[1] or match[2]
            if needs.agp and wanted not in needs.agp:
                message = f"asks for Android Gradle plugin {wanted}; the prefix has {', '.join(needs.agp)}"
                yield Finding("other_agp", path, _line_of(text, match.start()), message)
        wrapper = _WRAPPER.search(text)
        if wrapper and needs.gradle and wrapper[1] != needs.gradle:
            message = f"the wrapper asks for Gradle {wrapper[1]}; the prefix's {needs.gradle} is used"
            yield Finding("other_gradle", path, _line_of(text, wrapper.start()), message)


_COMMENT = re.compile(r"/\*.*?\*/|(?<![:\w\"'])//[^\n]*", re.DOTALL)


def _without_comments(text: str) -> str:
    """Blank comments out, keeping every line where it is."""
    return _COMMENT.sub(lambda match: "\n" * match[0].count("\n"), text)


def _line_of(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1
