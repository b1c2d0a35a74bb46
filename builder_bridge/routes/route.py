"""A route is a way to the builder prefix of a phone; nothing above it knows how it goes there.

The words that travel in a call are a verb, run ids, digests and numbers: `[a-z0-9-]` only. No path,
text or secret of a user ever stands in a command line on the phone; those go by the byte stream.
"""

import re
from collections.abc import AsyncIterable, AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Protocol

_WORD = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")


class LogStream(Protocol):
    """A log that is being followed; iterate for `(is_state, data)`."""

    def __aiter__(self) -> AsyncIterator[tuple[bool, bytes]]:
        """Give log bytes (False) and lines about states (True) as they come."""


class Route(Protocol):
    """Reaches one prefix. All faults are of the tree in `builder_bridge.errors`."""

    @property
    def name(self) -> str:
        """Which route this is, as a configuration names it."""

    async def call(self, *words: str, stdin: bytes | AsyncIterable[bytes] = b"") -> bytes:
        """Run a verb of the phone's runner and give its one line."""

    def log(self, run_id: str, offset: int) -> AbstractAsyncContextManager[LogStream]:
        """Follow a log from a byte offset on, until the context is left."""

    def get(self, run_id: str, index: str, offset: int) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Read an artifact, `events` or `result` from a byte offset on."""

    async def install(self, place: str, content: bytes) -> None:
        """Put one of our own files at a place in the prefix that `prefix.install` names."""


def check_words(words: tuple[str, ...]) -> None:
    """Raise ValueError for a word that must not stand in a command line on a phone."""
    for word in words:
        if not _WORD.fullmatch(word):
            raise ValueError(f"{word!r} may not stand in a command on a phone")
