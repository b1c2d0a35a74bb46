"""Texts of Gradle and its tools → the one word that says what kind of failure it is.

Patterns are tried in order, first those that beat whatever tool reported them: a D8 that is out
of heap is a fault of memory, a Room that cannot load SQLite's library one of this machine.
"""

import re

from builder_bridge.log.kind_patterns import GRADLE, MACHINE, TASKS, WHOLE, Patterns
from builder_bridge.log.problem import Kind, Problem, Tool

_TOOLS = {
    Tool.KSP: Kind.ANNOTATION_PROCESSING,
    Tool.KAPT: Kind.ANNOTATION_PROCESSING,
    Tool.KOTLINC: Kind.COMPILE,
    Tool.JAVAC: Kind.COMPILE,
    Tool.AAPT2: Kind.RESOURCE,
    Tool.MANIFEST: Kind.MANIFEST,
    Tool.D8: Kind.DEX,
    Tool.R8: Kind.DEX,
    Tool.LINT: Kind.LINT,
    Tool.TEST: Kind.TEST,
    Tool.CLANG: Kind.NATIVE,
    Tool.CMAKE: Kind.NATIVE,
}

_PROCESSOR = re.compile(
    r"\[(?:Dagger|Hilt|ksp|kapt|databinding)\b|ComponentProcessor|[Aa]nnotation process"
    r"|BindingComponent|\bHilt_"
)
_GENERATED = re.compile(r"/kapt3?/|/generated/(?:hilt|ksp|source/kapt|ap_generated)|/kaptGenerate")
_TOOLCHAIN_OF_JAVAC = re.compile(
    r"invalid (?:source|target) release|release version \d+ not supported"
    r"|(?:Source|Target) option \d+ is no longer supported"
    r"|无效的源发行版|無効なソース・リリース|不支持发行版本|リリース・バージョン"
)
_APPLYING = re.compile(r"Failed to apply plugin")
_NOT_SET = re.compile(r"(?:Namespace|compileSdk(?:Version)? is) not specified")
_SOFT_KINDS = frozenset(
    {Kind.SCRIPT, Kind.OTHER, Kind.RESOURCE, Kind.MANIFEST, Kind.DEX, Kind.LINT, Kind.TEST}
)
"""A plugin that fails to apply is one of kind `plugin`, unless the reason is of a graver kind than these."""

_BUILD_SCRIPT = re.compile(r"\.gradle(?:\.kts)?$")


def _compiled(table: Patterns) -> list[tuple[Kind, re.Pattern[str]]]:
    return [(kind, re.compile(pattern, re.MULTILINE)) for kind, pattern in table]


_MACHINE_PATTERNS = _compiled(MACHINE)
_WHOLE_PATTERNS = _compiled(WHOLE)
_GRADLE_PATTERNS = _compiled(GRADLE)
_TASK_PATTERNS = _compiled(TASKS)


def kind_of(problem: Problem) -> Kind:
    """Say of what kind a failure is whose first sign is this problem."""
    for kind, pattern in _MACHINE_PATTERNS:
        if pattern.search(problem.message):
            return kind
    if problem.tool is Tool.GRADLE:
        return _kind_of_gradle(problem)
    if problem.tool is Tool.KOTLINC and _is_script(problem.file):
        return Kind.SCRIPT
    if problem.tool is Tool.JAVAC:
        return _kind_of_javac(problem)
    return _TOOLS[problem.tool]


def kind_of_task(task: str) -> Kind:
    """Say what kind of failure to expect of a task, by its name."""
    name = task.rpartition(":")[2]
    return next((kind for kind, pattern in _TASK_PATTERNS if pattern.match(name)), Kind.OTHER)


def _kind_of_gradle(problem: Problem) -> Kind:
    kind = _kind_of_sentences(problem)
    fails_to_apply = kind in _SOFT_KINDS and _APPLYING.search(problem.message)
    return Kind.PLUGIN if fails_to_apply and not _NOT_SET.search(problem.message) else kind


def _kind_of_sentences(problem: Problem) -> Kind:
    for kind, pattern in _WHOLE_PATTERNS:
        if pattern.search(problem.message):
            return kind
    for text in (problem.gist, problem.message):
        for kind, pattern in _GRADLE_PATTERNS:
            if pattern.search(text):
                return kind
    by_task = kind_of_task(problem.task) if problem.task else Kind.OTHER
    if by_task is Kind.OTHER and problem.file is not None and _BUILD_SCRIPT.search(problem.file):
        return Kind.SCRIPT
    return by_task


def _kind_of_javac(problem: Problem) -> Kind:
    if _TOOLCHAIN_OF_JAVAC.search(problem.message):
        return Kind.TOOLCHAIN
    in_processing = problem.task is not None and kind_of_task(problem.task) is Kind.ANNOTATION_PROCESSING
    is_processor = _PROCESSOR.search(problem.message) or (problem.file and _GENERATED.search(problem.file))
    return Kind.ANNOTATION_PROCESSING if in_processing or is_processor else Kind.COMPILE


def _is_script(file: str | None) -> bool:
    return (
        file is not None
        and file.endswith((".gradle.kts", ".gradle", ".init.gradle.kts"))
        and "/src/" not in file
    )
