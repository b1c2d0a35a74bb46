"""What CI systems, containers and wrappers write before every line, and how it comes off.

The usual prefixes are known by their form. Any other is learned from the first line that Gradle or
Kotlin is sure to have written (`> Task :x`, `FAILURE: Build`, `e: file:///`): what stands before it
there stands before the lines below it too, with other numbers.
"""

import re

import re2

_TIME = r"\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
_STAMP = r"\d{4}[-./]\d\d[-./]\d\d[T ]" + _TIME + r"(?:Z|[+-]\d\d:?\d\d)?"
_STREAM = r"(?: \d\d[OE](?:[+ ]|$)| (?:stdout|stderr) [FP](?: |$)|[ \t]|$)"
_LEVEL = r"(?: ?(?:(?:INFO|WARN):?(?: {1,2}|$)|(?:TRACE|DEBUG):?(?: |$)|(?:WARNING|ERROR|FATAL)(?: |$)))?"

# Keyed by how a prefix begins, so that most lines are tried against one short pattern or none.
_AFTER_DIGIT = re.compile(
    # All hosted CI systems; GitLab and containers add their stream, loggers their level.
    rf"{_STAMP}{_STREAM}{_LEVEL}"
    # Jenkins and others: the time of day. logcat: date, time, then process and level in either order.
    rf"|{_TIME}(?: [AP]M)?(?: {{1,2}}|\t|$)"
    rf"|\d\d-\d\d {_TIME} +(?:\d+ +\d+ [VDIWEF] [^:\n]{{1,40}}|[VDIWEF]/[^:(\n]{{1,40}}(?:\( *\d+\))?): "
)
_AFTER_BRACKET = re.compile(
    rf"\[{_STAMP}\]{_STREAM}"
    # Gradle's own --debug form, behind its time stamp.
    r"|\[(?:QUIET|LIFECYCLE|WARN|ERROR|INFO|DEBUG)\] \[(?:class )?[\w.$]+\] ?"
    # Loggers of wrappers, and what some of them call Gradle.
    r"|\[(?:INFO|WARN|WARNING|ERROR|DEBUG)\] {1,2}(?:\[GRADLE\] ?)?"
    # flutter --verbose: time since the last line.
    r"|\[ *(?:\+? *[\d.,]+ ?m?s)? *\](?: |$)"
    # TeamCity; fastlane, Bitrise and others with the time of day.
    rf"|\[{_TIME}\]: ▸ ?"
    rf"|\[{_TIME}\]\s?[WEiF]?\s?:\s*(?:\[Step \d+/\d+\] ?)?|\[{_TIME}\] ?"
    # Expo's build phases; AGP's own [CXX1101] codes are no prefix.
    r"|\[(?!CXX\d)[A-Z][A-Z0-9]*_[A-Z0-9_]+\] ?|\[(?:stdout|stderr)\] ?"
    # act: workflow and job, then a bar.
    r"|\[[\w.()/: -]{1,80}\] {1,12}\| ?"
)
_AFTER_HASH = re.compile(
    # docker build: step and seconds; commands of Azure and GitHub.
    r"#\d{1,4} \d{1,6}\.\d{1,3}(?: |$)|##\[(?:error|warning|command|debug|section)\]"
)
_AFTER_LETTER = re.compile(
    # docker compose: the service's name; git: its remote.
    r"[A-Za-z][\w.-]{0,40} {1,20}\| ?|remote: ?"
    # logcat, short: level and tag. Google's builds: the step.
    r"|[VDIWEF]/[^:(\n]{1,40}(?:\( *\d+\))?: |Step #\d+(?: - \"[^\"\n]{1,60}\")?: "
    # syslog and journals: date, host, program.
    rf"|[A-Z][a-z]{{2}} [ \d]\d {_TIME} [\w.-]{{1,64}} [\w./-]{{1,40}}(?:\[\d+\])?: "
)
_LETTERS = re.compile(r"[A-Z][a-z]{2} [ \d]|Step #|[VDIWEF]/|remote:")

_COLUMNS = re.compile(rf"[^\t\n]{{1,80}}\t[^\t\n]{{1,80}}\t\ufeff?(?={_STAMP})")
"""GitHub's job and step before the time stamp."""

_PREFIXES = {"[": _AFTER_BRACKET, "#": _AFTER_HASH} | dict.fromkeys("0123456789", _AFTER_DIGIT)
_MAX_PREFIXES = 4
_HEADS_WITHOUT_PREFIX = ("e: ", "w: ", "> ")


