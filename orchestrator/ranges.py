"""`Range` requests on bytes whose size is known: one range, as browsers and download tools ask."""

import re
from dataclasses import dataclass

from orchestrator.errors import Refusal

_RANGE = re.compile(r"^bytes=(\d{0,18})-(\d{0,18})$")


class RangeNotSatisfiable(Refusal):
    """The range begins after the last byte."""

    code = "range_not_satisfiable"
    status = 416
    default_hint = "Ask for a range inside the size that the message names."


@dataclass(frozen=True, slots=True)
class RangeOfBytes:
    """Bytes from `start` up to `end` of `size_bytes` in all."""

    start: int
    end: int
    size_bytes: int
    is_partial: bool

    @property
    def status(self) -> int:
        """The HTTP status of an answer with these bytes."""
        return 206 if self.is_partial else 200

    @property
    def headers(self) -> dict[str, str]:
        """The headers of an answer with these bytes."""
        headers = {"accept-ranges": "bytes", "content-length": str(self.end - self.start)}
        if self.is_partial:
            headers["content-range"] = f"bytes {self.start}-{self.end - 1}/{self.size_bytes}"
        return headers


def answer_range(header: str | None, size_bytes: int) -> RangeOfBytes:
    """Say which bytes answer a `Range` header.

    A header that is malformed or names several ranges is answered with everything, as RFC 9110
    allows. Raises `RangeNotSatisfiable` where the range begins behind the end.
    """
    whole = RangeOfBytes(0, size_bytes, size_bytes, is_partial=False)
    match = _RANGE.match(header.strip()) if header else None
    if match is None or match.groups() == ("", ""):
        return whole
    first, last = match.groups()
    start = size_bytes - min(int(last), size_bytes) if not first else int(first)
    end = size_bytes if not first or not last else min(int(last) + 1, size_bytes)
    if first and last and int(last) < int(first):
        return whole
    if start >= size_bytes:
        raise RangeNotSatisfiable(f"there are {size_bytes} bytes, and the range begins at {start}")
    return RangeOfBytes(start, end, size_bytes, is_partial=True)
