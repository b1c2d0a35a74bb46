"""javac, in any language that it speaks; phones give it their own.

`/A.java:3: error: text` has a line and no column. Messages without a place begin with the word
alone; outside a Java task they count only with a tag such as `[options]`, because `warning:` is
also how many programs begin free text.
"""

import re

from builder_bridge.log.problem import Tool
from builder_bridge.log.problems.finding import (
    ERROR_WORDS,
    PATH,
    WARNING_WORDS,
    Finding,
    TaskLookup,
    number,
    plain_path,
    severity_of,
    task_name,
)

MARKS = (
    r"\.java:[0-9]+: [^w\n\xe8]",  # 警 begins with E8
    r"(?:^|[^A-Za-z0-9_\n]|Java|Javac)error: ",
    r"(?:错误|錯誤|エラー|오류): ",
    r"\.(?:jar|class)\([^)\n]*\): [^w\n\xe8]",
)
WARNING_MARKS = (
    r"\.java:[0-9]+: [w\xe8]",
    r"(?:^|[^A-Za-z0-9_\n]|Java|Javac)warning: ",
    r"(?:警告|경고): ",
    r"\.(?:jar|class)\([^)\n]*\): [w\xe8]",
)

_WORDS = rf"(?:{ERROR_WORDS}|{WARNING_WORDS})"
_WORD = re.compile(_WORDS)
_PLACED = re.compile(rf" {{0,3}}({PATH}\.java):(\d+): ([^\W\d_]{{1,20}})[:：] ?(\S.*)", re.DOTALL)
_IN_ARCHIVE = re.compile(rf"([^\n]*?\.(?:jar|class)\([^)\n]*\)): ({_WORDS})[:：] ?(\S.*)", re.DOTALL)
_BARE = re.compile(rf"({_WORDS})[:：] (\S.*)", re.DOTALL)
_TAGGED = re.compile(r"\[[A-Za-z][\w./-]*\]")
_JAVA_TASK = re.compile(r"[Jj]avac|compile\w*Java|kapt|[Jj]avadoc|hilt|[Aa]ptCompile")
_KAPT_STUB = re.compile(r"/kapt3?/stubs/")
_KAPT_TASK = re.compile(r"kapt(?!Generate)")
_NO_PROBLEM = re.compile(r"Note|note|注|注意|ノート|Hinweis|참고|Remarque|Error|Warning|Information|Hint")
_OTHER_TOOL = re.compile(r"AAPT|D8|R8|CMake")


def match(line: str, task: TaskLookup) -> Finding | None:
    """See a message of javac; `task` is the Gradle task that runs, where it is known."""
    placed = _PLACED.match(line) if ".java:" in line else None
    if placed:
        file, at_line, word, message = placed.groups()
        if _NO_PROBLEM.match(word) or (word.isascii() and not _WORD.fullmatch(word)):
            return None
        tool = Tool.KAPT if _is_of_kapt(file, task) else Tool.JAVAC
        return Finding(severity_of(word), tool, message, plain_path(file.strip()), number(at_line))
    archive = _IN_ARCHIVE.match(line) if "): " in line else None
    if archive:
        file, word, message = archive.groups()
        return Finding(severity_of(word), Tool.JAVAC, message, plain_path(file.strip()))
    bare = _BARE.match(line)
    if bare is None:
        return None
    word, message = bare.groups()
    is_localized = not word.isascii()
    if _OTHER_TOOL.match(message):
        return None
    if not (is_localized or _TAGGED.match(message) or _JAVA_TASK.search(task_name(task()))):
        return None
    tool = Tool.KAPT if _KAPT_TASK.match(task_name(task())) else Tool.JAVAC
    return Finding(severity_of(word), tool, message)


def _is_of_kapt(file: str, task: TaskLookup) -> bool:
    """Whether the javac is the one inside KAPT, which leaves out its `e:` in a process of its own."""
    return _KAPT_STUB.search(file) is not None or _KAPT_TASK.match(task_name(task())) is not None
