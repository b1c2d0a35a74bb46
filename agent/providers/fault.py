"""Judge from an error's body, head and status what happened at a provider and how long to wait.

The body is read before the status: quota and overload share status 429, and some providers report
errors with status 200. Shapes are those of the providers in the catalogue.
"""

import re
from calendar import timegm
from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime
from typing import Any

from pydantic_core import from_json

from agent.errors import (
    ContextOverflow,
    KeyRefused,
    PlanExhausted,
    ProviderFault,
    ProviderOverloaded,
    RequestRefused,
    ResponseBroken,
)
from agent.providers.provider import ErrorCodes

_MAX_TEXT_CHARS = 500
_TELLING_KEYS = frozenset({"error", "base_resp", "detail", "message", "response", "status_msg"})
_TRANSIENT_STATUS = frozenset({408, 409, 425, 429, 498, 500, 502, 503, 504, *range(520, 530)})
_OVERFLOW_CODES = frozenset({"context_length_exceeded", "exceed_context_size_error", "context_too_long"})
_OVERFLOW_TEXT = re.compile(
    r"prompt is too long: \d+ tokens|maximum context length is \d+|"
    r"input token count \(?\d+\)? exceeds|exceeds the available context size",
    re.IGNORECASE,
)
"""Anthropic, vLLM, Gemini and llama.cpp say it in the text only; each phrase carries its number."""
_WAIT_TEXT = re.compile(
    r"(?:try again|retry|wait|available|reset)[^.\n]{0,40}?\b(?:in|after)\s+"
    r"(?:(\d+)\s*h(?:ours?)?\s*)?(?:(\d+)\s*m(?:in(?:utes?)?)?(?!s)\s*)?(?:(\d+(?:\.\d+)?)\s*(ms|s)\w*)?",
    re.IGNORECASE,
)
_MARKUP = re.compile(r"<(script|style)\b.*?</\1>|<[^>]*>", re.DOTALL | re.IGNORECASE)
_CODE_IN_TEXT = re.compile(r"\((\d{4})\)")


def judge(
    status: int | None,
    headers: Mapping[str, str],
    body: bytes,
    codes: ErrorCodes,
    *,
    now_s: float,
    response_started: bool = False,
) -> ProviderFault:
    """Give the fault that an error response means, ready to be raised.

    `headers` has lower-case names; `now_s` is the Unix time, for waits that are given as a date.
    """
    error = _parse(body)
    text = _text(error) or _plain(body) or f"status {status} without a word"
    words = set(_words(error)) | set(_CODE_IN_TEXT.findall(text))
    status = _better_status(status, words)
    kind = _kind(status, words, text, codes)
    wait_s = _wait_s(headers, error, text, now_s)
    if wait_s is None and kind is ProviderOverloaded:
        wait_s = codes.overload_wait_s
    named = ", ".join(sorted(words - {str(status), "error"}))
    return kind(
        f"status {status}{f' ({named})' if named else ''}: {text}" if status else text,
        status=status,
        provider_code=named or None,
        retry_after_s=wait_s,
        response_started=response_started,
        request_id=headers.get("x-request-id") or headers.get("request-id"),
    )


def _kind(status: int | None, words: set[str], text: str, codes: ErrorCodes) -> type[ProviderFault]:
    if words & codes.exhausted:
        return PlanExhausted
    if words & codes.key:
        return KeyRefused
    if words & _OVERFLOW_CODES or (status in (400, 413, 422, None) and _OVERFLOW_TEXT.search(text)):
        return ContextOverflow
    if words & codes.transient:
        return ProviderOverloaded
    if status in (401, 403):
        return KeyRefused
    if status == 402:
        return PlanExhausted
    if status in _TRANSIENT_STATUS:
        return ProviderOverloaded
    if status is not None and 300 <= status < 500:
        return RequestRefused
    return ResponseBroken if status is None or status < 300 else ProviderOverloaded


def _better_status(status: int | None, words: set[str]) -> int | None:
    """Take a status out of the body where the head says that all is well."""
    if status is not None and status >= 400:
        return status
    inside = [int(word) for word in words if word.isdigit() and 400 <= int(word) < 600]
    return max(inside, default=status)


def _parse(body: bytes) -> Any:
    """Give the JSON value that tells the failure: the whole body, or the last such event of a stream."""
    text = body.strip()
    fallback = None
    for line in (text, *reversed(text.splitlines())):
        try:
            value = from_json(line.removeprefix(b"data:").strip())
        except ValueError:
            continue
        found = value[0] if isinstance(value, list) and value else value
        if isinstance(found, dict) and found.keys() & _TELLING_KEYS:
            return found
        fallback = fallback or found
    return fallback


def _objects(error: Any, depth: int = 0) -> Iterator[dict[str, Any]]:
    """Give the object and those inside that may hold an error, outermost first."""
    if not isinstance(error, dict) or depth > 3:
        return
    yield error
    for key in ("error", "base_resp", "detail", "message", "response", "details"):
        value = error.get(key)
        for inner in value if isinstance(value, list) else [value]:
            yield from _objects(inner, depth + 1)


def _words(error: Any) -> Iterator[str]:
    for found in _objects(error):
        for key in ("code", "type", "status", "status_code", "reason"):
            value = found.get(key)
            if isinstance(value, str | int) and not isinstance(value, bool) and len(str(value)) <= 80:
                yield str(value)


def _text(error: Any) -> str:
    texts: list[str] = []
    for found in _objects(error):
        for key in ("message", "msg", "status_msg", "error", "detail", "failed_generation"):
            value = found.get(key)
            if isinstance(value, str) and value.strip() and value not in texts:
                texts.append(value.strip())
        raw = found.get("metadata")
        if isinstance(raw, dict) and isinstance(raw.get("raw"), str):
            texts.append(raw["raw"])
    return _shorten("; ".join(texts))


def _plain(body: bytes) -> str:
    return _shorten(" ".join(_MARKUP.sub(" ", body.decode("utf-8", "replace")).split()))


def _shorten(text: str) -> str:
    return text if len(text) <= _MAX_TEXT_CHARS else text[: _MAX_TEXT_CHARS - 1] + "…"


def _wait_s(headers: Mapping[str, str], error: Any, text: str, now_s: float) -> float | None:
    """Take the wait from `retry-after-ms`, `retry-after`, RetryInfo or the text, in this order."""
    millis = _number(headers.get("retry-after-ms"))
    if millis is not None:
        return millis / 1000
    given = headers.get("retry-after")
    if given is not None:
        seconds = _number(given)
        if seconds is not None:
            return seconds
        try:
            return max(0.0, timegm(parsedate_to_datetime(given).utctimetuple()) - now_s)
        except ValueError:
            pass
    for found in _objects(error):
        delay = found.get("retryDelay") or found.get("retry_delay")
        if isinstance(delay, str) and _number(delay.rstrip("s")) is not None:
            return _number(delay.rstrip("s"))
    return _wait_in_text(text)


def _wait_in_text(text: str) -> float | None:
    for found in _WAIT_TEXT.finditer(text):
        hours, minutes, seconds, unit = found.groups()
        if hours or minutes or seconds:
            rest = float(seconds or 0) / (1000 if unit and unit.lower() == "ms" else 1)
            return int(hours or 0) * 3600 + int(minutes or 0) * 60 + rest
    return None


def _number(text: str | None) -> float | None:
    if text is None or not re.fullmatch(r"\s*\d{1,9}(\.\d+)?\s*", text):
        return None
    return float(text)
