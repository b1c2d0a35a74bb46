"""Route `su`: a prefix reached as root, on phones that have `su`. Never tried unless it is named.

Some `su` programs ask the person who holds the phone, so each call has a limit of its own until
one has answered; some put a terminal between, which changes bytes: the probe looks for that.
"""

from collections.abc import AsyncIterable

import anyio

from builder_bridge.adb import AdbConnection
from builder_bridge.errors import RouteUnavailable
from builder_bridge.routes.route import check_words
from builder_bridge.routes.run_as import check_package
from builder_bridge.routes.shell_line import ShellLineRoute

NAME = "su"
ASK_LIMIT_S = 3.0


class SuRoute(ShellLineRoute):
    """Reaches a builder app's prefix by `su -c`."""

    def __init__(self, adb: AdbConnection, package: str) -> None:
        check_package(package)
        super().__init__(adb, NAME, f"/data/data/{package}/files/usr", "su -c ")
        self._has_answered = False

    def _line(self, *words: str) -> str:
        check_words(words)
        return f"exec su -c '{self._prefix}/bin/pb {' '.join(words)}'"

    async def call(self, *words: str, stdin: bytes | AsyncIterable[bytes] = b"") -> bytes:
        """Run a verb and give its one line; raises `RouteUnavailable` with the reason."""
        if self._has_answered:
            return await super().call(*words, stdin=stdin)
        with anyio.move_on_after(ASK_LIMIT_S):
            line = await super().call(*words, stdin=stdin)
            if b"\r" in line:
                raise RouteUnavailable(
                    f"Route {NAME}: this su puts a terminal between, which changes bytes.",
                    hint="Take another route, or a su that runs commands without a terminal.",
                )
            self._has_answered = True
            return line
        raise RouteUnavailable(
            f"Route {NAME}: su did not answer within {ASK_LIMIT_S:.0f} s.",
            hint="Allow shell to become root in the phone's root manager, or name another route.",
        )
