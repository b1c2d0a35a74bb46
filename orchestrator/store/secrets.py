"""Secrets of builds that have not ended: files of one folder that only this user may read.

They are written before the build's row is committed and removed when it has ended, so a build that was
accepted has them after `kill -9`, a power cut and a restart. They are never in the database, and never
leave this host but for the phone: a build with secrets runs on a phone of the host that took it in.
"""

import base64
import hmac
import json
import os
import secrets as randomness
import time
from hashlib import sha256
from pathlib import Path

from builder_bridge.secret import Secret, Secrets
from orchestrator.store.packed_file import sync_folder

_KEY_NAME = "seal.key"
_KEY_BYTES = 32
_SUFFIX = ".secret"
ORPHAN_S = 600.0
"""After so long, what belongs to no build was left by a service that was killed before it told of one."""


class SecretStore:
    """The secrets of one data folder. All of it blocks, for a millisecond."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def seal(self, owner: str, entries: tuple[Secret, ...]) -> Secrets:
        """Name secrets by a digest under a key that never leaves this folder.

        The same secrets of the same owner have the same name, and it shows nothing of them.
        """
        if not entries:
            return Secrets()
        ordered = sorted(entries, key=lambda secret: secret.name)
        parts = [[secret.name, secret.is_file, sha256(secret.content).hexdigest()] for secret in ordered]
        told = json.dumps([owner, parts]).encode()
        return Secrets(tuple(ordered), hmac.new(self._key(), told, sha256).hexdigest())

    def put(self, build_id: str, secrets: Secrets) -> None:
        """Keep the secrets of a build, on the disk when this returns; doing it again changes nothing."""
        entries = [
            [secret.name, secret.is_file, base64.b64encode(secret.content).decode()]
            for secret in secrets.entries
        ]
        self._write(self._path(build_id), json.dumps({"seal": secrets.seal, "entries": entries}).encode())

    def get(self, build_id: str) -> Secrets | None:
        """Give the secrets of a build, None where they are not kept here."""
        try:
            kept = json.loads(self._path(build_id).read_bytes())
        except FileNotFoundError:
            return None
        entries = [
            Secret(name, base64.b64decode(content), is_file) for name, is_file, content in kept["entries"]
        ]
        return Secrets(tuple(entries), kept["seal"])

    def remove(self, build_id: str) -> None:
        """Forget the secrets of a build that has ended; harmless where there are none."""
        self._path(build_id).unlink(missing_ok=True)

    def kept(self) -> dict[str, float]:
        """Give the ids of builds whose secrets are kept, and when each came; parts of a killed write go."""
        found: dict[str, float] = {}
        for path in self._folder.glob("*") if self._folder.is_dir() else ():
            try:
                came_s = path.stat().st_mtime
            except FileNotFoundError:
                continue
            if path.suffix == _SUFFIX:
                found[path.stem] = came_s
            elif path.suffix == ".part" and time.time() - came_s > ORPHAN_S:
                path.unlink(missing_ok=True)
        return found

    def _path(self, build_id: str) -> Path:
        return self._folder / f"{build_id}{_SUFFIX}"

    def _key(self) -> bytes:
        path = self._folder / _KEY_NAME
        if not path.exists():
            self._write(path, randomness.token_bytes(_KEY_BYTES))
        return path.read_bytes()

    def _write(self, path: Path, content: bytes) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        part = path.with_name(f"{path.name}.{randomness.token_hex(4)}.part")
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
        sync_folder(self._folder)
