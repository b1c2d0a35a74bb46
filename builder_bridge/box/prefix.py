"""Lays the builder prefix into a root: the real Android toolchain, twice reachable, once on disk.

The same prefix is there for both routes: in the debuggable builder's files, owned by its user, and
under /data/local/tmp, owned by the shell. Each is a folder of small scripts and links into /usr.
"""

import json
import os
import re
import shutil
from pathlib import Path

from builder_bridge.box.aapt_mend import mend_archive
from builder_bridge.box.downloads import R8_VERSION, fetch_r8, unpack_packages_alone
from builder_bridge.box.host import Progress, run
from builder_bridge.box.layout import SHELL_UID
from builder_bridge.box.recipe import BUILDER_PACKAGE, BUILDER_UID, PARTS

RUN_AS_PREFIX = f"/data/data/{BUILDER_PACKAGE}/files/usr"
SHELL_DIR_PREFIX = "/data/local/tmp/pocketbuild/usr"

_SDK = Path("usr/lib/android-sdk")
_BUILD_TOOLS = _SDK / "build-tools/debian"
_BUILDER_ARCHIVE = Path("usr/share/java/com.android.tools.build.builder-2.2.2.jar")
_ABIS = {"amd64": "x86_64", "arm64": "arm64-v8a"}


def install_builder(root: Path, architecture: str, identity: str, progress: Progress) -> None:
    """Complete the toolchain in `root`, mend it, and make both copies of the prefix.

    `identity` becomes the prefix's id in its contract, `etc/prefix.json`.
    """
    unpack_packages_alone(root, architecture, progress)
    r8 = fetch_r8(progress)
    progress("Mending the Android Gradle plugin and laying out the builder prefix")
    java_home = f"/usr/lib/jvm/java-21-openjdk-{architecture}"
    shutil.copyfile(r8, root / _BUILD_TOOLS / "r8.jar")
    (root / _SDK / "licenses").mkdir(exist_ok=True)
    archive = root / _BUILDER_ARCHIVE
    archive.write_bytes(mend_archive(archive.read_bytes()))
    _compile_dx(root, java_home)
    contract = _contract(root, java_home, architecture, identity)
    for prefix, uid in ((RUN_AS_PREFIX, BUILDER_UID), (SHELL_DIR_PREFIX, SHELL_UID)):
        _make_prefix(root, prefix, uid, java_home, contract)


def _compile_dx(root: Path, java_home: str) -> None:
    """Make dx.jar, which is D8 under dx's command line, with the JDK in the root itself."""
    source = root / "tmp/dx"
    shutil.copytree(PARTS / "dx", source)
    (source / "manifest").write_text("Class-Path: r8.jar\nMain-Class: com.android.dx.command.Main\n")
    library = root / _BUILD_TOOLS / "lib"
    library.mkdir(exist_ok=True)
    (root / _BUILD_TOOLS / "r8.jar").rename(library / "r8.jar")
    jar = f"/{_BUILD_TOOLS}/lib/dx.jar"
    main = "com/android/dx/command/Main"
    why = "Compiling the dx that is D8"
    _run_inside(
        root,
        [
            f"{java_home}/bin/javac",
            "--release",
            "17",
            "-cp",
            f"/{_BUILD_TOOLS}/lib/r8.jar",
            "-d",
            "/tmp/dx",
            f"/tmp/dx/{main}.java",
        ],
        why,
    )
    _run_inside(
        root, [f"{java_home}/bin/jar", "cfm", jar, "/tmp/dx/manifest", "-C", "/tmp/dx", f"{main}.class"], why
    )
    script = root / _BUILD_TOOLS / "dx"
    script.write_text(f'#!/system/bin/sh\nexec {java_home}/bin/java -jar {jar} "$@"\n')
    script.chmod(0o755)
    shutil.rmtree(source)


def _run_inside(root: Path, command: list[str], why: str) -> str:
    """Run a program of the root in it, with a /proc, without which no Java starts."""
    script = 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"'
    return run(["unshare", "--mount", "--pid", "--fork", "sh", "-c", script, root, *command], why=why)


def _make_prefix(root: Path, prefix: str, uid: int, java_home: str, contract: dict[str, object]) -> None:
    folder = root / prefix.removeprefix("/")
    for inner in ("bin", "etc", "lib", "share", "tmp", "../home"):
        (folder / inner).mkdir(parents=True, exist_ok=True)
    for source in sorted((PARTS / "prefix").rglob("*")):
        if source.is_file():
            target = folder / source.relative_to(PARTS / "prefix")
            target.write_text(source.read_text().replace("@PREFIX@", prefix))
            target.chmod(0o755 if target.parent.name == "bin" else 0o644)
    links = {
        "lib/jvm": java_home,
        "lib/r8.jar": f"/{_BUILD_TOOLS}/lib/r8.jar",
        "lib/apksigner.jar": "/usr/share/java/apksigner.jar",
        "share/android-sdk": f"/{_SDK}",
        "share/maven-repo": "/usr/share/maven-repo",
    }
    links |= {f"bin/{tool}": f"{java_home}/bin/{tool}" for tool in ("java", "javac", "jar", "keytool")}
    links |= {
        f"bin/{tool}": f"/usr/bin/{tool}" for tool in ("aapt2", "zipalign", "unzip", "zip", "sha256sum")
    }
    for name, target_path in links.items():
        (folder / name).symlink_to(target_path)
    (folder / "etc/prefix.json").write_text(json.dumps(contract, indent=1) + "\n")
    owned = folder.parent
    for path in [owned, *owned.rglob("*")]:
        os.chown(path, uid, uid, follow_symlinks=False)


def _contract(root: Path, java_home: str, architecture: str, identity: str) -> dict[str, object]:
    """Read from what was installed what this prefix can build with."""
    java = root / "usr/share/java"
    release = (root / java_home.removeprefix("/") / "release").read_text()
    properties = (root / _BUILD_TOOLS / "source.properties").read_text()
    platforms = (path.name.removeprefix("android-") for path in (root / _SDK / "platforms").iterdir())
    return {
        "contract": 1,
        "id": identity,
        "abi": _ABIS[architecture],
        "jdk": _found(r'JAVA_VERSION="([^"]+)"', release),
        "gradle": _version_of(java, "gradle-core-4*.jar"),
        "agp": [_version_of(java, "com.android.tools.build.gradle-core-*.jar")],
        "kotlin": [],
        "platforms": sorted(int(platform) for platform in platforms),
        "build_tools": [_found(r"Pkg\.Revision=(\S+)", properties)],
        "aapt2": _found(r"(\d[\d.]*\S*)", _run_inside(root, ["/usr/bin/aapt2", "version"], "Asking aapt2")),
        "d8": R8_VERSION,
        "apksigner": _version_of(java, "apksigner-*.jar"),
        "ndk": None,
        "cmake": None,
        "node": None,
        "git": None,
    }


def _version_of(folder: Path, pattern: str) -> str:
    names = sorted(path.stem for path in folder.glob(pattern) if not path.is_symlink())
    return _found(r"-(\d[\w.]*)$", names[-1] if names else pattern)


def _found(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    return match.group(1) if match else "unknown"
