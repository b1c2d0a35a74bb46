"""Take secrets out of whatever is kept: the keys in use, and what looks like a key."""

import json
from collections.abc import Iterable
from typing import Any

import re2

_MARK = b"[redacted]"
_SHORTEST_SECRET_CHARS = 6
_SHORTEST_SHAPE_CHARS = 19
_SHAPES = (
    rb"\b(?:sk|rk|pk|tp|xai|gsk|pat|hf|r8)[-_][A-Za-z0-9_-]{16,}"
    rb"|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}"
    rb"|\bAIza[A-Za-z0-9_-]{30,}|\bAKIA[A-Z0-9]{16}\b"
    rb"|\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"
    rb"|([Bb]earer )[A-Za-z0-9._~+/=-]{16,}"
    rb"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\z)"
)
_OPAQUE = frozenset({"provider_data"})
"""Signed or encrypted by a provider, which refuses it when a single byte differs."""
_SECRET_HEADERS = frozenset(
    {"authorization", "x-api-key", "x-goog-api-key", "api-key", "cookie", "set-cookie", "proxy-authorization"}
)


def _compile(shapes: bytes) -> "re2._Regexp":
    """Compile for RE2, which reads bytes many times faster than `re` where hardly anything fits."""
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.dot_nl = True
    return re2.compile(shapes, options)


_LOOKS_SECRET = _compile(_SHAPES)
_MAY_LOOK_SECRET = _compile(_SHAPES.replace(rb"\b", b""))
"""Takes more than what looks secret, and in JSON text too, where an escape's letter may stand before it."""


class Redactor:
    """Replaces the given secrets, and strings in the shape of well-known keys, by a mark."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        known = {s for s in secrets if len(s) >= _SHORTEST_SECRET_CHARS}
        self._known = [s.encode("utf-8", "surrogatepass") for s in sorted(known, key=len, reverse=True)]
        self._known_in_json = [
            json.dumps(s, ensure_ascii=is_ascii)[1:-1].encode("utf-8", "surrogatepass")
            for s in known
            for is_ascii in (True, False)
        ]
        self._shortest_chars = min([_SHORTEST_SHAPE_CHARS, *map(len, known)])

    def text(self, text: str) -> str:
        """Give the text without secrets."""
        if len(text) < self._shortest_chars:
            return text
        data = text.encode("utf-8", "surrogatepass")
        kept = self.bytes(data)
        return text if kept == data else kept.decode("utf-8", "surrogatepass")

    def may_hold_secret(self, data: bytes) -> bool:
        """Say whether JSON text has to be looked through string by string; False is certain."""
        return _MAY_LOOK_SECRET.search(data) is not None or any(s in data for s in self._known_in_json)

    def bytes(self, data: bytes) -> bytes:
        """Give the bytes without secrets, which are ASCII in every encoding that matters here."""
        for secret in self._known:
            data = data.replace(secret, _MARK)
        if _LOOKS_SECRET.search(data) is None:
            return data
        kept: bytes = _LOOKS_SECRET.sub(lambda found: (found.group(1) or b"") + _MARK, data)
        return kept

    def json(self, value: Any) -> Any:
        """Give a JSON value without secrets in its strings; keys of objects stay."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.json(item) for item in value]
        if isinstance(value, dict):
            return {key: item if key in _OPAQUE else self.json(item) for key, item in value.items()}
        return value

    def headers(self, headers: Iterable[tuple[str, str]]) -> dict[str, str]:
        """Give the heads of a request or response, those that carry secrets by name only."""
        return {
            name: _MARK.decode() if name.lower() in _SECRET_HEADERS else self.text(value)
            for name, value in headers
        }
