"""Turns the folder of an instance into a running box and waits until its adbd listens."""

import os
import shutil
import subprocess
import time
from dataclasses import replace
from pathlib import Path

from builder_bridge.box import network
from builder_bridge.box.host import run
from builder_bridge.box.process import ProcessIdentity, identify, kill
from builder_bridge.box.record import Box, Mode, write_record
from builder_bridge.errors import BoxFault

START_TIMEOUT_S = 120.0
_SPAWN_TIMEOUT_S = 60.0
_POLL_S = 0.01
_ENTER = Path(__file__).with_name("enter.sh")


def prepare_folder(folder: Path, root: Path) -> str:
    """Make the instance's folder on top of `root`; say by which way: overlay or copy."""
    link = folder / "root"
    if folder.is_dir() and (not link.exists() or link.resolve() != root.resolve()):
        shutil.rmtree(folder)
    for inner in ("upper", "work", "merged"):
        (folder / inner).mkdir(parents=True, exist_ok=True)
    if not link.is_symlink():
        link.symlink_to(root)
    if (folder / "copy").is_dir():
        return "copy"
    probe = "mount -t overlay -o lowerdir=root,upperdir=upper,workdir=work box merged"
    try:
        run(["unshare", "--mount", "sh", "-c", probe], why="Mounting an overlay", cwd=folder)
    except BoxFault:
        _copy_root(root, folder / "copy")
        return "copy"
    return "overlay"


def _copy_root(root: Path, copy: Path) -> None:
    """Copy a root where no overlay can be mounted: /data and /storage truly, the rest by hard links.

    Nobody in the box may write outside those two, so the linked files are never changed.
    """
    why = "Copying the box's root, as this host mounts no overlay"
    partial = copy.with_name("copy.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    for entry in root.iterdir():
        linked = [] if entry.name in {"data", "storage"} else ["--link"]
        run(["cp", "--archive", "--reflink=auto", *linked, entry, partial], why=why)
    partial.rename(copy)


def boot(box: Box, way: str, timeout_s: float = START_TIMEOUT_S) -> Box:
    """Start the processes of `box` in its prepared folder and give it with its init.

    Raises:
        BoxFault: when its adbd does not listen in time; nothing of it runs on then.
    """
    _write_boot_files(box)
    (box.folder / "pid").unlink(missing_ok=True)
    with (box.folder / "log").open("wb") as log:
        subprocess.run(
            _command(box, way),
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
        )
    started = replace(box, init=_await_init(box))
    write_record(started)
    try:
        await_listening(started, timeout_s)
    except BoxFault:
        halt(started)
        raise
    return started


def halt(box: Box) -> None:
    """End a box's init, and with it all in the box, and take down its network."""
    kill(box.init)
    if box.mtu_1500:
        network.disconnect_namespace(box.name)


def _write_boot_files(box: Box) -> None:
    listen = f"tcp:{box.port}" if box.mtu_1500 else f"tcp:localhost:{box.port}"
    properties = {
        "service.adb.listen_addrs": listen,
        "ro.product.name": "boxphone",
        "ro.product.model": "Box_Phone",
        "ro.product.device": "box",
        "ro.product.manufacturer": "Pocketbuild",
        "ro.product.cpu.abi": {"x86_64": "x86_64", "aarch64": "arm64-v8a"}[os.uname().machine],
        "ro.build.version.sdk": "34",
        "ro.build.version.release": "14",
        "ro.serialno": box.name,
        "sys.boot_completed": "1",
        "persist.sys.timezone": "GMT",
    }
    text = "".join(f"{key}={value}\n" for key, value in properties.items())
    (box.folder / "build.prop").write_text(text)
    (box.folder / "boot_id").write_text(box.boot_id + "\n")


def _command(box: Box, way: str) -> list[str]:
    command = ["setsid", "--fork"]
    if box.mtu_1500:
        command += ["nsenter", f"--net=/run/netns/pocketbuild-{box.name}"]
    command += ["unshare", "--mount", "--pid", "--ipc", "--uts", "--fork", "sh", str(_ENTER)]
    adbd = "/system/bin/adbd" + ("" if box.mode is Mode.PLAIN else f".{box.mode}")
    return [*command, str(box.folder), way, adbd, *(["kill-children"] if box.kill_children else [])]


def _await_init(box: Box) -> ProcessIdentity:
    deadline = time.monotonic() + _SPAWN_TIMEOUT_S
    pid_file = box.folder / "pid"
    while time.monotonic() < deadline:
        if pid_file.exists():
            init = identify(int(pid_file.read_text()))
            if init is not None:
                return init
            break
        time.sleep(_POLL_S)
    raise BoxFault(f"Box {box.name} did not start: {_log_tail(box)}")


def await_listening(box: Box, timeout_s: float = START_TIMEOUT_S) -> None:
    """Wait until an adbd of this box listens on its port.

    Raises:
        BoxFault: when the box ends or the time is over before that.
    """
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline and box.is_running:
        pid = box.adbd_pid
        if pid is not None and network.listens([pid], box.port):
            return
        time.sleep(_POLL_S)
    raise BoxFault(f"The adbd of box {box.name} does not listen on {box.serial}: {_log_tail(box)}")


def _log_tail(box: Box) -> str:
    text = (box.folder / "log").read_text(errors="replace").strip()
    return f"its log {box.folder / 'log'} ends with: {text[-800:]}" if text else "its log is empty"
