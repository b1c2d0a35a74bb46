"""What the box needs of its host: looks, says what is missing, and runs the host's programs."""

import fcntl
import os
import platform
import shutil
import subprocess
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from builder_bridge.box.mirror import find_mirror
from builder_bridge.errors import BoxFault

Progress = Callable[[str], None]
"""Told, in one sentence, what is being done now."""

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")

_PROGRAMS = {
    "mmdebstrap": "mmdebstrap",
    "g++": "g++",
    "gcc": "g++",
    "mount": "mount",
    "unshare": "util-linux",
    "setsid": "util-linux",
    "nsenter": "util-linux",
    "chroot": "coreutils",
}
"""Program → Debian package that has it."""

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_LOCK_FILES = 64
_INNER_LOCKS = {"network", "downloads"}
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def require_host(*, network_namespace: bool = False) -> None:
    """Make sure that boxes can be made and run here.

    Raises:
        BoxFault: naming everything that is missing at once, and how to get it.
    """
    missing = missing_from_host(network_namespace=network_namespace)
    if missing:
        raise BoxFault("The phone in a box cannot run here: " + "; ".join(missing) + ".")


def missing_from_host(*, network_namespace: bool = False) -> list[str]:
    """Name, each in a phrase, what this host lacks; an empty list means that boxes can run."""
    missing = []
    if os.name != "posix" or platform.system() != "Linux":
        return ["it needs a Linux kernel, and this is " + platform.system()]
    if platform.machine() not in _ARCHITECTURES:
        missing.append(f"there is no adbd for {platform.machine()}")
    if os.geteuid() != 0:
        missing.append("it needs root, and this is uid " + str(os.geteuid()))
    programs = dict(_PROGRAMS, ip="iproute2") if network_namespace else _PROGRAMS
    packages = {package for program, package in programs.items() if not shutil.which(program, path=_PATH)}
    if not KEYRING.exists():
        packages.add("debian-archive-keyring")
    if not Path("/usr/include/stdlib.h").exists():
        packages.add("libc6-dev")
    if packages:
        missing.append(f"install what is missing with `apt-get install {' '.join(sorted(packages))}`")
    if not missing and not _may_make_namespaces():
        missing.append("the kernel refuses new namespaces (in a container: run it with --privileged)")
    return missing


def _may_make_namespaces() -> bool:
    probe = ["unshare", "--mount", "--pid", "--net", "--fork", "true"]
    done = subprocess.run(probe, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return done.returncode == 0


@contextmanager
def ordinary_umask() -> Iterator[None]:
    """Let files be readable by all users of a box, whatever the caller's umask is."""
    before = os.umask(0o022)
    try:
        yield
    finally:
        os.umask(before)


def architecture() -> str:
    """Give Debian's name for this machine's architecture."""
    return _ARCHITECTURES[platform.machine()]


def mirror() -> str:
    """Give the Debian mirror: POCKETBUILD_BOX_MIRROR, else the one of the host's own apt sources.

    Raises:
        BoxFault: where neither names one.
    """
    if chosen := os.environ.get("POCKETBUILD_BOX_MIRROR"):
        return chosen.rstrip("/")
    apt = Path("/etc/apt")
    files = [apt / "sources.list", *sorted((apt / "sources.list.d").glob("*.[ls][io][su]*"))]
    texts = [
        file.read_text(errors="replace")
        for file in files
        if file.suffix in {".list", ".sources"} and file.exists()
    ]
    found = find_mirror(texts)
    if found is None:
        raise BoxFault(
            "No Debian mirror is named in /etc/apt/sources.list or /etc/apt/sources.list.d, so there is "
            "nothing to make the box of.",
            hint="Set POCKETBUILD_BOX_MIRROR to the address of a Debian mirror.",
        )
    return found


def cache_folder() -> Path:
    """Give the folder for roots, downloads and instances: POCKETBUILD_BOX_CACHE, else XDG's cache.

    It is made closed to others: a root holds a program that is setuid root.
    """
    if chosen := os.environ.get("POCKETBUILD_BOX_CACHE"):
        folder = Path(chosen).absolute()
    else:
        cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
        folder = Path(cache) / "pocketbuild" / "box"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


@contextmanager
def locked(name: str, progress: Progress | None = None) -> Iterator[None]:
    """Hold the lock `name` of the cache folder, across processes.

    Names share a fixed number of files, as a lock's file can never be removed safely; two names
    that fall on one file merely wait for each other. Those in `_INNER_LOCKS` have files of their own:
    they alone may be asked for by a holder of another one.
    """
    folder = cache_folder() / "locks"
    folder.mkdir(exist_ok=True)
    place = name if name in _INNER_LOCKS else f"{zlib.crc32(name.encode()) % _LOCK_FILES:02d}"
    with (folder / f"{place}.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if progress is not None:
                progress(f"Waiting for another process that holds {name}")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def run(
    command: Sequence[str | Path], *, why: str, cwd: Path | None = None, env: dict[str, str] | None = None
) -> str:
    """Run a program of the host and give its standard output.

    Raises:
        BoxFault: when it fails, with `why` it was run and the end of what it said.
    """
    words = [str(word) for word in command]
    environment = {**os.environ, "PATH": _PATH, "LC_ALL": "C.UTF-8", **(env or {})}
    try:
        done = subprocess.run(
            words, cwd=cwd, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
    except OSError as fault:
        raise BoxFault(f"{why}: {words[0]} could not be run: {fault.strerror}.") from fault
    if done.returncode != 0:
        said = (done.stderr or done.stdout).decode(errors="replace").strip()[-1500:]
        raise BoxFault(f"{why}: {words[0]} ended with {done.returncode}: {said or 'it said nothing'}")
    return done.stdout.decode(errors="replace")
