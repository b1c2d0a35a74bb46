"""clang, its linker, and CMake; AGP puts `C/C++: ` before their lines while they run."""

import re

from builder_bridge.log.problem import Severity, Tool
from builder_bridge.log.problems.finding import PATH, Finding, Follow, number, plain_path, severity_of

MARKS = (
    r":[0-9]+(?::[0-9]+)?: (?:fatal )?error: ",
    r"(?:^|[^A-Za-z0-9_\n])error: ",
    r"undefined reference to ",
    r"CMake Error",
)
WARNING_MARKS = (r":[0-9]+: warning: ", r"(?:^|[^A-Za-z0-9_\n])warning: ", r"CMake (?:Warning|Deprecation)")

_RUNNING = re.compile(r"C/C\+\+: ?")
_SUFFIX = r"\.(?:c|cc|cpp|cxx|c\+\+|h|hh|hpp|hxx|inl|inc|ipp|tcc|m|mm|S|s|asm|rs|glsl|frag|vert|comp|cu)"
_SOURCE = rf" {{0,6}}{PATH}{_SUFFIX}"
_PLACED = re.compile(rf"({_SOURCE}):(\d+)(?::(\d+))?: (fatal error|error|warning): (\S.*)", re.DOTALL)
_REFERENCE = re.compile(rf"({_SOURCE})(?::(\d+))?:[^\n]*?(undefined reference to .*)", re.DOTALL)
_LINKER = re.compile(
    r"(?:[^\n ]*[/\\])?(?:ld(?:\.lld|\.gold|\.bfd)?|lld|[\w.-]*clang(?:\+\+)?|[\w-]*g(?:cc|\+\+)|collect2)"
    r"(?:\.exe)?: (?:fatal )?(error|warning): (\S.*)",
    re.DOTALL,
)
_CMAKE_PLACED = re.compile(
    r"CMake (Error|Warning|Deprecation Warning)(?: \(dev\))? (?:at|in) "
    r"([^\n]+?)(?::(\d+))?(?: \([^)\n]*\))?:?\s*$"
)
_CMAKE_BARE = re.compile(r"CMake (Error|Warning)(?: \(dev\))?: ?(.*)", re.DOTALL)


def without_prefix(line: str) -> str:
    """Take AGP's `C/C++: ` off."""
    found = _RUNNING.match(line)
    return line[found.end() :] if found else line


def match(line: str) -> Finding | None:
    """See a message of the C and C++ tools."""
    if line.startswith("CMake "):
        return _match_cmake(line)
    placed = _PLACED.match(line)
    if placed:
        file, at_line, column, word, message = placed.groups()
        path = plain_path(file.strip())
        return Finding(severity_of(word), Tool.CLANG, message, path, number(at_line), number(column))
    linker = _LINKER.match(line)
    if linker:
        return Finding(severity_of(linker[1]), Tool.CLANG, linker[2])
    reference = _REFERENCE.match(line) if "undefined reference" in line else None
    if reference:
        file, at_line, message = reference.groups()
        return Finding(Severity.ERROR, Tool.CLANG, message, plain_path(file.strip()), number(at_line))
    return None


def _match_cmake(line: str) -> Finding | None:
    placed = _CMAKE_PLACED.match(line)
    if placed:
        word, file, at_line = placed.groups()
        severity = Severity.ERROR if word == "Error" else Severity.WARNING
        return Finding(severity, Tool.CMAKE, "", plain_path(file), number(at_line), None, Follow.INDENTED)
    bare = _CMAKE_BARE.match(line)
    if bare is None:
        return None
    severity = Severity.ERROR if bare[1] == "Error" else Severity.WARNING
    return Finding(severity, Tool.CMAKE, bare[2], follow=Follow.INDENTED)
