"""A network of a test's own: this host's end in one network namespace, the phones' end in another.

Between them lies a pair of virtual Ethernet ends, over which multicast is as real as on any network.
Nothing of it is visible to other tests or to the machine, and it ends with the test.
"""

import contextlib
import ctypes
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest

from builder_bridge.box import Box

HOST_END, PHONE_END = "10.99.0.1", "10.99.0.2"
_NEW_NETWORK = 0x40000000


@dataclass
class PhoneNetwork:
    """The phones' end: `announce` what phones announce there."""

    announcer: subprocess.Popen[str]

    def tell(self, **order: object) -> None:
        """Give the announcer an order and wait until it is carried out."""
        assert self.announcer.stdin
        assert self.announcer.stdout
        self.announcer.stdin.write(json.dumps(order) + "\n")
        self.announcer.stdin.flush()
        assert self.announcer.stdout.readline() == "done\n"

    def cut(self) -> None:
        """Take multicast from this host's end."""
        ip("link", "set", "near0", "multicast", "off")

    def mend(self) -> None:
        """Give multicast back to this host's end."""
        ip("link", "set", "near0", "multicast", "on")

    async def announce(self, service: str, name: str, port: int, as_: str = "new", *hosts: str) -> None:
        """Announce a service, by default at the phones' end."""
        order = {"service": service, "name": name, "port": port, "hosts": hosts or [PHONE_END], "as": as_}
        await anyio.to_thread.run_sync(lambda: self.tell(**order))


def run_on_network(work: Callable[[PhoneNetwork], Awaitable[None]], box: Box | None = None) -> None:
    """Run a test at this host's end of a new network; at the other end are the announcer and perhaps a box.

    Skips the test where no network can be made.
    """
    if os.geteuid() != 0 or not (shutil.which("ip") and shutil.which("unshare")):
        pytest.skip("making a network takes root and iproute2")

    def in_thread() -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.unshare(_NEW_NETWORK) != 0:
            pytest.skip(f"no network namespace can be made: {os.strerror(ctypes.get_errno())}")
        with phones_end(box) as network:
            anyio.run(work, network)

    with ThreadPoolExecutor(1) as alone:  # only this thread, and what it starts, is in the new namespace
        alone.submit(in_thread).result()


@contextlib.contextmanager
def phones_end(box: Box | None) -> Iterator[PhoneNetwork]:
    """Make the pair of ends and start the announcer at the far one."""
    into = ["nsenter", f"--net=/run/netns/pocketbuild-{box.name}"] if box else ["unshare", "-n"]
    far_end = f"far{os.getpid()}"
    announce = f"{sys.executable} {Path(__file__).with_name('announcer.py')} {PHONE_END}"
    script = (
        f"echo there && read -r _ && ip addr add {PHONE_END}/24 dev {far_end} && ip link set lo up"
        f" && ip link set {far_end} multicast on up && exec {announce}"
    )
    ip("link", "set", "lo", "up")
    made = subprocess.run(
        ["ip", "link", "add", "near0", "type", "veth", "peer", "name", far_end],
        capture_output=True,
        text=True,
    )
    if made.returncode:
        pytest.skip(f"no virtual Ethernet can be made: {made.stderr.strip()}")
    with subprocess.Popen(
        [*into, "sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as announcer:
        assert announcer.stdin
        assert announcer.stdout
        try:
            assert announcer.stdout.readline() == "there\n"
            ip("link", "set", far_end, "netns", str(announcer.pid))
            ip("addr", "add", f"{HOST_END}/24", "dev", "near0")
            ip("link", "set", "near0", "multicast", "on", "up")
            announcer.stdin.write("go\n")
            announcer.stdin.flush()
            assert announcer.stdout.readline() == "ready\n"
            yield PhoneNetwork(announcer)
        finally:
            announcer.stdin.close()


def ip(*words: str) -> None:
    """Change the network of the namespace that this thread is in."""
    subprocess.run(["ip", *words], check=True)
