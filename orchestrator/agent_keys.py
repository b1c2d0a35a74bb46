"""Which run an idempotency key of a caller led to: a file a key, so that a repeated wish begins nothing."""

import hashlib
import json
from pathlib import Path

from orchestrator.errors import Conflict

FOLDER = "agent-keys"


def claim(data_dir: Path, owner: str, key: str, body_sha256: str, run_id: str) -> str:
    """Give the run that an owner's key stands for: the given one, or an earlier one of the same body.

    Raises `Conflict` for a key that was used with another body. Blocking; safe to do again.
    """
    note = _note(data_dir, owner, key)
    note.parent.mkdir(mode=0o700, exist_ok=True)
    try:
        known = json.loads(note.read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        known = None
    if known is None or not (data_dir / "agents" / known["run_id"]).is_dir():
        partial = note.with_suffix(".part")
        partial.write_text(json.dumps({"run_id": run_id, "body_sha256": body_sha256}))
        partial.replace(note)
        return run_id
    if known["body_sha256"] != body_sha256:
        raise Conflict(
            f"the idempotency key {key!r} was used with another body",
            code="idempotency_conflict",
            hint="Take a new key for a new request.",
        )
    return str(known["run_id"])


def forget_keys(data_dir: Path, before_s: float) -> None:
    """Forget keys that were claimed before a time and whose runs are gone. Blocking."""
    for note in (data_dir / FOLDER).glob("*"):
        try:
            run_id = json.loads(note.read_text())["run_id"]
        except (json.JSONDecodeError, KeyError):
            run_id = None
        if note.stat().st_mtime < before_s and (
            run_id is None or not (data_dir / "agents" / run_id).is_dir()
        ):
            note.unlink()


def _note(data_dir: Path, owner: str, key: str) -> Path:
    return data_dir / FOLDER / hashlib.sha256(f"{owner}\0{key}".encode()).hexdigest()