def strip_prefix(line: str) -> str:
    """Take off what a CI system, a container or a wrapper is known to write before the line."""
    if "\t" in line[:170]:
        columns = _COLUMNS.match(line)
        line = line[columns.end() :] if columns else line
    for _ in range(_MAX_PREFIXES):
        if line.startswith(_HEADS_WITHOUT_PREFIX):
            return line
        first = line[:1]
        pattern = _PREFIXES.get(first)
        if pattern is None and first.isalpha() and ("|" in line[:64] or _LETTERS.match(line)):
            pattern = _AFTER_LETTER
        found = pattern.match(line) if pattern else None
        if found is None or not found.end():
            return line
        line = line[found.end() :]
    return line


_SURE_STARTS = (
    *("> Task :", "> Configure project :", "FAILURE: Build ", "BUILD FAILED", "BUILD SUCCESSFUL"),
    *("e: file:///", "w: file:///"),
)
_OLD_TASK = r":[\w.-]+(?::[\w.-]+)+ (?:UP-TO-DATE|NO-SOURCE|FROM-CACHE|SKIPPED)\r?$"
_LATIN1 = re2.Options()
_LATIN1.encoding = re2.Options.Encoding.LATIN1
_SURE_SIGN = re2.compile(
    rf"(?m)^([^\r\n]*?)(?:{'|'.join(map(re2.escape, _SURE_STARTS))}|{_OLD_TASK})".encode(), _LATIN1
)
_MAX_LEARNED_CHARS = 160
_FLUTTER = re.compile(r"\[[ +\d]{6,8}(?:ms)?\] ")
"""flutter --verbose indents the further lines of what came at once by as much as this takes."""
_PART = re.compile(r"[A-Z]+(?![A-Za-z0-9])|[A-Za-z0-9]+| +|[^A-Za-z0-9 ]")


class PrefixLearner:
    """Learn the prefix of a log from its first sure sign; before that only known ones come off.

    A later line that begins with such a sign shows that not all lines have the prefix: it is forgotten.
    What is learned depends on the lines alone, never on how the bytes were cut into blocks.
    """

    def __init__(self) -> None:
        self._is_settled = False
        self._indent = ""
        self._shape: re.Pattern[str] | None = None
        self._begins_at = 0

    def enter(self, block: bytes) -> None:
        """Begin a block of whole lines, without escape codes."""
        self._begins_at = 0
        if self._is_settled:
            return
        sign = _SURE_SIGN.search(block)
        if sign is None:
            return
        self._is_settled = True
        self._begins_at = sign.start()
        before = sign[1].decode(errors="replace")
        line = strip_prefix(before + "> Task :")
        unknown = line[: line.rindex("> Task :")]
        if not before.strip(" ") or _FLUTTER.fullmatch(before):
            self._indent = " " * len(before)
        elif unknown and len(unknown) <= _MAX_LEARNED_CHARS:
            self._shape = re.compile(_shape_of(unknown))

    def strip(self, line: str, position: int) -> str:
        """Take the prefix off a line that begins at `position` of the block."""
        if line.startswith(_SURE_STARTS):
            self._shape, self._indent = None, ""
        if self._indent and position >= self._begins_at and line.startswith(self._indent):
            return line[len(self._indent) :]
        line = strip_prefix(line)
        if self._shape is None or position < self._begins_at:
            return line
        found = self._shape.match(line)
        return strip_prefix(line[found.end() :]) if found else line


def _shape_of(prefix: str) -> str:
    """Give a pattern for prefixes like this one: other numbers, levels and blanks, the same words.

    No two neighbouring parts can match the same character, so it takes linear time.
    """
    parts = _PART.findall(prefix)
    blanks_at_end = len(parts.pop()) if parts and not parts[-1].strip(" ") else 0
    pattern = ""
    for part in parts:
        if part[0] == " ":
            pattern += f" {{{min(1, len(pattern))},{len(part) + 8}}}"
        elif part.isalpha() and part.isupper() and part.isascii():
            pattern += "[A-Z]+"
        elif any(char.isdigit() for char in part):
            pattern += "[A-Za-z0-9]+"
        else:
            pattern += re.escape(part)
    return f"{pattern} {{0,{blanks_at_end}}}"
