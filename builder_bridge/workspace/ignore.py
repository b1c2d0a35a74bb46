"""What of a workspace is handed to a phone, and what stays behind.

The working tree counts, not what git tracks: a `google-services.json` that git ignores is needed
by the build. Left out are histories, editor state, unfinished edits and what Gradle made; a folder
called `build` is Gradle's only where a build script lies beside it, so a Java package of that name
is kept.
A `.pocketbuildignore` in any folder adds patterns with gitignore's meaning, negation included.
"""

import re
from dataclasses import dataclass

import pathspec

from builder_bridge.errors import WorkspaceFault

IGNORE_FILE = ".pocketbuildignore"
UNFINISHED_SUFFIX = ".pocketbuild-new"
"""How the names of hidden files end that hold new content of another file until it is whole."""

ALWAYS_OUT = {
    ".git": "history",
    ".hg": "history",
    ".svn": "history",
    ".jj": "history",
    ".idea": "editor state",
    ".vscode": "editor state",
    ".fleet": "editor state",
    ".DS_Store": "editor state",
    "Thumbs.db": "editor state",
}
OUT_BESIDE_A_BUILD_SCRIPT = {
    "build": "made by Gradle",
    ".gradle": "made by Gradle",
    ".kotlin": "made by Kotlin",
    ".cxx": "made by CMake",
    ".externalNativeBuild": "made by CMake",
    "captures": "profiler state",
}
BUILD_SCRIPTS = frozenset({"build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"})
DROPPED_PATHS = {
    "gradle/gradle-daemon-jvm.properties": "pins a JDK vendor, which stops a build before any script runs",
}


@dataclass(frozen=True, slots=True)
class ScanRules:
    """How a workspace is read; sizes in bytes.

    `patterns` are further gitignore lines for the whole workspace. `has_git` hands `.git` over
    too, for builds that ask git for their version. `materialise_outside_links` copies what a link
    to outside the workspace points to instead of refusing it. `skip_unreadable` leaves unreadable
    files out, with a note, instead of stopping.
    """

    patterns: tuple[str, ...] = ()
    has_git: bool = False
    materialise_outside_links: bool = False
    skip_unreadable: bool = False
    keep_local_properties: bool = False
    max_files: int = 100_000
    max_size_bytes: int = 10 << 30


class IgnoreRules:
    """Decides for each path, folder by folder; a deeper ignore file overrules a higher one."""

    def __init__(self, rules: ScanRules) -> None:
        self._rules = rules
        self._specs: list[tuple[str, pathspec.GitIgnoreSpec]] = []
        if rules.patterns:
            self.add("", "\n".join(rules.patterns))

    def add(self, folder: str, text: str) -> None:
        """Take in the ignore file of a folder ("" for the workspace itself).

        Raises `WorkspaceFault` that names a pattern which is none.
        """
        lines = text.splitlines()
        try:
            spec = pathspec.GitIgnoreSpec.from_lines(lines)
        except (ValueError, re.error) as error:
            raise _named_fault(folder, lines) from error
        self._specs.append((folder + "/" if folder else "", spec))

    def reason(self, path: str, *, is_folder: bool, siblings: frozenset[str]) -> str | None:
        """Say why a path stays behind, or None where it is handed over.

        `siblings` are the names in the same folder. An explicit pattern, either way, wins over
        the rules that are built in.
        """
        verdict = self._by_pattern(path + "/" if is_folder else path)
        if verdict is not None:
            return f"matches {IGNORE_FILE}" if verdict else None
        name = path.rpartition("/")[2]
        if name == ".git" and self._rules.has_git:
            return None
        if name in ALWAYS_OUT or name.endswith(".iml"):
            return ALWAYS_OUT.get(name, "editor state")
        if not is_folder and name.startswith(".") and name.endswith(UNFINISHED_SUFFIX):
            return "an edit that was cut short"
        if is_folder and name in OUT_BESIDE_A_BUILD_SCRIPT and siblings & BUILD_SCRIPTS:
            return OUT_BESIDE_A_BUILD_SCRIPT[name]
        return None

    def _by_pattern(self, path: str) -> bool | None:
        for folder, spec in reversed(self._specs):
            if path.startswith(folder):
                found = spec.check_file(path[len(folder) :]).include
                if found is not None:
                    return found
        return None


def _named_fault(folder: str, lines: list[str]) -> WorkspaceFault:
    number = next(number for number in range(1, len(lines) + 1) if not _is_read(lines[number - 1]))
    place = f"{folder}/{IGNORE_FILE}" if folder else IGNORE_FILE
    return WorkspaceFault(
        f"line {number} of {place} is no pattern: {lines[number - 1]!r}",
        hint="Patterns are those of gitignore; mend or remove the line.",
    )


def _is_read(line: str) -> bool:
    try:
        pathspec.GitIgnoreSpec.from_lines([line])
    except (ValueError, re.error):
        return False
    return True
