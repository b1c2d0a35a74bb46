"""AGP's `output-metadata.json` beside its outputs: variant, ABI and filters of each file. Pure.

Versions 1 to 3 differ in which keys they have; a file that is no such document gives nothing. The
names in it are a stranger's: one that leads out of its folder is refused.
"""

import json
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

MAX_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class OutputFile:
    """One file that AGP made; `filters` are (type, value) such as (`ABI`, `arm64-v8a`)."""

    name: str
    variant: str | None
    application_id: str | None
    artifact_type: str | None
    version_code: int | None = None
    version_name: str | None = None
    filters: tuple[tuple[str, str], ...] = ()

    @property
    def abi(self) -> str | None:
        """The ABI that the file is for, None where it is for all."""
        return next((value for kind, value in self.filters if kind == "ABI"), None)


def read_output_metadata(data: bytes) -> tuple[OutputFile, ...]:
    """Give the files that the document lists, in its order."""
    if len(data) > MAX_BYTES:
        return ()
    try:
        body = json.loads(data)
    except (ValueError, RecursionError):
        return ()
    elements = body.get("elements") if isinstance(body, dict) else None
    if not isinstance(elements, list):
        return ()
    kind = body.get("artifactType")
    artifact_type = _text(kind.get("type")) if isinstance(kind, dict) else None
    return tuple(
        OutputFile(
            name,
            _text(body.get("variantName")),
            _text(body.get("applicationId")),
            artifact_type,
            _number(element.get("versionCode")),
            _text(element.get("versionName")),
            _filters(element.get("filters")),
        )
        for element in elements
        if isinstance(element, dict) and (name := _safe_name(element.get("outputFile")))
    )


def _safe_name(value: Any) -> str | None:
    if not isinstance(value, str) or not value or "\0" in value or "\\" in value:
        return None
    path = PurePosixPath(value)
    return None if path.is_absolute() or ".." in path.parts else str(path)


def _filters(value: Any) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, list):
        return ()
    return tuple(
        (str(entry["filterType"]), str(entry["value"]))
        for entry in value
        if isinstance(entry, dict) and "filterType" in entry and "value" in entry
    )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
