"""The device's shell without adb: how to enter a running box as adb's user."""

from builder_bridge.box.layout import SHELL_UID
from builder_bridge.box.record import Box

DEVICE_PATH = "/product/bin:/system_ext/bin:/system/bin:/system/xbin:/odm/bin:/vendor/bin:/vendor/xbin"
_ENVIRONMENT = {
    "PATH": DEVICE_PATH,
    "HOME": "/",
    "SHELL": "/system/bin/sh",
    "USER": "shell",
    "LOGNAME": "shell",
    "TMPDIR": "/data/local/tmp",
    "ANDROID_ROOT": "/system",
    "ANDROID_DATA": "/data",
    "EXTERNAL_STORAGE": "/sdcard",
}


def shell_command(box: Box, command: str) -> list[str]:
    """Give the host's command that runs `command`, or an interactive shell for "", inside the box.

    It needs root, keeps the terminal it is run in, and gives the command's own exit code.
    """
    user = [f"--setuid={SHELL_UID}", f"--setgid={SHELL_UID}"]
    enter = [
        "nsenter",
        f"--target={box.init.pid}",
        "--mount",
        "--pid",
        "--ipc",
        "--uts",
        "--net",
        "--root",
        "--wd=/",
    ]
    environment = [f"{name}={value}" for name, value in _ENVIRONMENT.items()]
    clean = ["/system/bin/env", "-i", "TERM=xterm", *environment, "/system/bin/sh"]
    return [*enter, *user, *clean, *(["-c", command] if command else [])]
