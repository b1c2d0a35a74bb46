"""Makes the root of a kind of box, once, and keeps it under the digest of its recipe."""

import json
import shutil
import time
from pathlib import Path

from builder_bridge.box import adbd, layout, prefix, toolchain
from builder_bridge.box.host import (
    KEYRING,
    Progress,
    architecture,
    cache_folder,
    locked,
    mirror,
    require_host,
    run,
)
from builder_bridge.box.recipe import PACKAGES, PARTS, SUITE, Kind, digest
from builder_bridge.errors import BoxFault

_ADBD = Path("usr/lib/android-sdk/platform-tools/adbd")


def root_folder(kind: Kind) -> Path:
    """Say where the root of this kind, by the present recipe, lies or would lie."""
    return cache_folder() / "roots" / f"{kind}-{digest(kind, architecture())}"


def make_root(kind: Kind, progress: Progress) -> Path:
    """Make the root of a kind of box, or find the one made before.

    Two makers never clash: the second waits and finds the first one's. A root appears under its
    name only when it is whole. `progress` is told each step.

    Raises:
        BoxFault: what is missing on the host, or which step failed and how.
    """
    require_host()
    root = root_folder(kind)
    if root.is_dir():
        return root
    with locked(root.name, progress):
        if root.is_dir():
            return root
        partial = root.with_name(f"{root.name}.partial")
        _remove_tree(partial)
        partial.parent.mkdir(parents=True, exist_ok=True)
        started = time.monotonic()
        try:
            _make(kind, partial, progress)
        except BaseException:
            _remove_tree(partial)
            raise
        made_s = round(time.monotonic() - started, 1)
        (partial / "system/made.json").write_text(
            json.dumps({"kind": kind, "suite": SUITE, "made_s": made_s}) + "\n"
        )
        partial.rename(root)
        progress(f"Made the root of the {kind} box in {made_s} s: {root}")
    return root


def _make(kind: Kind, root: Path, progress: Progress) -> None:
    packages = PACKAGES[kind]
    archive = mirror()
    progress(f"Unpacking {len(packages)} Debian packages and what they need, from {archive}")
    run(
        [
            "mmdebstrap",
            "--quiet",
            "--variant=extract",
            f"--include={','.join(packages)}",
            f"--keyring={KEYRING}",
            '--aptopt=Acquire::Retries "5"',
            SUITE,
            root,
            archive,
        ],
        why=f"Making a Debian {SUITE} root",
    )
    progress("Laying out the device: shell, tools, users, packages")
    layout.lay_out(root)
    _compile_parts(root)
    _make_adbd_variants(root)
    if kind is Kind.AGP:
        tools = toolchain.install_toolchain(root, architecture(), progress)
        prefix.make_prefixes(root, architecture(), f"box-{digest(kind, architecture())}", tools)


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


def _remove_tree(folder: Path) -> None:
    if not folder.exists():
        return
    try:
        shutil.rmtree(folder)
    except OSError as fault:
        raise BoxFault(f"The half-made root {folder} could not be removed: {fault}.") from fault
