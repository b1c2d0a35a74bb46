"""Recognize objects by which servers tell a failure in place of an answer."""

import re
from typing import Any

from agent.message import JsonObject

_GOOD_CODES = frozenset({"", "0", "200", "ok", "success", "none"})
_MESSAGE_KEYS = ("message", "msg", "error_msg", "errorMessage", "status_msg", "detail", "reason", "Message")
_LONE_KEYS = (*_MESSAGE_KEYS, "errmsg", "error_message", "err", "exception")
_CODE_KEYS = ("code", "type", "status", "status_code", "statusCode", "error_code", "errorCode")
_BAD_STATUS = frozenset(("error", "failed", "failure", "fail"))
_MAX_CHARS = 1000
_SPACE = re.compile(r"\s+")


def named_failure(event: JsonObject) -> str | None:
    """Give what an event says under a key made for failures, None where it tells none.

    Such keys may stand beside content; null, empty ones and a status of zero are none.
    """
    if _is_filled(error := event.get("error")):
        return describe(error)
    status = event.get("base_resp")
    if isinstance(status, dict) and _is_bad(status.get("status_code")):
        return describe(status)
    if event.get("object") == "error" or event.get("type") == "error":
        return describe(event)
    return None


def told_failure(event: JsonObject) -> str | None:
    """Give what an event without any content says of a failure, None where it tells none.

    Beside the keys of `named_failure` these are `detail`, `errors`, a code with a message and a
    refused success.
    """
    if named := named_failure(event):
        return named
    if _is_filled(event.get("detail")) or _is_filled(event.get("errors")):
        return describe(event)
    if event.keys() == {"error"} and isinstance(event["error"], dict):
        return "the provider tells a failure, but not which"
    message = next((event[key] for key in _MESSAGE_KEYS if isinstance(event.get(key), str)), "")
    codes = [event[key] for key in _CODE_KEYS if key not in ("type", "status") and key in event]
    status = event.get("status")
    is_bad = any(map(_is_bad, codes)) or event.get("success") is False
    is_bad = is_bad or str(status).lower() in _BAD_STATUS or (type(status) is int and status >= 400)
    return describe(event) if message and is_bad else None


def lone_message(event: JsonObject) -> str | None:
    """Give what an event says that holds nothing but words: alone in a body it can only be a complaint.

    Gateways that turn a request away often send a message and no code.
    """
    words = next((event[key] for key in _LONE_KEYS if isinstance(event.get(key), str) and event[key]), None)
    if words is None and isinstance(event.get("fault"), dict):
        words = str(event["fault"])
    return None if words is None else _line(words)


def _is_filled(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_is_filled, value.values()))
    return bool(value)


def _is_bad(code: Any) -> bool:
    if code is None or code is True or str(code).lower() in _GOOD_CODES:
        return False
    return not (type(code) is int and 200 <= code < 300)


def describe(failure: Any) -> str:
    """Give the message and codes of a failure in one line, whatever its shape."""
    if isinstance(failure, list):
        failure = failure[0] if failure else ""
    if not isinstance(failure, dict):
        return _line(failure)
    nested = failure.get("error")
    if isinstance(nested, dict | str) and nested:
        return describe(nested)
    message = next((failure[key] for key in _MESSAGE_KEYS if failure.get(key)), None)
    codes = [str(failure[key]) for key in _CODE_KEYS if _is_bad(failure.get(key)) and failure[key] != "error"]
    if message is None:
        return _line(failure)
    return f"{_line(message)} ({', '.join(codes)})" if codes else _line(message)


def _line(value: Any) -> str:
    return _SPACE.sub(" ", str(value)).strip()[:_MAX_CHARS]
