"""Errors → root causes with their followers, so that one missing name is one thing to mend.

An error follows from an earlier one if it is about the same missing name, if it only says that
types could not be inferred on the same line, if a syntax error stands before it in the same file,
or if it only sums up what a tool has said.
"""

import re
from collections.abc import Sequence

from builder_bridge.log.problem import Problem, Severity, Tool

_MISSING = re.compile(
    r"[Uu]nresolved reference:? '?([\w$.]+)|cannot find symbol\b|package ([\w.]+) does not exist"
    r"|找不到符号|シンボルを見つけられません"
    r"|use of undeclared identifier '([^'\n]+)'|unknown type name '([^'\n]+)'"
    r"|no member named '([^'\n]+)'|resource ([\w./:]+)(?: \(aka [^)\n]*\))? not found"
    r"|attribute ([\w./:]+)(?: \(aka [^)\n]*\))? not found"
    r"|No resource found that matches the given name[^\n]*'([^'\n]+)'"
    r"|程序包([\w.]+)不存在|パッケージ([\w.]+)は存在しません"
)
_SYMBOL_LINE = re.compile(r"^\s*(?:symbol|符号|シンボル) *[:：] +((?:\S+ +)?([\w$]+)[^\n]*)", re.MULTILINE)
_IMPORT_LINE = re.compile(r"^\s*import (?:static )?[\w.]*?(\w+);?\s*$", re.MULTILINE)
_ONLY_A_TAG = re.compile(r"\[\w+\]\s*")
_BELOW_CARET = re.compile(r"^ *\^ *\n\s*(\S[^\n]*)", re.MULTILINE)
_SECONDARY = re.compile(
    r"[Cc]annot infer|[Nn]ot enough information to infer|[Tt]ype mismatch"
    r"|[Aa]rgument type mismatch|[Oo]verload resolution|None of the following"
    r"|@Composable invocations|Cannot access|incompatible types|bad operand|delegate"
)
_SYNTAX = re.compile(
    r"[Ss]yntax error|Expecting |[Uu]nexpected tokens|';' expected|class, interface"
    r"|reached end of file|illegal start of|<identifier> expected|unclosed |expected '"
    r"|extraneous closing"
)
_SUMMARY = re.compile(
    r"Error occurred in KSP|linker command failed|Missing classes detected while running R8"
    r"|failed linking references|\d+ errors? generated|Compilation error\. See log"
)
_WERROR = re.compile(r"warnings found and -Werror specified")

Group = tuple[Problem, tuple[Problem, ...]]


def group(problems: Sequence[Problem]) -> list[Group]:
    """Give each root cause with its followers, in the order of the log."""
    errors = [problem for problem in problems if problem.severity is Severity.ERROR]
    if any(_WERROR.search(error.gist) for error in errors):
        errors = _promote_warnings(problems)
    groups: list[tuple[Problem, list[Problem]]] = []
    by_name: dict[tuple[str, str], int] = {}
    by_line: dict[tuple[str | None, int | None], int] = {}
    broken: dict[str | None, int] = {}
    for error in errors:
        names = _names(error)
        home = next((by_name[name] for name in names if name in by_name), None)
        if home is None and error.file in broken and not _SYNTAX.search(error.gist):
            home = broken[error.file]
        if home is None and _SECONDARY.search(error.gist):
            home = by_line.get((error.file, error.line)) if error.line else None
        if home is None and _SUMMARY.search(error.gist) and groups:
            home = _last_of_tool(groups, error.tool)
        if home is not None:
            groups[home][1].append(error)
        else:
            home = len(groups)
            groups.append((error, []))
        for name in names:
            by_name.setdefault(name, home)
        by_line.setdefault((error.file, error.line), home)
        if error.file and _SYNTAX.search(error.gist):
            broken.setdefault(error.file, home)
    return [(root, tuple(followers)) for root, followers in _without_summaries(groups)]


def headline(problem: Problem) -> str:
    """Give the gist, and what javac says lines below: the symbol it cannot find, or all but a tag."""
    if problem.tool not in (Tool.JAVAC, Tool.KAPT):
        return problem.gist
    symbol = _SYMBOL_LINE.search(problem.message)
    below = _BELOW_CARET.search(problem.message) if _ONLY_A_TAG.fullmatch(problem.gist) else None
    told = symbol or below
    return f"{problem.gist}: {told[1].strip()}" if told else problem.gist


def _promote_warnings(problems: Sequence[Problem]) -> list[Problem]:
    """With -Werror the warnings are what is to be mended; the sentence itself follows from them."""
    warnings = [problem for problem in problems if problem.severity is Severity.WARNING and problem.file]
    errors = [problem for problem in problems if problem.severity is Severity.ERROR]
    return [*warnings, *errors] if warnings else errors


def _names(error: Problem) -> list[tuple[str, str]]:
    """Give the names that an error misses, with the family of tools that would know them."""
    found = _MISSING.search(error.message)
    if found is None:
        return []
    family = "native" if error.tool is Tool.CLANG else "resource" if error.tool is Tool.AAPT2 else "jvm"
    names = [name for name in found.groups() if name]
    names += [name for _, name in _SYMBOL_LINE.findall(error.message)]
    names += _IMPORT_LINE.findall(error.message)
    return [(family, name) for name in names]


def _last_of_tool(groups: list[tuple[Problem, list[Problem]]], tool: Tool) -> int | None:
    same = [index for index, (root, _) in enumerate(groups) if root.tool is tool]
    return same[-1] if same else None


def _without_summaries(groups: list[tuple[Problem, list[Problem]]]) -> list[tuple[Problem, list[Problem]]]:
    """Put a summary that came before what it sums up under the first cause of its tool."""
    roots = [pair for pair in groups if not (_SUMMARY.search(pair[0].gist) or _WERROR.search(pair[0].gist))]
    for root, followers in groups:
        if (root, followers) in roots:
            continue
        home = next((pair for pair in roots if pair[0].tool is root.tool), None)
        if home is None:
            roots.append((root, followers))
        else:
            home[1].extend((root, *followers))
    return roots
