"""Route `provider`: a companion app's ContentProvider, for builders that are not debuggable.

The provider must be exported, guarded by `android.permission.DUMP`, and check that its caller is
uid 2000 (DUMP alone can be granted to other apps). It answers, at authority `PACKAGE.pocketbuild`:

    call   --method VERB --arg "WORDS"       Bundle with one string, `line`: what `pb` answers
    write  …/stdin/TOKEN                     keeps bytes for the next call, whose words end in TOKEN
    read   …/log/RUN/OFFSET                  log bytes from OFFSET to the present end
    read   …/get/RUN/INDEX/OFFSET            bytes of an artifact

`content` starts a virtual machine for each call, has exit codes that mean nothing, and cannot
follow, so a log is read in steps and digests decide whether bytes arrived.
"""

import hashlib
import re
from collections.abc import AsyncIterable, AsyncIterator
from contextlib import asynccontextmanager

import anyio

from builder_bridge.adb import AdbConnection, shell
from builder_bridge.build import BuildState
from builder_bridge.errors import RouteUnavailable, TransferFault
from builder_bridge.handoff import StatusDocument, parse
from builder_bridge.routes.route import LogStream, check_words
from builder_bridge.routes.run_as import check_package

NAME = "provider"
POLL_S = 1.0
_LINE = re.compile(rb"Bundle\[\{line=(\{.*\})\}\]", re.DOTALL)


class ProviderRoute:
    """Reaches a prefix through the companion's provider."""

    def __init__(self, adb: AdbConnection, package: str) -> None:
        check_package(package)
        self._adb = adb
        self._authority = f"{package}.pocketbuild"

    @property
    def name(self) -> str:
        """Which route this is."""
        return NAME

    async def call(self, *words: str, stdin: bytes | AsyncIterable[bytes] = b"") -> bytes:
        """Run a verb and give its one line; raises `RouteUnavailable` with the reason."""
        check_words(words)
        given = list(words[1:])
        data = stdin if isinstance(stdin, bytes) else b"".join([part async for part in stdin])
        if data:
            token = hashlib.sha256(data).hexdigest()
            await self._content(f"write --uri content://{self._authority}/stdin/{token}", data)
            given.append(token)
        argument = f' --arg "{" ".join(given)}"' if given else ""
        said = await self._content(f"call --uri content://{self._authority} --method {words[0]}{argument}")
        found = _LINE.search(said)
        if found is None:
            text = said.decode("utf-8", "replace").strip()[:300]
            raise RouteUnavailable(
                f"Route {NAME}: the provider {self._authority} gave no answer: {text}",
                hint="Install the companion app, or name another route.",
            )
        return found[1]

    async def _content(self, words: str, stdin: bytes = b"") -> bytes:
        result = await shell.run(self._adb, f"exec content {words}", stdin)
        if b"Error while accessing provider" in result.stderr + result.stdout or result.exit_code == 127:
            text = (result.stderr or result.stdout).decode("utf-8", "replace").strip()[:300]
            raise RouteUnavailable(f"Route {NAME}: {text or 'this phone has no `content`'}")
        return result.stdout + result.stderr

    @asynccontextmanager
    async def log(self, run_id: str, offset: int) -> AsyncIterator[LogStream]:
        """Follow a log from a byte offset on."""
        check_words((run_id,))
        yield _SteppedLog(self, run_id, offset)

    async def read_log(self, run_id: str, offset: int) -> bytes:
        """Give the log's bytes from an offset to its present end."""
        path = f"log/{run_id}/{offset}"
        result = await shell.run(self._adb, f"exec content read --uri content://{self._authority}/{path}")
        return result.stdout

    @asynccontextmanager
    async def get(self, run_id: str, index: str, offset: int) -> AsyncIterator[AsyncIterator[bytes]]:
        """Read a file of a run from a byte offset on."""
        check_words((run_id, index))
        command = f"exec content read --uri content://{self._authority}/get/{run_id}/{index}/{offset}"
        async with shell.spawn(self._adb, command) as process:
            yield _stdout_of(process)

    async def install(self, place: str, content: bytes) -> None:
        """Raise `TransferFault`: the companion app brings its own runner."""
        raise TransferFault(
            f"Route {NAME} cannot put {place} ({len(content)} bytes) into the prefix.",
            hint="Update the companion app.",
        )


class _SteppedLog:
    """A log read in steps, since a provider cannot tell when there is more."""

    def __init__(self, route: ProviderRoute, run_id: str, offset: int) -> None:
        self._route = route
        self._run_id = run_id
        self._offset = offset

    async def __aiter__(self) -> AsyncIterator[tuple[bool, bytes]]:
        told = None
        while True:
            state = parse(await self._route.call("status", self._run_id), StatusDocument).state
            data = await self._route.read_log(self._run_id, self._offset)
            self._offset += len(data)
            if data:
                yield False, data
            elif BuildState(state.state).is_final and self._offset < (state.log_size or 0):
                return  # there is more than can be read: whoever follows opens anew, a few times
            if state != told:
                told = state
                yield True, state.model_dump_json().encode() + b"\n"
            await anyio.sleep(POLL_S)


async def _stdout_of(process: shell.ShellProcess) -> AsyncIterator[bytes]:
    async for stream, data in process:
        if stream is shell.Stream.STDOUT:
            yield bytes(data)
