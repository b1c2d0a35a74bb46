"""Put values into an object by JSON path, as Gemini streams the arguments of a call."""

import re
from typing import Any

from agent.message import JsonObject

_STEP = re.compile(r"""\.([^.\[\]]+)|\[(\d{1,6})\]|\['((?:[^'\\]|\\.)*)'\]|\["((?:[^"\\]|\\.)*)"\]""")


def put(target: JsonObject, path: str, value: Any) -> str | None:
    """Put `value` at `path`, making what lies on the way; gives why it is not possible, if it is not."""
    steps = _steps(path)
    if not steps or isinstance(steps[0], int):
        return f"have a part under the path {path!r}, which is none"
    place: Any = target
    for step, following in zip(steps, [*steps[1:], None], strict=True):
        if not _fits(place, step):
            return f"have a part under the path {path!r}, where there is no place for it"
        if isinstance(place, list) and step == len(place):
            place.append(None)
        present = place.get(step) if isinstance(place, dict) else place[int(step)]
        if following is None:
            place[step] = value
        else:
            if present is None:
                place[step] = present = [] if isinstance(following, int) else {}
            place = present
    return None


def _fits(place: Any, step: str | int) -> bool:
    if isinstance(place, dict):
        return isinstance(step, str)
    return isinstance(place, list) and isinstance(step, int) and step <= len(place)


def _steps(path: str) -> list[str | int]:
    """Take a path such as `$.files[0].name` apart, none at all where it is none."""
    steps: list[str | int] = []
    at = 1 if path.startswith("$") else 0
    while at < len(path):
        found = _STEP.match(path, at)
        if found is None:
            return []
        name, number, single, double = found.groups()
        quoted = single if single is not None else double
        steps.append(
            name if name is not None else int(number) if number else re.sub(r"\\(.)", r"\1", quoted or "")
        )
        at = found.end()
    return steps
