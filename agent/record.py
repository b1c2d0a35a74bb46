"""Keep raw exchanges with a provider in a folder, without secrets, to look at and to replay.

Each exchange is two files: `NNNN.json` (who was asked, request body, status and head of the response)
and `NNNN.body`, the response as it came but for redacted secrets. `pocketbuild stream explain` reads the
bodies; `agent.scripted` serves a whole folder again.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from agent.errors import SettingsFault
from agent.message import Dialect, JsonObject
from agent.redact import Redactor

_MAX_HELD_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Exchange:
    """One recorded exchange."""

    dialect: Dialect
    model: str
    status: int
    request: JsonObject
    body: bytes


class Recorder:
    """Writes the exchanges of a run into a folder of its own; existing recordings are never overwritten."""

    def __init__(self, folder: Path, redactor: Redactor) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._folder = folder
        self._redactor = redactor
        self._count = max((int(path.stem) for path in folder.glob("[0-9]*.json")), default=0)

    def begin(self, dialect: Dialect, model: str, url: str, request: JsonObject) -> "Recording":
        """Open the next exchange."""
        self._count += 1
        about = {"dialect": dialect, "model": model, "url": self._redactor.text(url)}
        about["request"] = self._redactor.json(request)
        return Recording(self._folder / f"{self._count:04d}", about, self._redactor)


class Recording:
    """One exchange being written; a body is redacted line by line, so it is there up to the last line."""

    def __init__(self, stem: Path, about: dict[str, Any], redactor: Redactor) -> None:
        self._stem = stem
        self._about = about
        self._redactor = redactor
        self._held = b""
        self._file: IO[bytes] = stem.with_suffix(".body").open("wb")

    def head(self, status: int, headers: list[tuple[str, str]]) -> None:
        """Write who was asked and what the response's head says."""
        self._about |= {"status": status, "headers": self._redactor.headers(headers)}
        text = json.dumps(self._about, indent=1, ensure_ascii=False)
        self._stem.with_suffix(".json").write_text(text + "\n")

    def feed(self, data: bytes) -> None:
        """Keep a piece of the body."""
        self._held += data
        cut = self._held.rfind(b"\n") + 1 or (len(self._held) if len(self._held) > _MAX_HELD_BYTES else 0)
        if cut:
            self._file.write(self._redactor.bytes(self._held[:cut]))
            self._held = self._held[cut:]

    def close(self) -> None:
        """Write what is left."""
        self._file.write(self._redactor.bytes(self._held))
        self._file.close()


def read_exchanges(folder: Path) -> list[Exchange]:
    """Give the recorded exchanges of a folder in order; raises `SettingsFault` where there are none."""
    found: list[Exchange] = []
    for about_file in sorted(folder.glob("[0-9]*.json")):
        about = json.loads(about_file.read_text())
        found.append(
            Exchange(
                dialect=Dialect(about["dialect"]),
                model=about["model"],
                status=about["status"],
                request=about["request"],
                body=about_file.with_suffix(".body").read_bytes(),
            )
        )
    if not found:
        raise SettingsFault(f"{folder} holds no recorded exchange")
    return found
