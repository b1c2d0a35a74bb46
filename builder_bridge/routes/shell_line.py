"""The part that all routes by adb's shell share: one program, checked words, bytes on stdin.

Only `shell,v2,raw` is used, so there is no terminal between: exit codes, two output streams and
the end of stdin arrive as they are. `exec` makes the runner adbd's own child, so that a hang-up
reaches it.
"""

from collections.abc import AsyncIterable, AsyncIterator
from contextlib import asynccontextmanager

from pydantic import BaseModel

from builder_bridge.adb import AdbConnection, shell
from builder_bridge.errors import BridgeError, ProtocolFault, RouteUnavailable
from builder_bridge.handoff import parse
from builder_bridge.routes.route import LogStream, check_words

_REFUSED = 3
_NO_PREFIX = 9
_SAID_BYTES = 4096
PLACES = (
    "bin/pb",
    "bin/pb-work",
    "bin/pb-info",
    "bin/pb-seed",
    "bin/pb-secrets",
    "share/pocketbuild/version",
)


class ShellLineRoute:
    """Reaches a prefix by a fixed command: `program` is what stands before a verb.

    `prefix` is the prefix's folder as that command sees it, `shell_words` what stands before a
    shell line that is to run inside the route.
    """

    def __init__(self, adb: AdbConnection, name: str, prefix: str, shell_words: str = "") -> None:
        self._adb = adb
        self._prefix = prefix
        self._shell_words = shell_words
        self._name = name

    @property
    def name(self) -> str:
        """Which route this is."""
        return self._name

    def _line(self, *words: str) -> str:
        check_words(words)
        return f"exec {self._shell_words}{self._prefix}/bin/pb {' '.join(words)}"

    async def call(self, *words: str, stdin: bytes | AsyncIterable[bytes] = b"") -> bytes:
        """Run a verb and give its one line; raises `RouteUnavailable` with the reason."""
        result = await shell.run(self._adb, self._line(*words), stdin)
        if result.stdout.startswith(b"{"):
            return result.stdout
        said = (result.stderr or result.stdout).decode("utf-8", "replace").strip()
        raise self.fault(result.exit_code, said)

    def fault(self, exit_code: int, said: str) -> BridgeError:
        """Turn what a failed call said into a fault with a code and a next step."""
        lowered = said.lower()
        if exit_code in (126, 127) or "not found" in lowered or "no such file" in lowered:
            return RouteUnavailable(f"Route {self._name}: no runner in the prefix: {said[:300]}")
        if exit_code == _REFUSED or not said:
            return ProtocolFault(f"Route {self._name}: the runner gave no line (exit {exit_code}).")
        return RouteUnavailable(f"Route {self._name}: exit {exit_code}: {said[:300]}")

    def _inside(self, line: str) -> str:
        """Give the shell line that runs a shell line without quotes of its own inside the route."""
        return f"exec {self._shell_words}sh -c '{line}'" if self._shell_words else line

    @asynccontextmanager
    async def log(self, run_id: str, offset: int) -> AsyncIterator[LogStream]:
        """Follow a log from a byte offset on."""
        async with shell.spawn(self._adb, self._line("log", run_id, str(offset + 1))) as process:
            yield _ShellLog(process)

    @asynccontextmanager
    async def get(self, run_id: str, index: str, offset: int) -> AsyncIterator[AsyncIterator[bytes]]:
        """Read a file of a run from a byte offset on."""
        async with shell.spawn(self._adb, self._line("get", run_id, index, str(offset + 1))) as process:
            yield _stdout_of(process)

    async def install(self, place: str, content: bytes) -> None:
        """Put one of our own files into the prefix, by rename."""
        if not (place in PLACES or place.startswith("share/pocketbuild/")) or ".." in place:
            raise ValueError(f"nothing is installed at {place!r}")
        target = f"{self._prefix}/{place}"
        mode = "700" if place.startswith("bin/") else "600"
        line = (
            f"test -x {self._prefix}/bin/gradle || exit {_NO_PREFIX};"
            f" umask 077; mkdir -p {target.rpartition('/')[0]} && cat >{target}.$$"
            f" && chmod {mode} {target}.$$ && mv -f {target}.$$ {target}"
        )
        result = await shell.run(self._adb, self._inside(line), content)
        if result.exit_code == _NO_PREFIX:
            raise RouteUnavailable(
                f"Route {self._name}: no builder prefix lies at {self._prefix}: it has no bin/gradle."
            )
        if result.exit_code != 0:
            raise self.fault(
                result.exit_code, result.stderr.decode("utf-8", "replace").strip() or "cannot write"
            )


class _ShellLog:
    def __init__(self, process: shell.ShellProcess) -> None:
        self._process = process
        self._said = b""

    async def __aiter__(self) -> AsyncIterator[tuple[bool, bytes]]:
        async for stream, data in self._process:
            is_state = stream is shell.Stream.STDERR
            if is_state:
                self._said = (self._said + bytes(data))[-_SAID_BYTES:]
            yield is_state, bytes(data)
        _check_end(self._process.exit_code, self._said)


async def _stdout_of(process: shell.ShellProcess) -> AsyncIterator[bytes]:
    said = b""
    async for stream, data in process:
        if stream is shell.Stream.STDOUT:
            yield bytes(data)
        else:
            said = (said + bytes(data))[-_SAID_BYTES:]
    _check_end(process.exit_code, said)


def _check_end(exit_code: int | None, said: bytes) -> None:
    """Raise the fault that a stream of bytes ended with."""
    if exit_code == 0:
        return
    if exit_code == _REFUSED:
        parse(said.strip().rpartition(b"\n")[2], BaseModel)
    text = said.decode("utf-8", "replace").strip()
    raise ProtocolFault(f"The phone's runner ended a stream with exit {exit_code}: {text}")
