"""Plays the owner of a box at the dialog "Allow USB debugging?".

In the modes `auth` and `tls` adbd asks its framework about each key it does not know, over the
socket that Android's init makes for it: `PK` and the key; `OK` or `NO` come back. The protocol is
that of adbd's client in Android's framework.
"""

import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

import anyio

from builder_bridge.adb.waiting import beside
from builder_bridge.box.layout import SHELL_UID, SYSTEM_UID
from builder_bridge.box.record import Box

_QUESTION = b"PK"
_MAX_MESSAGE_BYTES = 8192
_RETRY_S = 0.05


class Answer(StrEnum):
    """What the owner does: allow this once, always, deny, or leave the dialog standing."""

    ALLOW = "allow"
    ALWAYS = "always"
    DENY = "deny"
    IGNORE = "ignore"


@dataclass(slots=True)
class Owner:
    """The owner at work: `answer` may be changed at any time, `asked` grows by a key a question."""

    answer: Answer
    thinking_s: float = 0.0
    asked: list[str] = field(default_factory=list)


@asynccontextmanager
async def answer_dialogs(box: Box, answer: Answer, thinking_s: float = 0.0) -> AsyncIterator[Owner]:
    """Answer every question of the box's adbd as `answer` says, until the block is left.

    Each answer comes after `thinking_s` seconds. A restart of adbd is lived through. Needs root, as
    all of the box does.
    """
    owner = Owner(answer, thinking_s)
    connected = anyio.Event()
    async with beside(lambda: _serve(box, owner, connected)):
        await connected.wait()
        yield owner


def allow_key(box: Box, key: str) -> None:
    """Let the box know a key for good, as pairing does: the one way in for the mode `tls`.

    `key` is the line of an `adbkey.pub` file.
    """
    file = _keys_file(box)
    known = file.read_text() if file.exists() else ""
    new = file.with_name("adb_keys.new")
    new.write_text(f"{known}{key.strip()}\n")
    os.chown(new, SYSTEM_UID, SHELL_UID)
    new.chmod(0o640)
    new.rename(file)


def forget_keys(box: Box) -> None:
    """Let the box forget every key that was allowed for good."""
    _keys_file(box).unlink(missing_ok=True)


async def _serve(box: Box, owner: Owner, connected: anyio.Event) -> None:
    while True:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as framework:
            try:
                framework.connect(str(box.root / "dev/socket/adbd"))
            except OSError:
                await anyio.sleep(_RETRY_S)
                continue
            framework.setblocking(False)
            connected.set()
            await _answer_until_closed(box, owner, framework)


async def _answer_until_closed(box: Box, owner: Owner, framework: socket.socket) -> None:
    while True:
        await anyio.wait_readable(framework)
        try:
            message = framework.recv(_MAX_MESSAGE_BYTES)
        except OSError:
            return
        if not message:
            return
        if not message.startswith(_QUESTION):
            continue
        key = message[len(_QUESTION) :].split(b"\0", 1)[0].decode().strip()
        owner.asked.append(key)
        await anyio.sleep(owner.thinking_s)
        if owner.answer is Answer.ALWAYS:
            allow_key(box, key)
        if owner.answer is not Answer.IGNORE:
            framework.send(b"NO" if owner.answer is Answer.DENY else b"OK")


def _keys_file(box: Box) -> Path:
    return box.root / "data/misc/adb/adb_keys"
