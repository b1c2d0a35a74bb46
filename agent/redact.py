"""Take secrets out of whatever is kept: the keys in use, and what looks like a key."""

import re
from collections.abc import Iterable
from typing import Any

_MARK = "[redacted]"
_SHORTEST_SECRET_CHARS = 6
_LOOKS_SECRET = re.compile(
    r"\b(?:sk|rk|pk|tp|xai|gsk|pat|hf|r8)[-_][A-Za-z0-9_-]{16,}"
    r"|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}"
    r"|\bAIza[A-Za-z0-9_-]{30,}|\bAKIA[A-Z0-9]{16}\b"
    r"|\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"
    r"|(?<=[Bb]earer )[A-Za-z0-9._~+/=-]{16,}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
    re.DOTALL | re.ASCII,
)
_OPAQUE = frozenset({"provider_data"})
"""Signed or encrypted by a provider, which refuses it when a single byte differs."""
_SECRET_HEADERS = frozenset(
    {"authorization", "x-api-key", "x-goog-api-key", "api-key", "cookie", "set-cookie", "proxy-authorization"}
)


class Redactor:
    """Replaces the given secrets, and strings in the shape of well-known keys, by a mark."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        known = sorted({s for s in secrets if len(s) >= _SHORTEST_SECRET_CHARS}, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, known))) if known else None

    def text(self, text: str) -> str:
        """Give the text without secrets."""
        if self._known:
            text = self._known.sub(_MARK, text)
        return _LOOKS_SECRET.sub(_MARK, text)

    def bytes(self, data: bytes) -> bytes:
        """Give the bytes without secrets, which are ASCII in every encoding that matters here."""
        return self.text(data.decode("latin-1")).encode("latin-1")

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
            name: _MARK if name.lower() in _SECRET_HEADERS else self.text(value) for name, value in headers
        }
