"""What a started box is, and the record of it that every process can find again."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

from builder_bridge.box.host import cache_folder
from builder_bridge.box.process import ProcessIdentity, children_of
from builder_bridge.box.recipe import Kind

DEFAULT_NAME = "box"


class Mode(StrEnum):
    """What adbd asks of a connection: nothing, an RSA key its owner allowed, or that within TLS."""

    PLAIN = "plain"
    AUTH = "auth"
    TLS = "tls"


@dataclass(frozen=True, slots=True)
class Box:
    """A box that was started: what it is, where it listens, which process and which boot it is."""

    name: str
    kind: Kind
    mode: Mode
    host: str
    port: int
    kill_children: bool
    mtu_1500: bool
    boot_id: str
    init: ProcessIdentity
    folder: Path

    @property
    def serial(self) -> str:
        """The address adb clients connect to, HOST:PORT."""
        return f"{self.host}:{self.port}"

    @property
    def is_running(self) -> bool:
        """Whether the box's init still runs."""
        return self.init.is_alive

    @property
    def root(self) -> Path:
        """The device's root folder as this host's root user sees it, while the box runs."""
        return Path(f"/proc/{self.init.pid}/root")

    @property
    def adbd_pid(self) -> int | None:
        """The host's number for the box's adbd; None in the moment between two of them."""
        names = ((pid, _command_name(pid)) for pid in children_of(self.init.pid))
        return next((pid for pid, name in names if name.startswith("adbd")), None)

    def set_value(self, name: str, value: str | float) -> None:
        """Let the box's fake sensors and settings show another value.

        `name` is one of those in `parts/bin/dumpsys` and beside it: `battery.level`,
        `thermal.status`, `user.current`, `page_size`, `settings.global.NAME` and so on.
        """
        _set_line(self.root / "data/system/box.conf", name, str(value))

    def set_report(self, name: str, text: str) -> None:
        """Let a tool of the device print this text: `logcat`, or `exit-info` of `dumpsys activity`."""
        (self.root / f"data/system/box.{name}").write_text(text)

    def set_property(self, name: str, value: str) -> None:
        """Set a system property that `getprop` shows; adbd does not see it."""
        _set_line(self.root / "data/property/box.prop", name, value)


def find(name: str = DEFAULT_NAME) -> Box | None:
    """Give the box of this name as it was last started, running or not; None where there is none."""
    folder = folder_of(name)
    try:
        fields = json.loads((folder / "box.json").read_text())
    except FileNotFoundError:
        return None
    fields |= {
        "kind": Kind(fields["kind"]),
        "mode": Mode(fields["mode"]),
        "init": ProcessIdentity(**fields["init"]),
        "folder": folder,
    }
    return Box(**fields)


def boxes() -> list[Box]:
    """Give all boxes of this cache folder, running or not, by name."""
    return list(_boxes())


def _boxes() -> Iterator[Box]:
    for folder in sorted((cache_folder() / "instances").glob("*/")):
        box = find(folder.name)
        if box is not None:
            yield box


def folder_of(name: str) -> Path:
    """Say where the files of the box of this name lie, whether there is one or not."""
    return cache_folder() / "instances" / name


def write_record(box: Box) -> None:
    """Keep what this box is, for `find` of every process."""
    fields = asdict(box)
    del fields["folder"]
    new = box.folder / "box.json.new"
    new.write_text(json.dumps(fields, indent=1) + "\n")
    new.rename(box.folder / "box.json")


def _set_line(file: Path, name: str, value: str) -> None:
    lines = [line for line in file.read_text().splitlines() if not line.startswith(f"{name}=")]
    file.write_text("\n".join([*lines, f"{name}={value}"]) + "\n")


def _command_name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""
