"""The clients that are measured: ours, Google's adb, adb-shell, adbutils; one shape for all."""

import os
import resource
import subprocess
import sys
from collections.abc import Iterable
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Protocol

import anyio.from_thread
from adb_shell.adb_device import AdbDeviceTcp
from transfer_parts.bare import BareClient

from builder_bridge.adb import AdbConnection, shell, sync
from builder_bridge.adb.sync import PushFile
from tests.real_adb import RealAdb, adbutils_folder

Pair = tuple[Path, PurePosixPath]


class Floor(Protocol):
    """Pushes single files; what the rows of single files can be held against."""

    name: str

    def push(self, source: Path, destination: PurePosixPath) -> None: ...
    def cpu_s(self) -> float: ...


class Peer(Floor, Protocol):
    """Does everything that is measured."""

    def pull(self, source: PurePosixPath, destination: Path) -> None: ...
    def push_tree(self, folder: Path, destination: PurePosixPath) -> None: ...
    def shell(self, command: str) -> None: ...
    def stdout_bytes(self, command: str) -> int: ...


def files_of(folder: Path, destination: PurePosixPath) -> Iterable[Pair]:
    for here, _, names in os.walk(folder):
        source = Path(here)
        place = destination / folder.name / source.relative_to(folder)
        for name in names:
            yield source / name, place / name


class Ours:
    name = "ours"

    def __init__(self, portal: anyio.from_thread.BlockingPortal, adb: AdbConnection) -> None:
        self.call, self.adb = portal.call, adb

    def push(self, source: Path, destination: PurePosixPath) -> None:
        self.call(sync.push, self.adb, source, destination)

    def pull(self, source: PurePosixPath, destination: Path) -> None:
        self.call(partial(sync.pull, self.adb, source, destination, via_part=False))

    def push_tree(self, folder: Path, destination: PurePosixPath) -> None:
        files = (PushFile(path, place) for path, place in files_of(folder, destination))
        self.call(sync.push_many, self.adb, files)

    def shell(self, command: str) -> None:
        assert self.call(shell.run, self.adb, command).exit_code == 0

    def stdout_bytes(self, command: str) -> int:
        async def count() -> int:
            async with shell.spawn(self.adb, command) as process:
                return sum([len(data) async for _, data in process])

        return self.call(count)

    def cpu_s(self) -> float:
        return own_cpu_s()


class Google:
    """The command-line client and its server, as a user has them; `tuned` sets what it keeps to itself."""

    def __init__(self, adb: RealAdb, serial: str, name: str = "adb") -> None:
        self.adb, self.serial, self.name = adb, serial, name
        adb.connect(serial)
        self.server_pid = _server_pid(adb.server_port)
        self.environment = os.environ | adb.environment

    def run(self, *arguments: str) -> None:
        self.start(*arguments, stdout=subprocess.DEVNULL).wait()

    def start(self, *arguments: str, stdout: int) -> subprocess.Popen[bytes]:
        command = [str(self.adb.program), "-s", self.serial, *arguments]
        return subprocess.Popen(command, env=self.environment, stdout=stdout, stderr=subprocess.DEVNULL)

    def push(self, source: Path, destination: PurePosixPath) -> None:
        self.run("push", str(source), str(destination))

    def pull(self, source: PurePosixPath, destination: Path) -> None:
        self.run("pull", str(source), str(destination))

    def push_tree(self, folder: Path, destination: PurePosixPath) -> None:
        self.run("push", str(folder), str(destination))

    def shell(self, command: str) -> None:
        self.run("shell", command)

    def stdout_bytes(self, command: str) -> int:
        process = self.start("shell", "-T", command, stdout=subprocess.PIPE)
        assert process.stdout
        size_bytes = 0
        while data := os.read(process.stdout.fileno(), 1 << 20):
            size_bytes += len(data)
        process.wait()
        return size_bytes

    def cpu_s(self) -> float:
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return children.ru_utime + children.ru_stime + _cpu_s_of(self.server_pid)


class Bare:
    """The floor: pushes single files, and nothing else."""

    name = "bare"

    def __init__(self, address: str) -> None:
        self.client = BareClient(address)

    def push(self, source: Path, destination: PurePosixPath) -> None:
        self.client.push(source, destination)

    def cpu_s(self) -> float:
        return own_cpu_s()


class AdbShell:
    name = "adb-shell"

    def __init__(self, serial: str) -> None:
        host, _, port = serial.rpartition(":")
        self.device = AdbDeviceTcp(host, int(port), default_transport_timeout_s=60)
        self.device.connect()

    def push(self, source: Path, destination: PurePosixPath) -> None:
        self.device.push(str(source), str(destination), read_timeout_s=60)

    def pull(self, source: PurePosixPath, destination: Path) -> None:
        self.device.pull(str(source), str(destination), read_timeout_s=60)

    def push_tree(self, folder: Path, destination: PurePosixPath) -> None:
        pairs = list(files_of(folder, destination))
        self.device.shell("mkdir -p " + " ".join(sorted({str(place.parent) for _, place in pairs})))
        for path, place in pairs:
            self.push(path, place)

    def shell(self, command: str) -> None:
        self.device.shell(command)

    def stdout_bytes(self, command: str) -> int:
        return sum(
            len(part) for part in self.device.streaming_shell(command, decode=False, read_timeout_s=60)
        )

    def cpu_s(self) -> float:
        return own_cpu_s()


class AdbUtils:
    """adbutils, over the server of Google's adb."""

    name = "adbutils"

    def __init__(self, google: Google) -> None:
        sys.path.append(str(adbutils_folder()))
        import adbutils  # type: ignore[import-not-found]

        self.google = google
        self.device = adbutils.AdbClient(port=google.adb.server_port).device(google.serial)

    def push(self, source: Path, destination: PurePosixPath) -> None:
        self.device.sync.push(str(source), str(destination))

    def pull(self, source: PurePosixPath, destination: Path) -> None:
        self.device.sync.pull(str(source), str(destination))

    def push_tree(self, folder: Path, destination: PurePosixPath) -> None:
        for path, place in files_of(folder, destination):
            self.push(path, place)

    def shell(self, command: str) -> None:
        self.device.shell(command)

    def stdout_bytes(self, command: str) -> int:
        stream, size_bytes = self.device.shell(command, stream=True), 0
        with stream:
            while data := stream.conn.recv(1 << 20):
                size_bytes += len(data)
        return size_bytes

    def cpu_s(self) -> float:
        return own_cpu_s() + _cpu_s_of(self.google.server_pid)


def own_cpu_s() -> float:
    own = resource.getrusage(resource.RUSAGE_SELF)
    return own.ru_utime + own.ru_stime


def _cpu_s_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _server_pid(port: int) -> int:
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_text()
        except OSError:
            continue
        if "fork-server" in command and str(port) in command:
            return int(folder.name)
    raise AssertionError(f"no adb server with port {port}")
