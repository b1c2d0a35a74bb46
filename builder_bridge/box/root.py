"""Makes the root of a kind of box, once, and keeps it under the digest of its recipe."""

import json
import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from builder_bridge.box import adbd, layout, prefix, toolchain
from builder_bridge.box.downloads import fetch_packages, fetch_r8
from builder_bridge.box.host import (
    KEYRING,
    Progress,
    architecture,
    cache_folder,
    locked,
    mirror,
    ordinary_umask,
    require_host,
    run,
)
from builder_bridge.box.process import identify
from builder_bridge.box.recipe import PACKAGES, PARTS, SUITE, Kind, digest
from builder_bridge.errors import BoxFault

_RECORD = Path("system/made.json")
_UNUSED_S = 7 * 24 * 3600
_ADBD = Path("usr/lib/android-sdk/platform-tools/adbd")


def root_folder(kind: Kind) -> Path:
    """Say where the root of this kind, by the present recipe, lies or would lie."""
    return cache_folder() / "roots" / f"{kind}-{digest(kind, architecture())}"


def make_root(kind: Kind, progress: Progress) -> Path:
    """Make the root of a kind of box, or find the one made before.

    Two makers never clash: the second waits and finds the first one's. A root appears under its
    name only when it is whole. `progress` is told each step, from more than one thread.

    Raises:
        BoxFault: what is missing on the host, or which step failed and how.
    """
    require_host()
    root = root_folder(kind)
    if not root.is_dir():
        with locked(root.name, progress), ordinary_umask():
            if not root.is_dir():
                _make_whole(kind, root, progress)
    os.utime(root / _RECORD)
    return root


def _make_whole(kind: Kind, root: Path, progress: Progress) -> None:
    root.parent.mkdir(exist_ok=True)
    _remove_what_killed_makers_left(root.parent)
    partial = root.with_name(f"{root.name}.{os.getpid()}.partial")
    partial.mkdir()
    started = time.monotonic()
    try:
        _make(kind, partial / "root", partial / "downloads", progress)
        made_s = round(time.monotonic() - started, 1)
        record = json.dumps({"kind": kind, "suite": SUITE, "made_s": made_s})
        (partial / "root" / _RECORD).write_text(record + "\n")
        (partial / "root").rename(root)
    finally:
        _remove_tree(partial)
    progress(f"Made the root of the {kind} box in {made_s} s: {root}")
    _remove_unused_roots(root.parent)


def _make(kind: Kind, root: Path, downloads: Path, progress: Progress) -> None:
    if kind is Kind.TINY:
        _make_device(kind, root, progress)
        return
    with ThreadPoolExecutor() as background:
        debs = background.submit(fetch_packages, downloads, architecture(), progress)
        r8 = background.submit(fetch_r8, downloads, progress)
        _make_device(kind, root, progress)
        progress("Mending the Android Gradle plugin, making dx out of D8, laying out the prefix")
        tools = toolchain.install_toolchain(root, architecture(), debs.result(), r8.result())
    prefix.make_prefixes(root, architecture(), f"box-{digest(kind, architecture())}", tools)


def _make_device(kind: Kind, root: Path, progress: Progress) -> None:
    packages = PACKAGES[kind]
    archive = mirror()
    progress(f"Unpacking {len(packages)} Debian packages and what they need, from {archive}")
    options = ["--quiet", "--variant=extract", f"--keyring={KEYRING}", '--aptopt=Acquire::Retries "5"']
    run(
        ["mmdebstrap", *options, f"--include={','.join(packages)}", SUITE, root, archive],
        why=f"Making a Debian {SUITE} root",
    )
    layout.lay_out(root)
    _compile_parts(root)
    _make_adbd_variants(root)


def _compile_parts(root: Path) -> None:
    tools = root / "system/bin"
    why = "Compiling the box's own parts"
    run(["gcc", "-O1", "-static", "-o", tools / "init", PARTS / "init.c"], why=why)
    run(["gcc", "-O1", "-static", "-o", tools / "run-as", PARTS / "run_as.c"], why=why)
    library = root / "system/lib64/libboxprops.so"
    run(["g++", "-O1", "-shared", "-fPIC", "-o", library, PARTS / "boxprops.cpp"], why=why)
    shutil.chown(tools / "run-as", 0, 2000)
    (tools / "run-as").chmod(0o4750)


def _make_adbd_variants(root: Path) -> None:
    program = (root / _ADBD).read_bytes()
    variants = {"adbd": program}
    if architecture() == "amd64":
        variants["adbd.auth"] = adbd.with_authorization(program)
        variants["adbd.tls"] = adbd.with_tls(program)
    for name, content in variants.items():
        file = root / "system/bin" / name
        file.write_bytes(content)
        file.chmod(0o755)


def _remove_what_killed_makers_left(folder: Path) -> None:
    """Remove the folders of dead makers; one's orphan may still write there, so nothing is reused."""
    for partial in folder.glob("*.partial"):
        pid = partial.suffixes[-2].removeprefix(".")
        if identify(int(pid)) is None:
            shutil.rmtree(partial, ignore_errors=True)


def _remove_unused_roots(folder: Path) -> None:
    """Remove roots of older recipes that no box stands on and that nobody asked for in a week."""
    in_use = {link.resolve() for link in (cache_folder() / "instances").glob("*/root")}
    for root in folder.iterdir():
        if root.suffix == ".partial":
            continue
        record = root / _RECORD
        used_s = (record if record.exists() else root).stat().st_mtime
        if root not in in_use and time.time() - used_s > _UNUSED_S:
            _remove_tree(root)


def _remove_tree(folder: Path) -> None:
    if not folder.exists():
        return
    try:
        shutil.rmtree(folder)
    except OSError as fault:
        raise BoxFault(f"The folder {folder} could not be removed: {fault}.") from fault
