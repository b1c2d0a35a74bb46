"""Finds the host's own Debian mirror in its apt sources; reads text, touches nothing."""

from collections.abc import Iterable, Iterator

_DEBIAN_SUITES = {
    "bookworm",
    "duke",
    "forky",
    "oldstable",
    "sid",
    "stable",
    "testing",
    "trixie",
    "unstable",
}
_SCHEMES = ("http://", "https://", "file:", "mirror+file:")


def find_mirror(sources: Iterable[str]) -> str | None:
    """Give the first archive in `sources` that carries Debian itself, or None.

    `sources` are the contents of sources.list and of the files beside it, in either of the two
    formats of sources.list(5). An archive counts where one of its suites bears a Debian name;
    security, backports and third parties' archives do not.
    """
    for text in sources:
        entries = _deb822_entries(text) if _is_deb822(text) else _one_line_entries(text)
        for uri, suite in entries:
            if uri.startswith(_SCHEMES) and suite in _DEBIAN_SUITES:
                return uri.rstrip("/")
    return None


def _is_deb822(text: str) -> bool:
    return any(line.lower().startswith("uris:") for line in text.splitlines())


def _one_line_entries(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        words = line.split("#", 1)[0].split()
        if not words or words[0] != "deb":
            continue
        rest = words[1:]
        if rest and rest[0].startswith("["):
            end = next((i for i, word in enumerate(rest) if word.endswith("]")), len(rest))
            rest = rest[end + 1 :]
        if len(rest) >= 2:
            yield rest[0], rest[1]


def _deb822_entries(text: str) -> Iterator[tuple[str, str]]:
    for stanza in _stanzas(text):
        if (
            stanza.get("enabled", "yes").lower() in {"no", "false"}
            or "deb" not in stanza.get("types", "").split()
        ):
            continue
        for uri in stanza.get("uris", "").split():
            for suite in stanza.get("suites", "").split():
                yield uri, suite


def _stanzas(text: str) -> Iterator[dict[str, str]]:
    fields: dict[str, str] = {}
    key = ""
    for line in [*text.splitlines(), ""]:
        if line.startswith("#"):
            continue
        if not line.strip():
            if fields:
                yield fields
            fields = {}
        elif line[0] in " \t":
            fields[key] = f"{fields.get(key, '')} {line.strip()}"
        else:
            key, _, value = line.partition(":")
            key = key.strip().lower()
            fields[key] = value.strip()
