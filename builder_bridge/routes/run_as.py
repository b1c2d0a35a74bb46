"""Route `run_as`: into the files of a debuggable builder app, as that app's own uid.

Works for any targetSdk, because processes of `run-as` may run files of the app's folder. What
`run-as` says is matched against the texts of its source (platform/system/core, run-as.cpp).
"""

import re

from builder_bridge.adb import AdbConnection
from builder_bridge.errors import BridgeError, RouteUnavailable
from builder_bridge.routes.shell_line import ShellLineRoute

NAME = "run_as"
PREFIX = "files/usr"
_PACKAGE = re.compile(r"[A-Za-z][A-Za-z0-9_]*(\.[A-Za-z][A-Za-z0-9_]*)+")
_REASONS = (
    ("not debuggable", "not_debuggable", "Install a debuggable build of the builder, or name another route."),
    ("unknown package", "unknown_package", "Install the builder app on the phone."),
    ("not an application", "unknown_package", "Name the builder app's package."),
    ("disabled from the kernel", "disabled", "This phone switches run-as off; name another route."),
    ("wrong owner", "wrong_owner", "Reinstall the builder app."),
    ("corrupt installation", "wrong_owner", "Unlock the phone once; if that is done, reinstall the builder."),
    ("couldn't stat", "device_locked", "Unlock the phone once since it was started."),
    ("couldn't chdir", "device_locked", "Unlock the phone once since it was started."),
    ("only 'shell' or 'root'", "wrong_caller", "Reach the phone by adb as shell."),
    ("security context", "selinux", "This phone's policy refuses run-as; name another route."),
    ("operation not permitted", "refused", "This phone's run-as is broken; name another route."),
)  # fmt: skip


class RunAsRoute(ShellLineRoute):
    """Reaches a prefix by `run-as PACKAGE`."""

    def __init__(self, adb: AdbConnection, package: str) -> None:
        check_package(package)
        super().__init__(adb, NAME, PREFIX, f"run-as {package} ")
        self._package = package

    def fault(self, exit_code: int, said: str) -> BridgeError:
        """Name what run-as says by its source; else as any shell line."""
        return explain_run_as(said, self._package) or super().fault(exit_code, said)


def explain_run_as(said: str, package: str) -> RouteUnavailable | None:
    """Give the fault for what `run-as` said, None where it was not run-as that spoke."""
    lowered = said.lower()
    if "run-as:" not in lowered or "exec failed" in lowered:
        return None
    for text, code, hint in _REASONS:
        if text in lowered:
            return RouteUnavailable(f"Route {NAME}: {code}: {package}: {said[:300]}", hint=hint)
    return RouteUnavailable(f"Route {NAME}: refused: {package}: {said[:300]}")


def check_package(package: str) -> None:
    """Raise ValueError for what is no Android package name."""
    if len(package) > 200 or not _PACKAGE.fullmatch(package):
        raise ValueError(f"{package!r} is no package name")
