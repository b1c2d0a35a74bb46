"""Route `shell_dir`: a prefix below /data/local/tmp, as adb's own uid 2000.

Needs nothing installed. Every build script runs with the powers of adb, so it is for phones of
one's own and for code that one trusts.
"""

from builder_bridge.adb import AdbConnection
from builder_bridge.routes.shell_line import ShellLineRoute

NAME = "shell_dir"
PREFIX = "/data/local/tmp/pocketbuild/usr"


class ShellDirRoute(ShellLineRoute):
    """Reaches the prefix that adb's shell owns."""

    def __init__(self, adb: AdbConnection) -> None:
        super().__init__(adb, NAME, PREFIX)
