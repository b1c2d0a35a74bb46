"""Read a unified diff and apply it exactly: every line of context must stand where the hunk says or near."""

import re
from dataclasses import dataclass

from agent.errors import ToolFault

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_MAX_SHIFT_LINES = 200
"""Models count lines badly; the text of a hunk decides, as long as it stands only once that near."""


@dataclass(frozen=True, slots=True)
class Hunk:
    """A place where lines change: the lines before and after, context included, without line ends."""

    first_line: int
    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FilePatch:
    """What changes in one file; `old` is None for a new file, `new` None for one that goes."""

    old: str | None
    new: str | None
    hunks: tuple[Hunk, ...]


def parse_patch(text: str) -> tuple[FilePatch, ...]:
    """Read a unified diff; raises `ToolFault` that names the line which is not one."""
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    patches: list[FilePatch] = []
    position = 0
    while position < len(lines):
        if not lines[position].startswith("--- "):
            position += 1
            continue
        if position + 1 >= len(lines) or not lines[position + 1].startswith("+++ "):
            raise ToolFault(f"line {position + 1} of the patch begins with `---` but no `+++` line follows")
        old, new = _path(lines[position]), _path(lines[position + 1])
        hunks, position = _hunks(lines, position + 2)
        if not hunks:
            raise ToolFault(f"the patch of {new or old} has no hunk (a line `@@ -1,3 +1,4 @@`)")
        patches.append(FilePatch(old, new, hunks))
    if not patches:
        raise ToolFault("this is no unified diff: no `--- a/FILE` line was found")
    return tuple(patches)


def paths_of(text: str) -> tuple[str, ...]:
    """Give the files that a diff names, each once; raises `ToolFault` as `parse_patch` does."""
    named = (path for patch in parse_patch(text) for path in (patch.old, patch.new) if path is not None)
    return tuple(dict.fromkeys(named))


def _path(line: str) -> str | None:
    name = line[4:].split("\t")[0].strip()
    if name == "/dev/null":
        return None
    return name[2:] if name.startswith(("a/", "b/")) else name


def _hunks(lines: list[str], position: int) -> tuple[tuple[Hunk, ...], int]:
    hunks: list[Hunk] = []
    while position < len(lines) and not _begins_file(lines, position):
        head = _HUNK.match(lines[position])
        position += 1
        if not head:
            continue
        before: list[str] = []
        after: list[str] = []
        while position < len(lines) and not _ends_hunk(lines, position):
            sign, rest = lines[position][:1], lines[position][1:]
            if sign in (" ", "", "-"):
                before.append(rest)
            if sign in (" ", "", "+"):
                after.append(rest)
            if sign not in (" ", "", "-", "+", "\\"):
                raise ToolFault(f"line {position + 1} of the patch begins with neither space, `-` nor `+`")
            position += 1
        while before and after and not before[-1] and not after[-1] and len(before) > int(head[2] or 1):
            before.pop()
            after.pop()
        hunks.append(Hunk(int(head[1]), tuple(before), tuple(after)))
    return tuple(hunks), position


def _ends_hunk(lines: list[str], position: int) -> bool:
    return lines[position].startswith(("@@", "diff ")) or _begins_file(lines, position)


def _begins_file(lines: list[str], position: int) -> bool:
    """Tell the head of a file from a removed line that begins with two dashes, as comments of SQL do."""
    heads = zip(("--- ", "+++ ", "@@"), [*lines[position : position + 3], "", ""], strict=False)
    return all(line.startswith(head) for head, line in heads)


def apply_hunks(name: str, text: str, hunks: tuple[Hunk, ...]) -> str:
    """Give the text with all hunks applied; raises `ToolFault` at the first that does not fit.

    Lines that come in end as most lines of the text do.
    """
    ending = "\r" if text.count("\r\n") * 2 > text.count("\n") else ""
    lines = text.split("\n")
    last = lines.pop()
    if last:
        lines.append(last)
    shift = 0
    for number, hunk in enumerate(hunks, start=1):
        wanted = hunk.first_line - 1 + shift if hunk.before else min(hunk.first_line + shift, len(lines))
        place = _find(lines, hunk.before, max(0, wanted)) if hunk.before else max(0, wanted)
        if place is None:
            first = next((line for line in hunk.before if line.strip()), "")
            raise ToolFault(
                f"{name}: hunk {number} does not fit near line {hunk.first_line}: its context does not stand "
                f"there exactly once (looked for {first.strip()!r}). Read the file and send the patch again."
            )
        lines[place : place + len(hunk.before)] = [line + ending for line in hunk.after]
        shift += place - wanted + len(hunk.after) - len(hunk.before)
    whole = "\n".join(lines)
    if last and not last.endswith("\r"):
        whole = whole.removesuffix("\r")  # a line put at an end that has none must not leave half of one
    return whole if last or not lines else whole + "\n"


def _find(lines: list[str], before: tuple[str, ...], wanted: int) -> int | None:
    def fits(place: int) -> bool:
        return tuple(line.removesuffix("\r") for line in lines[place : place + len(before)]) == before

    if fits(wanted):
        return wanted
    first, last = max(0, wanted - _MAX_SHIFT_LINES), min(wanted + _MAX_SHIFT_LINES, len(lines))
    places = [place for place in range(first, last + 1) if fits(place)]
    return places[0] if len(places) == 1 else None
