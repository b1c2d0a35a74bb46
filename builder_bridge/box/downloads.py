"""Fetches what the box needs beyond the Debian release it is made of, each through its own client."""

import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path

from builder_bridge.box.host import KEYRING, Progress, cache_folder, locked, mirror, run
from builder_bridge.box.recipe import SUITE
from builder_bridge.errors import BoxFault

R8_VERSION = "3.3.75"
_R8_SHA256 = "92104f8584add622a08347d95ae27623ef48bfbda6f6c6093e9b8efcc14b883d"
_WHEEL = "mobsf==3.9.7"
_WHEEL_SHA256 = "aa3bdce244d2f6c2781c492102ff2b6d24c85ae8eb0022bfa5d0026d930ccb54"
_WHEEL_MEMBER = f"mobsf/StaticAnalyzer/tools/jadx/lib/r8-{R8_VERSION}.jar"

APKSIGNER = "apksigner"
_PLATFORM_SUITE = "sid"
_PLATFORM = ("android-sdk-platform-23", "libandroid-23-java", "libandroid-uiautomator-23-java")
_TRIES = 3


def fetch_r8(folder: Path, progress: Progress) -> Path:
    """Give R8's archive, which is D8 too; kept, and checked against its sha256 each time.

    `folder` is for what is downloaded on the way.
    """
    jar = cache_folder() / "downloads" / f"r8-{R8_VERSION}.jar"
    with locked("downloads", progress):
        if jar.exists() and _sha256(jar.read_bytes()) == _R8_SHA256:
            return jar
        jar.parent.mkdir(exist_ok=True)
        progress(f"Fetching D8 out of the Python package {_WHEEL} (95 MB)")
        with zipfile.ZipFile(_download_wheel(folder / "wheel")) as archive:
            content = archive.read(_WHEEL_MEMBER)
        if _sha256(content) != _R8_SHA256:
            raise BoxFault(f"{_WHEEL_MEMBER} of {_WHEEL} is not the file that was pinned.")
        partial = jar.with_suffix(".partial")
        partial.write_bytes(content)
        partial.rename(jar)
    return jar


def fetch_packages(folder: Path, architecture: str, progress: Progress) -> list[Path]:
    """Download apksigner and Android's platform 23 into `folder`, without what they depend on.

    Debian's apksigner would draw in a desktop Java, and the platform is only in Debian sid. Both
    come through apt, which checks Debian's signatures.
    """
    progress(f"Fetching apksigner and, from Debian {_PLATFORM_SUITE}, Android's platform 23 (26 MB)")
    packages = [f"{APKSIGNER}/{SUITE}", *(f"{package}/{_PLATFORM_SUITE}" for package in _PLATFORM)]
    for inner in ("lists/partial", "cache/archives/partial", "debs"):
        (folder / inner).mkdir(parents=True, exist_ok=True)
    sources = folder / "sources.list"
    lines = [f"deb [signed-by={KEYRING}] {mirror()} {suite} main\n" for suite in (SUITE, _PLATFORM_SUITE)]
    sources.write_text("".join(lines))
    options = {
        "Dir::Etc::SourceList": sources,
        "Dir::Etc::SourceParts": "-",
        "Dir::State::Lists": folder / "lists",
        "Dir::State::Status": "/dev/null",
        "Dir::Cache": folder / "cache",
        "APT::Architecture": architecture,
        "APT::Sandbox::User": "root",
        "Acquire::Languages": "none",
        "Acquire::Retries": "5",
    }
    apt = ["apt-get", "-qq", *(word for key, value in options.items() for word in ("-o", f"{key}={value}"))]
    why = "Fetching packages from Debian"
    run([*apt, "update"], why=why)
    run([*apt, "download", *packages], why=why, cwd=folder / "debs")
    return sorted((folder / "debs").glob("*.deb"))


def _download_wheel(folder: Path) -> Path:
    folder.mkdir(parents=True)
    requirements = folder / "requirements.txt"
    requirements.write_text(f"{_WHEEL} --hash=sha256:{_WHEEL_SHA256}\n")
    pip = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--only-binary=:all:",
        "--retries=5",
    ]
    command = [*pip, "--require-hashes", f"--requirement={requirements}", f"--dest={folder}"]
    said = ""
    for _ in range(_TRIES):
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        if done.returncode == 0:
            return next(folder.glob("*.whl"))
        said = done.stderr.decode(errors="replace").strip()[-800:]
    raise BoxFault(f"pip could not fetch {_WHEEL}, which carries D8, in {_TRIES} tries: {said}")


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
