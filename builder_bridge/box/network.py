"""Where a box listens: ports of this host's loopback, or a network namespace of its own."""

import hashlib
import ipaddress
import json
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from builder_bridge.box.host import locked, run
from builder_bridge.errors import BoxFault

_POOL = ipaddress.IPv4Network("10.213.0.0/16")
_LISTENING = "0A"


@dataclass(frozen=True, slots=True)
class Link:
    """A pair of virtual Ethernet ends with an MTU of 1500 between this host and a box's namespace."""

    namespace: str
    host_end: str
    host_address: str
    box_address: str


def free_loopback_port() -> int:
    """Give a TCP port of 127.0.0.1 that nobody holds now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def is_free(port: int) -> bool:
    """Say whether 127.0.0.1:`port` could be listened on now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def connect_namespace(box_name: str) -> Link:
    """Make a network namespace with a link of MTU 1500 to this host, on a free /30 network."""
    namespace, host_end = _namespace(box_name), _host_end(box_name)
    why = f"Making the network of box {box_name}"
    disconnect_namespace(box_name)
    with locked("network"):
        network = next(_free_networks(), None)
        if network is None:
            raise BoxFault(f"{why}: every network of {_POOL} is in use on this host.")
        host_address, box_address = (str(address) for address in network.hosts())
        ip = ["ip", "-netns", namespace]
        for command in (
            ["ip", "netns", "add", namespace],
            [*f"ip link add {host_end} mtu 1500 type veth peer name eth0 mtu 1500 netns".split(), namespace],
            ["ip", "addr", "add", f"{host_address}/30", "dev", host_end],
            ["ip", "link", "set", host_end, "up"],
            [*ip, "addr", "add", f"{box_address}/30", "dev", "eth0"],
            [*ip, "link", "set", "eth0", "up"],
            [*ip, "link", "set", "lo", "up"],
        ):
            run(command, why=why)
    return Link(namespace, host_end, host_address, box_address)


def disconnect_namespace(box_name: str) -> None:
    """Remove the namespace of a box and its link; none is fine.

    The link is removed by its own name, and first: the kernel ends a namespace in its own time, and a
    link that waits for that holds its name against the next one of this box.
    """
    namespace, host_end = _namespace(box_name), _host_end(box_name)
    if Path("/sys/class/net", host_end).exists():
        try:
            run(["ip", "link", "del", host_end], why=f"Removing the link {host_end} of box {box_name}")
        except BoxFault:
            if Path("/sys/class/net", host_end).exists():
                raise
    if Path("/run/netns", namespace).exists():
        run(["ip", "netns", "del", namespace], why=f"Removing the network namespace {namespace}")


def _namespace(box_name: str) -> str:
    return f"pocketbuild-{box_name}"


def _host_end(box_name: str) -> str:
    return f"pb{hashlib.sha256(box_name.encode()).hexdigest()[:8]}"


def listens(pids: list[int], port: int) -> bool:
    """Say whether one of these processes itself listens on TCP `port` in its network namespace."""
    for pid in pids:
        inodes = set(_listening_inodes(pid, port))
        if inodes and inodes & set(_socket_inodes(pid)):
            return True
    return False


def _free_networks() -> Iterator[ipaddress.IPv4Network]:
    taken = []
    for what in ("addr", "route"):
        for entry in json.loads(
            run(["ip", "-json", "-4", what], why="Looking at this host's networks") or "[]"
        ):
            found = [entry["dst"]] if "dst" in entry else []
            found += [f"{info['local']}/{info['prefixlen']}" for info in entry.get("addr_info", [])]
            taken += [ipaddress.IPv4Network(text, strict=False) for text in found if text != "default"]
    for network in _POOL.subnets(new_prefix=30):
        if not any(network.overlaps(other) for other in taken):
            yield network


def _listening_inodes(pid: int, port: int) -> Iterator[str]:
    for table in ("tcp", "tcp6"):
        try:
            lines = Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if fields[3] == _LISTENING and int(fields[1].rpartition(":")[2], 16) == port:
                yield fields[9]


def _socket_inodes(pid: int) -> Iterator[str]:
    try:
        for link in Path(f"/proc/{pid}/fd").iterdir():
            target = str(link.readlink())
            if target.startswith("socket:["):
                yield target[8:-1]
    except OSError:
        return
