"""Google's own adb, to hold ours against: the one of the adbutils wheel, the newest in a registry."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from builder_bridge.box.host import cache_folder, locked
from tests.ports import port_to_listen_on

ADBUTILS = "adbutils==2.12.0"
"""Its wheel for Linux carries adb 36.0.0."""


@dataclass(frozen=True)
class RealAdb:
    """An adb client with a server of its own, so that nobody else's is touched."""

    program: Path
    server_port: int
    home: Path

    @property
    def environment(self) -> dict[str, str]:
        """What both this adb and code that talks to its server must see."""
        return {
            "ANDROID_ADB_SERVER_PORT": str(self.server_port),
            "HOME": str(self.home),
            "ADB_MDNS_AUTO_CONNECT": "0",
        }

    def __call__(self, *arguments: str, serial: str | None = None, check: bool = True) -> bytes:
        """Run a command and give its output, both streams."""
        command = [str(self.program), *(["-s", serial] if serial else []), *arguments]
        done = subprocess.run(
            command, env=os.environ | self.environment, capture_output=True, check=False, timeout=120
        )
        assert not check or done.returncode == 0, (command, done)
        return done.stdout + done.stderr

    def connect(self, serial: str) -> None:
        """Make the server hold a phone; an old entry would be called connected and be offline."""
        self("disconnect", serial, check=False)
        assert b"connected to" in self("connect", serial)


def newest_adb() -> Path:
    """Give the adb program, fetched once into the cache folder. Raises `CalledProcessError`."""
    return adbutils_folder() / "adbutils/binaries/adb"


def adbutils_folder() -> Path:
    """Give a folder for PYTHONPATH with adbutils and what it needs; ours lies elsewhere."""
    folder = cache_folder().parent / ADBUTILS.replace("==", "-")
    with locked("adbutils"):
        if not (folder / "adbutils").is_dir():
            partial = folder.with_name(
                f"{folder.name}.partial"
            )  # what a killed run leaves there is never used
            shutil.rmtree(partial, ignore_errors=True)
            pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(partial), ADBUTILS]
            subprocess.run(pip, check=True, capture_output=True, timeout=600)
            shutil.rmtree(folder, ignore_errors=True)
            partial.rename(folder)
    return folder


def start_server(program: Path, home: Path) -> RealAdb:
    """Start an adb server on a free port; end it with `kill-server` of the client that is given."""
    adb = RealAdb(program, port_to_listen_on(), home)
    adb("start-server")
    return adb
