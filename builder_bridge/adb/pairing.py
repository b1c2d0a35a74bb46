"""Pair with a phone's wireless debugging, once, with the help of Google's adb.

Pairing is a SPAKE2 exchange inside TLS keyed by exported key material, which Python's ssl module
does not offer; an `adb` of platform-tools 30 or newer does it and shares its key with us.
"""

import importlib.util
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import anyio

from builder_bridge.errors import PhoneNotPaired, PhoneUnavailable

OLDEST_RELEASE = 30
PAIR_TIMEOUT_S = 30.0


async def pair(address: str, code: str) -> str:
    """Pair with the phone that shows `code` and `address` (HOST:PORT); gives adb's word of success.

    Raises `PhoneUnavailable` where no fitting adb is found, `PhoneNotPaired` where the phone refuses.
    """
    adb = await anyio.to_thread.run_sync(find_pairing_adb, os.environ)
    # A server on a port of its own: another version on the usual one would be killed by ours.
    environment = os.environ | {"ANDROID_ADB_SERVER_PORT": str(_free_port())}
    environment.pop("ADB_SERVER_SOCKET", None)
    command = partial(_run, adb, "pair", address, code=code, environment=environment)
    try:
        done = await anyio.to_thread.run_sync(command)
    except subprocess.TimeoutExpired:
        raise PhoneNotPaired(f"{address} did not finish pairing within {PAIR_TIMEOUT_S:g} s.") from None
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(partial(_run, adb, "kill-server", environment=environment))
    told = done.stdout + done.stderr
    success = re.search(r"Successfully paired.*", told)
    if done.returncode or not success:
        reason = told.replace("Enter pairing code:", "").strip() or f"adb ended with {done.returncode}"
        raise PhoneNotPaired(
            f"{address} was not paired: {reason}.",
            hint="Open `Pair device with pairing code` on the phone again; its address and code are new.",
        )
    return success[0]


def find_pairing_adb(environment: Mapping[str, str]) -> Path:
    """Find an adb that can pair. Raises `PhoneUnavailable`, naming those that are too old."""
    seen = list[str]()
    for program in _candidates(environment):
        release = _release_of(program)
        if release >= OLDEST_RELEASE:
            return program
        seen.append(f"{program} ({release or 'no answer'})")
    raise PhoneUnavailable(
        f"Pairing needs an adb of release {OLDEST_RELEASE} or newer; found: {', '.join(seen) or 'none'}.",
        hint="Install Android platform-tools, or the Python package adbutils, which carries one; or set ADB.",
    )


def _run(
    adb: Path, *arguments: str, environment: Mapping[str, str], code: str = ""
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [adb, *arguments],
        input=f"{code}\n",
        env=environment,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=PAIR_TIMEOUT_S,
        check=False,
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _candidates(environment: Mapping[str, str]) -> Iterator[Path]:
    places = [environment.get("ADB"), shutil.which("adb", path=environment.get("PATH"))]
    roots = (environment.get("ANDROID_HOME"), environment.get("ANDROID_SDK_ROOT"))
    places += [f"{root}/platform-tools/adb" for root in roots if root]
    if (package := importlib.util.find_spec("adbutils")) and package.origin:
        places.append(str(Path(package.origin).parent / "binaries/adb"))
    yield from (Path(place) for place in dict.fromkeys(places) if place and Path(place).is_file())


def _release_of(program: Path) -> int:
    try:
        done = subprocess.run([program, "version"], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return 0
    found = re.search(r"^Version (\d+)\.", done.stdout, re.MULTILINE)
    return int(found[1]) if found else 0
