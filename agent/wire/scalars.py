"""Read numbers and ids that servers send in more than one type."""

from typing import Any


def whole_number(value: Any) -> int | None:
    """Read an index; servers also send it as a float or as digits in a string."""
    if isinstance(value, str) and value.removeprefix("-").isdigit() and value.isascii() and len(value) <= 9:
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def identifier(value: Any) -> str:
    """Read an id, which may be a number; blank and anything else is none."""
    if type(value) is int:
        return str(value)
    return value if isinstance(value, str) and value.strip() else ""


def token_count(value: Any) -> int | None:
    """Read a count; servers also send it as a float or as digits in a string."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 18:
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 <= value < 10**18 else None
