"""Phones that were reached before: their serial numbers and where they were found last.

A phone is its serial number and the key of ours that it let in, not its address: wireless
debugging takes another port at each start, and routers hand out addresses anew.
"""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

MAX_PHONES = 100


class KnownPhone(BaseModel):
    """One phone as it was when it was last reached."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    serial: str
    address: str
    key_fingerprint: str | None = None
    model: str = ""


def known_phones_file(environment: Mapping[str, str]) -> Path:
    """Tell where they are kept."""
    state = environment.get("XDG_STATE_HOME") or Path(environment.get("HOME", "/")) / ".local/state"
    return Path(state) / "pocketbuild" / "phones.json"


def load_known_phones(file: Path | None = None) -> dict[str, KnownPhone]:
    """Give the known phones by serial number; a file that cannot be read counts as none."""
    try:
        entries = json.loads((file or known_phones_file(os.environ)).read_bytes())
        phones = [KnownPhone.model_validate(entry) for entry in entries]
    except (OSError, ValueError, TypeError, ValidationError):
        return {}
    return {phone.serial: phone for phone in phones}


def remember_phone(phone: KnownPhone, file: Path | None = None) -> None:
    """Keep where a phone was found, in place of where it was found before; the oldest are forgotten."""
    file = file or known_phones_file(os.environ)
    phones = load_known_phones(file)
    phones.pop(phone.serial, None)
    _write(file, [*phones.values(), phone][-MAX_PHONES:])


def forget_phone(name: str, file: Path | None = None) -> bool:
    """Forget the phone of that serial number or address; say whether it was known."""
    file = file or known_phones_file(os.environ)
    phones = load_known_phones(file)
    kept = [phone for phone in phones.values() if name not in (phone.serial, phone.address)]
    if len(kept) == len(phones):
        return False
    _write(file, kept)
    return True


def _write(file: Path, kept: Sequence[KnownPhone]) -> None:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = file.with_name(f"{file.name}.{os.getpid()}")
    fresh.write_text(json.dumps([entry.model_dump() for entry in kept], indent=1) + "\n")
    fresh.replace(file)
