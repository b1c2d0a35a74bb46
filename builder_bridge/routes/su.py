"""Route `su`: a prefix reached as root, on phones that have `su`. Never tried unless it is named.

Some `su` programs ask the person who holds the phone, so each call has a limit of its own until
one has answered; some put a terminal between, which changes bytes: the probe looks for that. What
follows `-c` is one word, because Magisk's joins all words and KernelSU's takes the first alone.
Where KernelSU or APatch have not been told to let adb's shell become root, there is no `su` at all;
that of Android's own debug builds knows no `-c`.
"""

from collections.abc import AsyncIterable

import anyio

from builder_bridge.adb import AdbConnection
from builder_bridge.errors import BridgeError, RouteUnavailable
from builder_bridge.routes.route import check_words
from builder_bridge.routes.run_as import check_package
from builder_bridge.routes.shell_line import ShellLineRoute

NAME = "su"
ASK_LIMIT_S = 3.0
_LET = "Root the phone, or let Shell (com.android.shell) become root in its root manager."
_REASONS = (
    ("su: inaccessible or not found", "no_su", _LET),
    ("su: not found", "no_su", _LET),
    ("permission denied", "denied", "Allow Shell to become root in the phone's root manager."),
    ("invalid uid", "no_command_option", "This su knows no -c; use `adb root` and route run_as instead."),
)  # fmt: skip


class SuRoute(ShellLineRoute):
    """Reaches a builder app's prefix by `su -c`."""

    def __init__(self, adb: AdbConnection, package: str) -> None:
        check_package(package)
        super().__init__(adb, NAME, f"/data/data/{package}/files/usr")
        self._has_answered = False

    def _line(self, *words: str) -> str:
        check_words(words)
        return self._inside(f"{self._prefix}/bin/pb {' '.join(words)}")

    def _inside(self, line: str) -> str:
        return f"exec su -c '{line}'"

    def fault(self, exit_code: int, said: str) -> BridgeError:
        """Name what su says; else as any shell line."""
        if not self._has_answered:
            lowered = said.lower()
            for text, code, hint in _REASONS:
                if text in lowered and self._prefix not in said:
                    return RouteUnavailable(f"Route {NAME}: {code}: {said[:300]}", hint=hint)
        return super().fault(exit_code, said)

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
