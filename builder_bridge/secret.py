"""Secrets of a build: passwords and keystores, and what must never show them.

A secret is a Gradle property. Its value is a text, or a file of which the property holds the path. The
phone keeps them in a folder of the run for as long as Gradle works; what Gradle says goes through a
filter that stands in this file as a script for `sed`, which every Android has.

What the filter knows of a text: each of its lines that has at least `MIN_CHARS` characters, as it is
and as JSON and XML write it. What it does not know: other encodings (base64, hex, percent), parts of a
line, contents of files.
"""

import json
import re
from dataclasses import dataclass, field
from xml.sax.saxutils import escape

MIN_CHARS = 4
"""A shorter line would be found everywhere; a text without a longer one is refused."""
MAX_SECRETS = 50
MAX_TEXT_CHARS = 16_384
MAX_TEXT_LINES = 500
"""Of all texts together; the phone's filter looks for each of them in each line of the log."""
MAX_FILE_BYTES = 1 << 20
MASK = "***"
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z0-9_]+)*")
MAX_NAME_CHARS = 100
MASKABLE = r"[^\r\n\x00]{4}"
"""Where this is found in a text, the text has something to look for in a log."""

_LINE_ENDS = re.compile(r"[\r\n\x00]")
_SPECIAL = re.compile(r"[\\/.*\[\]^$]")


class BadSecret(ValueError):
    """A secret that cannot be used as it is; the message names it and never holds its value."""


@dataclass(frozen=True, slots=True)
class Secret:
    """A Gradle property whose value nobody may see; of a file, the property is its path on the phone.

    Raises `BadSecret` for a name that is none, and for a content that is too large or could not be
    kept out of a log.
    """

    name: str
    content: bytes = field(repr=False)
    is_file: bool = False

    def __post_init__(self) -> None:
        if len(self.name) > MAX_NAME_CHARS or not NAME.fullmatch(self.name):
            raise BadSecret(f"{self.name[:100]!r} is no name of a Gradle property, as a secret needs one")
        if self.is_file:
            if not 0 < len(self.content) <= MAX_FILE_BYTES:
                raise BadSecret(f"the file of secret {self.name} is empty or over {MAX_FILE_BYTES} bytes")
            return
        try:
            text = self.content.decode()
        except UnicodeDecodeError:
            raise BadSecret(f"the value of secret {self.name} is no UTF-8: give it as a file") from None
        if len(text) > MAX_TEXT_CHARS:
            raise BadSecret(f"secret {self.name} has over {MAX_TEXT_CHARS} characters: give it as a file")
        if not re.search(MASKABLE, text):
            raise BadSecret(
                f"secret {self.name} has no line of {MIN_CHARS} characters, which a log could be kept free of"
            )


@dataclass(frozen=True, slots=True)
class Secrets:
    """All secrets of one build. `seal` is a keyed digest of them that tells builds apart and shows nothing.

    Raises `BadSecret` for a name that is there twice, and for too many.
    """

    entries: tuple[Secret, ...] = ()
    seal: str = ""

    def __post_init__(self) -> None:
        if len({secret.name for secret in self.entries}) < len(self.entries):
            raise BadSecret("two secrets have one name")
        if len(self.entries) > MAX_SECRETS:
            raise BadSecret(f"{len(self.entries)} secrets are more than {MAX_SECRETS}")
        if len(lines_of(self.entries)) > MAX_TEXT_LINES:
            raise BadSecret(f"the secrets have more than {MAX_TEXT_LINES} lines: give them as files")

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self.entries)

    @property
    def names(self) -> tuple[str, ...]:
        """The names, sorted; they are no secret."""
        return tuple(sorted(secret.name for secret in self.entries))


def lines_of(entries: tuple[Secret, ...]) -> set[str]:
    """Give the lines of all texts that are long enough to be looked for."""
    texts = [secret.content.decode() for secret in entries if not secret.is_file]
    return {line for text in texts for line in _LINE_ENDS.split(text) if len(line) >= MIN_CHARS}


def needles_of(secrets: Secrets) -> list[bytes]:
    """Give everything that no log may hold, the longest first, so that none is hidden by a part of it."""
    found = set()
    for line in lines_of(secrets.entries):
        found |= {line, json.dumps(line)[1:-1], json.dumps(line, ensure_ascii=False)[1:-1]}
        found |= {escape(line), escape(line, {'"': "&quot;"})}
        found |= {escape(line, {'"': "&quot;", "'": each}) for each in ("&apos;", "&#39;")}
    return sorted((needle.encode() for needle in found), key=lambda needle: (-len(needle), needle))


def mask_script(needles: list[bytes]) -> bytes:
    """Write the filter: a script for `sed` that puts `MASK` where a needle stands."""
    lines = [f"s/{_SPECIAL.sub(_escaped, needle.decode())}/{MASK}/g\n" for needle in needles]
    return "".join(lines).encode()


def parts_of(secrets: Secrets) -> tuple[tuple[str, bytes], ...]:
    """Give the files of a run's folder of secrets: what Gradle reads, the filter, needles, and files by name.

    Names of properties have no "-", so ours never meet them.
    """
    if not secrets:
        return ()
    needles = needles_of(secrets)
    values = {secret.name: secret.content.decode() for secret in secrets.entries if not secret.is_file}
    files = [secret for secret in secrets.entries if secret.is_file]
    document = {"values": values, "files": [secret.name for secret in files]}
    parts = [("values-json", json.dumps(document).encode())]
    if needles:
        parts += [("mask-sed", mask_script(needles)), ("needles-txt", b"\n".join(needles) + b"\n")]
    return (*parts, *((secret.name, secret.content) for secret in files))


def _escaped(found: re.Match[str]) -> str:
    return "\\" + found[0]


NO_SECRETS = Secrets()
