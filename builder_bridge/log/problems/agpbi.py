"""AGP's machine form: `AGPBI: {"kind": …, "text": …, "sources": […], "tool": …}`, positions from zero."""

import json
import re
from typing import Any

from builder_bridge.log.problem import Severity, Tool
from builder_bridge.log.problems.finding import Finding, Follow, plain_path

MARKS = (r"AGPBI: ",)

_HEAD = re.compile(r"AGPBI: *(\{.*)", re.DOTALL)
_TOOLS = (
    ("aapt", Tool.AAPT2),
    ("resource", Tool.AAPT2),
    ("manifest", Tool.MANIFEST),
    ("kotlin", Tool.KOTLINC),
    ("javac", Tool.JAVAC),
    ("java compiler", Tool.JAVAC),
    ("r8", Tool.R8),
    ("proguard", Tool.R8),
    ("d8", Tool.D8),
    ("dex", Tool.D8),
    ("desugar", Tool.D8),
    ("lint", Tool.LINT),
    ("cmake", Tool.CMAKE),
    ("clang", Tool.CLANG),
    ("c++", Tool.CLANG),
    ("ndk", Tool.CLANG),
)
_FILES = (
    ("AndroidManifest.xml", Tool.MANIFEST),
    (".java", Tool.JAVAC),
    (".kt", Tool.KOTLINC),
    (".xml", Tool.AAPT2),
)


def match(line: str) -> Finding | None:
    """See a message in machine form; statistics and notes are none."""
    head = _HEAD.match(line)
    if head is None:
        return None
    try:
        body, _ = json.JSONDecoder().raw_decode(head[1])
    except (ValueError, RecursionError):
        return None
    kind = str(body.get("kind", "")).lower()
    text = str(body.get("text") or body.get("original") or "")
    if kind not in ("error", "warning") or not text:
        return None
    file, at_line, column = _source(body.get("sources"))
    severity = Severity.ERROR if kind == "error" else Severity.WARNING
    tool = _tool(body.get("tool"), file)
    return Finding(severity, tool, text, file, at_line, column, Follow.NOTHING)


def _tool(name: Any, file: str | None) -> Tool:
    """Know the tool by its name, or where it gives none by the kind of file it speaks of."""
    words = str(name or "").lower()
    named = next((tool for part, tool in _TOOLS if part in words), None)
    by_file = next((tool for suffix, tool in _FILES if not words and file and file.endswith(suffix)), None)
    return named or by_file or Tool.GRADLE


def _source(sources: Any) -> tuple[str | None, int | None, int | None]:
    first = sources[0] if isinstance(sources, list) and sources and isinstance(sources[0], dict) else {}
    file = first.get("file")
    if isinstance(file, dict):
        file = file.get("path") or file.get("sourcePath")
    position = first.get("position")
    position = position if isinstance(position, dict) else {}
    path = plain_path(file) if isinstance(file, str) and file else None
    return path, _from_zero(position.get("startLine")), _from_zero(position.get("startColumn"))


def _from_zero(value: Any) -> int | None:
    is_index = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return value + 1 if is_index else None
