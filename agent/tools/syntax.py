"""Find out whether a changed file still parses, before a phone spends a minute on saying so.

XML is parsed by expat, Java by tree-sitter's grammar, and Kotlin is checked for what does not close. Only
faults that a change brought in count: what did not parse before is left to the compiler. Groovy scripts are
left to Gradle, for the grammar that is packaged does not know them well enough.
"""

from functools import cache
from pathlib import PurePosixPath
from xml.parsers import expat

import tree_sitter_java
from tree_sitter import Language, Node, Parser

from agent.tools.brackets import unclosed

_MAX_FAULTS = 3


def new_faults(name: str, before: bytes | None, after: bytes) -> list[str]:
    """Give what a change broke in a file, as lines for a model; empty where it still parses."""
    if before is not None and faults_of(name, before):
        return []
    return faults_of(name, after)


def faults_of(name: str, data: bytes) -> list[str]:
    """Give the places where a file does not parse, at most three; empty for kinds that are not checked."""
    match PurePosixPath(name).suffix:
        case ".xml":
            return _xml(name, data)
        case ".java":
            root = _java().parse(data).root_node
            return [_told(name, node) for node in _wrong(root)][:_MAX_FAULTS]
        case ".kt" | ".kts":
            told = unclosed(data.decode("utf-8", "replace"))
            return [f"{name}:{told}"] if told else []
        case _:
            return []


def _xml(name: str, data: bytes) -> list[str]:
    try:
        expat.ParserCreate().Parse(data, True)
    except expat.ExpatError as fault:
        return [f"{name}:{fault.lineno}:{fault.offset + 1}  {expat.ErrorString(fault.code)}"]
    return []


@cache
def _java() -> Parser:
    return Parser(Language(tree_sitter_java.language()))


def _wrong(node: Node) -> list[Node]:
    if node.is_error or node.is_missing:
        return [node]
    return [found for child in node.children for found in _wrong(child)] if node.has_error else []


def _told(name: str, node: Node) -> str:
    line, column = node.start_point
    if node.is_missing:
        return f"{name}:{line + 1}:{column + 1}  expected {node.type!r}"
    text = (node.text or b"").decode("utf-8", "replace").split("\n")[0].strip()
    return f"{name}:{line + 1}:{column + 1}  does not parse: {text[:80]}"
