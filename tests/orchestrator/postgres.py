"""Debian's PostgreSQL for a test: an empty cluster on a free loopback port, gone afterwards."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.ports import port_to_listen_on

USER = "postgres"


def binaries() -> Path | None:
    """Say where PostgreSQL's programs lie, None where it is not installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return found[-1].parent if found else None


@dataclass(frozen=True, slots=True)
class Cluster:
    """A running server."""

    folder: Path
    bin: Path
    port: int

    @property
    def url(self) -> str:
        return f"postgresql://{USER}@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        options = f"-p {self.port} -h 127.0.0.1 -k {self.folder} -c fsync=off"
        self._control("start", "-o", options, "-l", str(self.folder / "server.log"))

    def stop(self) -> None:
        """Stop as a crash does: connections are cut, nothing is written back."""
        self._control("stop", "-m", "immediate")

    def _control(self, verb: str, *arguments: str) -> None:
        program = [str(self.bin / "pg_ctl"), "-D", str(self.folder / "data"), "-w", verb, *arguments]
        subprocess.run([*as_user(), *program], check=True, stdout=subprocess.DEVNULL)


def as_user() -> list[str]:
    """Give what runs a program as a user that PostgreSQL accepts; it refuses root."""
    return ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"] if os.geteuid() == 0 else []


@contextmanager
def cluster() -> Iterator[Cluster]:
    programs = binaries()
    assert programs is not None
    folder = Path(tempfile.mkdtemp(prefix="pocketbuild-pg-"))
    if os.geteuid() == 0:
        shutil.chown(folder, USER, USER)
    made = Cluster(folder, programs, port_to_listen_on())
    initdb = [str(programs / "initdb"), "-D", str(folder / "data"), "-U", USER, "-A", "trust", "-N"]
    subprocess.run([*as_user(), *initdb], check=True, stdout=subprocess.DEVNULL)
    made.start()
    try:
        yield made
    finally:
        with suppress(subprocess.CalledProcessError):  # a test may have stopped it
            made.stop()
        shutil.rmtree(folder, ignore_errors=True)
