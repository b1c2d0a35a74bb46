"""Lays the folders, users, packages and tools of an Android device over a Debian root."""

import os
import shutil
import stat
from pathlib import Path

from builder_bridge.box.host import run
from builder_bridge.box.recipe import (
    APPLETS,
    BUILDER_PACKAGE,
    BUILDER_UID,
    BUSYBOX_APPLETS,
    PARTS,
    RELEASE_PACKAGE,
    RELEASE_UID,
)

SYSTEM_UID = 1000
SHELL_UID = 2000
_PACKAGES = {BUILDER_PACKAGE: (BUILDER_UID, True), RELEASE_PACKAGE: (RELEASE_UID, False)}
_ROOT_FOLDERS = ("proc", "dev", "system/bin", "system/lib64", "vendor/bin", "etc")
_NOT_ON_A_PHONE = ("usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/icons", "var/cache/apt")


def lay_out(root: Path) -> None:
    """Turn a freshly unpacked Debian root into the file system of a device."""
    for unwanted in _NOT_ON_A_PHONE:
        shutil.rmtree(root / unwanted, ignore_errors=True)
    for folder in _ROOT_FOLDERS:
        (root / folder).mkdir(parents=True, exist_ok=True)
    for link in ("lib", "lib64", "sbin"):
        _link(root / link, f"usr/{link}")
    _link(root / "bin", "system/bin")
    _link(root / "sdcard", "storage/emulated/0")
    make_folder(root / "tmp", 0, 0o755)  # Android has none that a user may write to
    _write_users(root)
    _make_data(root)
    _install_tools(root)


def make_folder(path: Path, uid: int, mode: int) -> None:
    """Make a folder with exactly this owner, group and mode."""
    path.mkdir(parents=True, exist_ok=True)
    os.chown(path, uid, uid)
    path.chmod(mode)


def _link(path: Path, target: str) -> None:
    if path.is_symlink() or not path.exists():
        path.unlink(missing_ok=True)
        path.symlink_to(target)


def _write_users(root: Path) -> None:
    users = {"root": 0, "system": SYSTEM_UID, "shell": SHELL_UID}
    users |= {f"u0_a{uid - 10000}": uid for uid, _ in _PACKAGES.values()}
    passwd = [f"{name}:x:{uid}:{uid}::/:/system/bin/sh" for name, uid in users.items()]
    groups = {"input": 1004, "log": 1007, "adb": 1011, "sdcard_rw": 1015, "sdcard_r": 1028}
    groups |= {"ext_data_rw": 1078, "ext_obb_rw": 1079, "net_bt_admin": 3001, "net_bt": 3002, "inet": 3003}
    groups |= {"net_bw_stats": 3006, "readproc": 3009, "uhid": 3011}
    groups |= {f"{name}_shared": uid - 10000 + 50000 for name, uid in users.items() if uid >= 10000}
    lines = [f"{name}:x:{gid}:" for name, gid in (users | groups).items()]
    (root / "etc/passwd").write_text("\n".join(passwd) + "\n")
    (root / "etc/group").write_text("\n".join(lines) + "\n")


def _make_data(root: Path) -> None:
    data = root / "data"
    for folder in (data, data / "data", data / "user", data / "user/0", data / "app", data / "property"):
        make_folder(folder, SYSTEM_UID, 0o771)
    make_folder(data / "system", SYSTEM_UID, 0o775)
    make_folder(data / "misc/adb", SYSTEM_UID, 0o755)
    make_folder(data / "local", 0, 0o751)
    make_folder(data / "local/tmp", SHELL_UID, 0o771)
    make_folder(root / "storage/emulated/0", SHELL_UID, 0o777)
    (data / "property/box.prop").write_text("")
    (data / "system/box.conf").write_text("")
    (root / "system/build.prop").write_text("")
    packages = []
    for package, (uid, debuggable) in _PACKAGES.items():
        make_folder(data / "data" / package, uid, 0o700)
        for inner in ("files", "cache"):
            make_folder(data / "data" / package / inner, uid, 0o771)
        seinfo = "default:targetSdkVersion=28"
        packages.append(f"{package} {uid} {int(debuggable)} /data/user/0/{package} {seinfo} 3003 0 1")
    (data / "system/packages.list").write_text("\n".join(packages) + "\n")


def _install_tools(root: Path) -> None:
    tools = root / "system/bin"
    for source in sorted((PARTS / "bin").iterdir()):
        shutil.copyfile(source, tools / source.name)
        (tools / source.name).chmod(0o755)
    _link(tools / "sh", "/usr/bin/mksh")
    for name in ("toybox", "gzip", "gunzip", "zcat", "unzip", "zipinfo"):
        _link(tools / name, f"/usr/bin/{name}")
    applets = run(["chroot", root, "/usr/bin/toybox"], why="Asking toybox what it has").split()
    for name in sorted(set(APPLETS.read_text().split()) & set(applets)):
        if not (tools / name).exists():
            (tools / name).symlink_to("/usr/bin/toybox")
    for name in BUSYBOX_APPLETS:
        _link(tools / name, "/usr/bin/busybox")
    for file in (root / "usr").rglob("*"):
        if not file.is_symlink() and file.is_file() and file.stat().st_mode & (stat.S_ISUID | stat.S_ISGID):
            file.chmod(file.stat().st_mode & 0o777)
