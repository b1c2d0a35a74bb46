"""Route `termux`: the prefix of a Termux app that was built debuggable, by `run-as com.termux`.

Releases from F-Droid are not debuggable: there `run-as` refuses, and its own sshd is the way.
"""

from builder_bridge.adb import AdbConnection
from builder_bridge.errors import BridgeError, RouteUnavailable
from builder_bridge.routes.run_as import PREFIX, explain_run_as
from builder_bridge.routes.shell_line import ShellLineRoute

NAME = "termux"
PACKAGE = "com.termux"


class TermuxRoute(ShellLineRoute):
    """Reaches Termux's prefix."""

    def __init__(self, adb: AdbConnection) -> None:
        super().__init__(adb, NAME, PREFIX, f"run-as {PACKAGE} ")

    def fault(self, exit_code: int, said: str) -> BridgeError:
        """Name what run-as says by its source; else as any shell line."""
        told = explain_run_as(said, PACKAGE)
        if told is None:
            return super().fault(exit_code, said)
        return RouteUnavailable(
            str(told).replace("Route run_as", f"Route {NAME}"),
            hint="Install Termux's debug build from its project page, or take route run_as or shell_dir.",
        )
