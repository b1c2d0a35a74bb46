"""One failure of Gradle → the problems it adds, and those it only points at.

A block adds one problem with the innermost cause, unless it points at diagnostics that the log has
elsewhere ("Compilation error. See log for more details") or repeats one. Blocks about dependencies
add one for each module, blocks about Kotlin scripts one for each `Line N:`.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from builder_bridge.log.block_sentences import (
    ANY_TOOL,
    CUT_WORDS,
    HEADINGS_OF_DETAILS,
    POINTERS,
    WRAPPER_WORDS,
)
from builder_bridge.log.causes import Cause, Failure, cause_tree, task_of, where_of
from builder_bridge.log.ledger import one_line
from builder_bridge.log.problem import Problem, Severity, Tool
from builder_bridge.log.problems.finding import ERROR_WORDS, number, plain_path, task_name

_POINTER_PATTERNS = [(tools, re.compile(pattern)) for tools, pattern in POINTERS]
_WRAPPER = re.compile("|".join(WRAPPER_WORDS) + r"|Execution failed for \w+:")
_MODULE = re.compile(
    r"Could not (?:resolve|find|download|get|parse) (?!all\b|resource|unknown|method|property)"
    r"|Cannot resolve external dependency |Cannot find a version of |Module '"
    r"|No cached version of [^\s:]+:|Cannot choose between |No matching (?:variant|configuration) of "
    r"|Conflict found for the following module|Dependency verification failed for"
)
_ERROR_WORD = re.compile(r"(?:^|[\s:])(?:fatal )?error: ")
_NO_MESSAGE = "(no error message)"
_ERROR_IN_JAVA = re.compile(rf"({ERROR_WORDS})[:：] ?(?=\S)")
_JAVA_TASK = re.compile(r"[Jj]avac?\b|Java(?:WithJavac)?$|[Jj]avac|kapt")
_MANIFEST_SENTENCE = re.compile(
    r"Manifest merger failed|Incorrect package=|Error parsing [^\n]*AndroidManifest"
    r"|[^\n]*SAXParseException[^\n]*AndroidManifest|Namespace '[^'\n]*' is used in multiple modules"
)
_MANIFEST_TASK = re.compile(r"process\w*Manifest")


@dataclass(frozen=True, slots=True)
class Explained:
    """A problem that a failure may add, and the tools whose errors would make it superfluous."""

    problem: Problem
    points_at: frozenset[Tool] = frozenset()


def explain(failure: Failure) -> list[Explained]:
    """Give the problems of one failure block, apart from located diagnostics inside it."""
    file, line = where_of(failure)
    root = cause_tree(failure.what)
    if root is None:
        return []
    maker = _Maker(failure, file, line, task_of(failure))
    scripts = list(_script_errors(failure, maker))
    if scripts:
        return scripts
    modules = [pair for pair in _modules(root, []) if not (failure.is_cut and _is_half(pair[1]))]
    if modules:
        return [maker.make(outer, node) for outer, node in modules]
    leaf = root.innermost()
    if failure.is_cut and (leaf.gist in HEADINGS_OF_DETAILS or _is_only_a_wrapper(leaf, is_cut=True)):
        return []
    if _is_only_a_wrapper(leaf, is_cut=False):
        return [maker.make_of_nothing(root)]
    return [maker.make([], root)]


@dataclass(frozen=True, slots=True)
class _Maker:
    failure: Failure
    file: str | None
    line: int | None
    task: str | None

    def make(self, outer: list[Cause], node: Cause) -> Explained:
        """Tell the innermost cause under `node`; what stands above it follows below its text."""
        path = [*outer, *_path_to_leaf(node)]
        leaf = path[-1]
        text = leaf.text
        points_at = _pointed_at(text)
        if points_at:
            text = _telling_line_first(text)
        if _NO_MESSAGE in text and self.failure.last_cause:
            text = f"{self.failure.last_cause}\n{text}"
        if node is not leaf and _MODULE.match(node.gist):
            text = f"{node.gist.rstrip('.')}: {text}"
        tool, text = self._tool_of(text)
        file, line, column, text = _place_in(text, self.file, self.line)
        message = "\n".join([text, *(cause.text for cause in reversed(path[:-1]))])
        problem = Problem(Severity.ERROR, tool, file, line, column, message, leaf.log_line, self.task)
        return Explained(problem, points_at)

    def make_of_nothing(self, root: Cause) -> Explained:
        """Tell of a failure without a cause; it only counts where no tool has given one."""
        path = _path_to_leaf(root)
        texts = [self.failure.last_cause or "", *(cause.text for cause in reversed(path))]
        message = "\n".join(text for text in texts if text)
        line = path[-1].log_line
        problem = Problem(Severity.ERROR, Tool.GRADLE, self.file, self.line, None, message, line, self.task)
        return Explained(problem, ANY_TOOL)

    def _tool_of(self, text: str) -> tuple[Tool, str]:
        if text.startswith("AAPT2 "):
            return Tool.AAPT2, text
        is_of_manifest = _MANIFEST_TASK.match(task_name(self.task)) and "AndroidManifest" in text
        if _MANIFEST_SENTENCE.match(text) or is_of_manifest:
            return Tool.MANIFEST, text
        found = _ERROR_IN_JAVA.match(text)
        if found and self.task and _JAVA_TASK.search(self.task):
            return Tool.JAVAC, text[found.end() :]
        return Tool.GRADLE, text


_EXCEPTIONS = re.compile(r"^(?:(?:[\w$]+\.)+[\w$]+: )+")
_PREFACE = re.compile(r"^(?:Manifest merger failed ?: |(?:[\w$]+\.)+[\w$]+: )+")


def is_repeated(problem: Problem, said: Sequence[tuple[str, int | None]]) -> bool:
    """Whether a problem of a block only says again what a tool has said, as (one-line text, line)."""
    gist = one_line(_PREFACE.sub("", problem.gist)).strip(" .")
    if len(gist) < 6:
        return False
    return any(
        gist in text and (problem.line is None or at_line in (None, problem.line)) for text, at_line in said
    )


def _telling_line_first(text: str) -> str:
    """Put the line with the error before a heading such as "ninja: Entering directory"."""
    lines = text.split("\n")
    telling = next((line.strip() for line in lines[1:] if _ERROR_WORD.search(line)), None)
    return f"{telling}\n{text}" if telling else text


def _is_only_a_wrapper(leaf: Cause, *, is_cut: bool) -> bool:
    lines = [line.strip() for line in leaf.text.split("\n") if line.strip()]
    return all(
        _WRAPPER.match(line) or any(_is_begun(word, line, is_cut=is_cut) for word in CUT_WORDS)
        for line in lines
    )


def _is_begun(sentence: str, line: str, *, is_cut: bool) -> bool:
    begun = _EXCEPTIONS.sub("", line)
    return sentence.startswith(begun) and (is_cut or begun != sentence)


def _pointed_at(text: str) -> frozenset[Tool]:
    gist = _EXCEPTIONS.sub("", text.partition("\n")[0].strip())
    return next((tools for tools, pattern in _POINTER_PATTERNS if pattern.match(gist)), frozenset())


def _modules(cause: Cause, outer: list[Cause]) -> list[tuple[list[Cause], Cause]]:
    """Find the outermost sentences that tell of one module each, with what stands above them."""
    if _MODULE.match(cause.gist):
        return [(outer, cause)]
    found = [pair for child in cause.children for pair in _modules(child, [*outer, cause])]
    return found or ([(outer, cause)] if cause.gist.startswith("Failed to transform ") else [])


def _is_half(module: Cause) -> bool:
    """Whether the log ended before it said of which file a transform failed, and why."""
    return module.gist.startswith("Failed to transform ") and not module.children


def _path_to_leaf(node: Cause) -> list[Cause]:
    path = [node]
    while path[-1].children:
        path.append(path[-1].children[0])
    return path


_IN_FILE = re.compile(r"In file '([^'\n]+)' at line (\d+), column (\d+): *([^\n]*)")
_SAX_PLACE = re.compile(r"SAXParseException; systemId: ([^;\n]*); lineNumber: (\d+); columnNumber: (\d+)")


def _place_in(
    text: str, file: str | None, line: int | None
) -> tuple[str | None, int | None, int | None, str]:
    """Give the place that the text itself names, else that of `* Where:`, and the text."""
    catalog = _IN_FILE.search(text)
    if catalog:
        return catalog[1], int(catalog[2]), int(catalog[3]), f"{catalog[4]}\n{text}"
    sax = _SAX_PLACE.search(text)
    if sax:
        return plain_path(sax[1]) or file, number(sax[2]), number(sax[3]), text
    return file, line, None, text


_SCRIPT_LINE = re.compile(r"\s*Line (\d+):(.*)")
_CARET = re.compile(r"\s*\^ ?(.*)")
_GROOVY_ERROR = re.compile(r"\s*(?:\w+ file|(?:\w+ )?script) '([^'\n]+)': (\d+): (.+)")
_GROOVY_PLACE = re.compile(r"(?:[^\n]*\S)?\s*@ line (\d+), column (\d+)\.?")


def _script_errors(failure: Failure, maker: _Maker) -> Iterator[Explained]:
    """Read the errors of a script that did not compile: `Line N:` of Kotlin, `@ line N` of Groovy."""
    lines = failure.what
    for index, (log_line, text) in enumerate(lines):
        kotlin = _SCRIPT_LINE.match(text)
        groovy = _GROOVY_ERROR.match(text)
        if kotlin and index + 1 < len(lines):
            message = _below_caret(lines[index + 1 :])
            if message:
                yield Explained(_script_problem(maker, maker.file, int(kotlin[1]), None, message, log_line))
        elif groovy:
            file, at_line, message = groovy.groups()
            line, column = _groovy_place([text for _, text in lines[index:]])
            yield Explained(
                _script_problem(maker, file, line or int(at_line), column, message.strip(), log_line)
            )


def _groovy_place(lines: list[str]) -> tuple[int | None, int | None]:
    """Give the place behind `@`, on the message's own line or, after its explanation, on a later one."""
    for count, text in enumerate(lines[:20]):
        if count and _GROOVY_ERROR.match(text):
            break
        place = _GROOVY_PLACE.fullmatch(text.rstrip())
        if place:
            return int(place[1]), int(place[2])
    return None, None


def _below_caret(lines: list[tuple[int, str]]) -> str:
    message: list[str] = []
    for _, text in lines[:20]:
        caret = _CARET.match(text)
        if not message and caret:
            message.append(caret[1])
        elif message and text.strip() and not _SCRIPT_LINE.match(text):
            message.append(text.strip())
        elif message:
            break
    return "\n".join(message)


def _script_problem(
    maker: _Maker, file: str | None, line: int, column: int | None, message: str, log_line: int
) -> Problem:
    return Problem(Severity.ERROR, Tool.GRADLE, file, line, column, message, log_line, maker.task)
