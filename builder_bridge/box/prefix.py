"""Lays the builder prefix into a root: twice reachable, once on disk.

The same prefix is there for both routes: in the debuggable builder's files, owned by its user, and
under /data/local/tmp, owned by the shell. Each is a folder of small scripts and links to the
toolchain in /usr.
"""

import json
import os
from pathlib import Path

from builder_bridge.box.layout import SHELL_UID
from builder_bridge.box.recipe import BUILDER_PACKAGE, BUILDER_UID, PARTS
from builder_bridge.box.toolchain import SDK, Toolchain

RUN_AS_PREFIX = f"/data/data/{BUILDER_PACKAGE}/files/usr"
SHELL_DIR_PREFIX = "/data/local/tmp/pocketbuild/usr"

_ABIS = {"amd64": "x86_64", "arm64": "arm64-v8a"}
_JAVA_TOOLS = ("java", "javac", "jar", "keytool")
_DEVICE_TOOLS = ("aapt2", "sha256sum", "unzip", "zip", "zipalign")


def make_prefixes(root: Path, architecture: str, identity: str, toolchain: Toolchain) -> None:
    """Make both copies of the prefix; `identity` becomes its id in `etc/prefix.json`."""
    contract = json.dumps(_contract(toolchain, architecture, identity), indent=1) + "\n"
    for prefix, uid in ((RUN_AS_PREFIX, BUILDER_UID), (SHELL_DIR_PREFIX, SHELL_UID)):
        _make_prefix(root, prefix, uid, toolchain, contract)


def _make_prefix(root: Path, prefix: str, uid: int, toolchain: Toolchain, contract: str) -> None:
    folder = root / prefix.removeprefix("/")
    for inner in ("bin", "etc", "lib", "share", "tmp", "../home"):
        (folder / inner).mkdir(parents=True, exist_ok=True)
    for source in sorted(path for path in (PARTS / "prefix").rglob("*") if path.is_file()):
        target = folder / source.relative_to(PARTS / "prefix")
        text = source.read_text().replace("@PREFIX@", prefix).replace("@BUILD_TOOLS@", toolchain.build_tools)
        target.write_text(text)
        target.chmod(0o755 if target.parent.name == "bin" else 0o644)
    links = {
        "lib/jvm": toolchain.java_home,
        "lib/r8.jar": f"{SDK}/build-tools/{toolchain.build_tools}/lib/r8.jar",
        "lib/apksigner.jar": "/usr/share/java/apksigner.jar",
        "share/android-sdk": SDK,
        "share/maven-repo": "/usr/share/maven-repo",
    }
    links |= {f"bin/{tool}": f"{toolchain.java_home}/bin/{tool}" for tool in _JAVA_TOOLS}
    links |= {f"bin/{tool}": f"/usr/bin/{tool}" for tool in _DEVICE_TOOLS}
    for name, target_path in links.items():
        (folder / name).symlink_to(target_path)
    (folder / "etc/prefix.json").write_text(contract)
    for path in [folder.parent, *folder.parent.rglob("*")]:
        os.chown(path, uid, uid, follow_symlinks=False)


def _contract(toolchain: Toolchain, architecture: str, identity: str) -> dict[str, object]:
    return {
        "contract": 1,
        "id": identity,
        "abi": _ABIS[architecture],
        "jdk": toolchain.jdk,
        "gradle": toolchain.gradle,
        "agp": [toolchain.agp],
        "kotlin": [],
        "platforms": list(toolchain.platforms),
        "build_tools": [toolchain.build_tools],
        "aapt2": toolchain.aapt2,
        "d8": toolchain.d8,
        "apksigner": toolchain.apksigner,
        "ndk": None,
        "cmake": None,
        "node": None,
        "git": None,
    }
