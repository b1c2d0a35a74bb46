"""Running boxes: each a made root with a writable layer, processes, network and boot id of its own."""

import re
import shutil
import uuid
from pathlib import Path

from builder_bridge.box import network
from builder_bridge.box.boot import START_TIMEOUT_S, await_listening, boot, halt, prepare_folder
from builder_bridge.box.host import Progress, cache_folder, locked, ordinary_umask, require_host
from builder_bridge.box.process import ProcessIdentity, identify, kill
from builder_bridge.box.recipe import Kind
from builder_bridge.box.record import DEFAULT_NAME, Box, Mode, boxes, find, folder_of
from builder_bridge.box.root import make_root
from builder_bridge.errors import BoxFault


def start(
    kind: Kind,
    name: str = DEFAULT_NAME,
    *,
    port: int | None = None,
    mode: Mode = Mode.PLAIN,
    kill_children: bool = False,
    mtu_1500: bool = False,
    timeout_s: float = START_TIMEOUT_S,
    progress: Progress = lambda _: None,
) -> Box:
    """Start a box, making its root first where need be, and wait until its adbd listens.

    A running box of this name with these options is given as it is. A stopped one starts with the
    files it had, unless its root's recipe has changed since. `port` is one of this host's loopback
    (any free one by default); with `mtu_1500` the box sits in its own network namespace behind an
    Ethernet link of that MTU, and `port` (5555 by default) is one of its own address. With
    `kill_children` the end of adbd ends all that it started, as on a phone. `timeout_s` is for the
    start alone.

    Raises:
        BoxFault: the host lacks something, the port is taken, or the box did not come up.
    """
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,31}", name):
        raise BoxFault(f"{name!r} cannot name a box: up to 32 of a-z, 0-9 and -, please.")
    require_host(network_namespace=mtu_1500)
    root = make_root(kind, progress)
    if mode is not Mode.PLAIN and not (root / f"system/bin/adbd.{mode}").exists():
        raise BoxFault(f"There is no adbd for {mode} mode on this architecture; only amd64 has it.")
    with locked(f"box-{name}", progress), ordinary_umask():
        found = find(name)
        if found is not None and found.is_running:
            wanted = (kind, mode, kill_children, mtu_1500, port or found.port)
            if wanted != (found.kind, found.mode, found.kill_children, found.mtu_1500, found.port):
                raise BoxFault(
                    f"Box {name} runs already, as {found.kind} in {found.mode} mode on {found.serial}.",
                    hint=f"Stop it with `pocketbuild box down --name {name}`, or take another name.",
                )
            return found
        folder = folder_of(name)
        way = prepare_folder(folder, root)
        progress(f"Starting box {name}")
        link = network.connect_namespace(name) if mtu_1500 else None
        box = Box(
            name=name,
            kind=kind,
            mode=mode,
            host=link.box_address if link else "127.0.0.1",
            port=_choose_port(port, found, in_namespace=mtu_1500),
            kill_children=kill_children,
            mtu_1500=mtu_1500,
            boot_id=str(uuid.uuid4()),
            init=ProcessIdentity(0, 0),
            folder=folder,
        )
        return boot(box, way, timeout_s)


def stop(name: str = DEFAULT_NAME) -> bool:
    """End a box and all in it; its files stay. Says whether it was running."""
    with locked(f"box-{name}"):
        box = find(name)
        if box is None:
            return False
        was_running = box.is_running
        halt(box)
        return was_running


def remove(name: str = DEFAULT_NAME) -> bool:
    """End a box and remove its files; its root stays for others. Says whether there was one."""
    with locked(f"box-{name}"):
        box = find(name)
        if box is not None:
            halt(box)
        folder = folder_of(name)
        existed = folder.is_dir()
        if existed:
            shutil.rmtree(folder)
        return existed


def remove_everything() -> Path:
    """End and remove all boxes, and all that boxes are made of; gives the folder that was removed."""
    for box in boxes():
        remove(box.name)
    folder = cache_folder()
    shutil.rmtree(folder)
    return folder


def reboot(name: str = DEFAULT_NAME) -> Box:
    """Stop a box and start it again with the same options, port and files; the boot id is new."""
    box = find(name)
    if box is None:
        raise BoxFault(f"There is no box {name} to start again.")
    stop(name)
    return start(
        box.kind,
        name,
        port=box.port,
        mode=box.mode,
        kill_children=box.kill_children,
        mtu_1500=box.mtu_1500,
    )


def restart_adbd(name: str = DEFAULT_NAME) -> None:
    """Kill a box's adbd and wait until init's next one listens; the boot stays the same."""
    box = find(name)
    pid = box.adbd_pid if box is not None else None
    if box is None or pid is None:
        raise BoxFault(f"No adbd runs in box {name}.")
    process = identify(pid)
    if process is not None:
        kill(process)
    await_listening(box)


def _choose_port(port: int | None, before: Box | None, *, in_namespace: bool) -> int:
    if in_namespace:
        return port or 5555
    if port is None:
        if before is not None and not before.mtu_1500 and network.is_free(before.port):
            return before.port
        return network.free_loopback_port()
    if not network.is_free(port):
        raise BoxFault(
            f"Port {port} of 127.0.0.1 is taken by another program, so the box cannot listen there.",
            hint="Take another with --port, or none: then a free one is chosen.",
        )
    return port
