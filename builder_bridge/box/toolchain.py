"""Completes the Android toolchain in a root: mends the plugin, makes dx out of D8, lays out the SDK."""

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from builder_bridge.box.aapt_mend import mend_archive
from builder_bridge.box.downloads import R8_VERSION
from builder_bridge.box.host import run
from builder_bridge.box.recipe import PARTS
from builder_bridge.errors import BoxFault

OWN_FOLDER = "/usr/lib/pocketbuild"
SDK = f"{OWN_FOLDER}/android-sdk"

_DEBIAN_SDK = Path("usr/lib/android-sdk")
_BUILDER_ARCHIVE = Path("usr/share/java/com.android.tools.build.builder-2.2.2.jar")
_JAVA_SOURCES = PARTS / "java"
_DX_CLASS = "com/android/dx/command/Main"
_HOOK_CLASS = "org/debian/gradle/plugin/MavenResolverHook"


@dataclass(frozen=True, slots=True)
class Toolchain:
    """The versions found in a root; `java_home` is a path inside it."""

    java_home: str
    jdk: str
    gradle: str
    agp: str
    build_tools: str
    aapt2: str
    d8: str
    apksigner: str
    platforms: tuple[int, ...]


def install_toolchain(root: Path, architecture: str, debs: list[Path], r8: Path) -> Toolchain:
    """Add to `root` what none of its packages has, and make all of it work together.

    `debs` are packages to unpack without what they depend on, `r8` is R8's archive.

    Raises:
        BoxFault: where something in the root is not what the mends were written for.
    """
    for deb in debs:
        run(["dpkg-deb", "--extract", deb, root], why=f"Unpacking {deb.name}")
    archive = root / _BUILDER_ARCHIVE
    archive.write_bytes(mend_archive(archive.read_bytes()))
    toolchain = _read_versions(root, f"/usr/lib/jvm/java-21-openjdk-{architecture}")
    build_tools = _lay_out_sdk(root, toolchain.build_tools)
    shutil.copyfile(r8, build_tools / "lib/r8.jar")
    _compile_java(root, toolchain, build_tools)
    return toolchain


def _lay_out_sdk(root: Path, version: str) -> Path:
    """Make an SDK of links to Debian's, without its package.xml files, which this plugin cannot read."""
    own, debian = root / SDK.removeprefix("/"), root / _DEBIAN_SDK
    build_tools = own / "build-tools" / version
    folders = [(debian / "build-tools/debian", build_tools)]
    folders += [(debian / name, own / name) for name in ("platform-tools", "tools")]
    folders += [
        (platform, own / "platforms" / platform.name) for platform in (debian / "platforms").iterdir()
    ]
    for source, target in folders:
        target.mkdir(parents=True)
        for entry in source.iterdir():
            if entry.name != "package.xml":
                (target / entry.name).symlink_to(f"/{entry.relative_to(root)}")
    (own / "licenses").mkdir()
    (build_tools / "lib").mkdir()
    return build_tools


def _compile_java(root: Path, toolchain: Toolchain, build_tools: Path) -> None:
    """Compile the box's two Java classes with the JDK of the root itself."""
    work = root / OWN_FOLDER.removeprefix("/") / "work"
    shutil.copytree(_JAVA_SOURCES, work)
    (work / "manifest").write_text(f"Class-Path: r8.jar\nMain-Class: {_DX_CLASS.replace('/', '.')}\n")
    inside, tools = f"{OWN_FOLDER}/work", f"/{build_tools.relative_to(root)}"
    binaries = f"{toolchain.java_home}/bin"
    class_path = f"{tools}/lib/r8.jar:/usr/share/java/maven-repo-helper.jar"
    sources = [f"{inside}/{name}.java" for name in (_DX_CLASS, _HOOK_CLASS)]
    for command in (
        [f"{binaries}/javac", "--release", "17", "-cp", class_path, "-d", inside, *sources],
        [
            f"{binaries}/jar",
            "cfm",
            f"{tools}/lib/dx.jar",
            f"{inside}/manifest",
            "-C",
            inside,
            f"{_DX_CLASS}.class",
        ],
        [f"{binaries}/jar", "cf", f"{OWN_FOLDER}/resolver-hook.jar", "-C", inside, f"{_HOOK_CLASS}.class"],
    ):
        _run_inside(root, command, "Compiling the box's Java parts")
    shutil.rmtree(work)
    script = build_tools / "dx"
    script.write_text(f'#!/system/bin/sh\nexec {binaries}/java -jar {tools}/lib/dx.jar "$@"\n')
    script.chmod(0o755)


def _run_inside(root: Path, command: list[str], why: str) -> str:
    """Run a program of the root in it, with a /proc, without which no Java starts."""
    script = 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@" 2>&1'
    return run(["unshare", "--mount", "--pid", "--fork", "sh", "-c", script, root, *command], why=why)


def _read_versions(root: Path, java_home: str) -> Toolchain:
    java = root / "usr/share/java"
    properties = (root / _DEBIAN_SDK / "build-tools/debian/source.properties").read_text()
    platforms = (path.name.removeprefix("android-") for path in (root / _DEBIAN_SDK / "platforms").iterdir())
    return Toolchain(
        java_home=java_home,
        jdk=_found(r'JAVA_VERSION="([^"]+)"', (root / java_home.removeprefix("/") / "release").read_text()),
        gradle=_version_of(java, "gradle-core-4*.jar"),
        agp=_version_of(java, "com.android.tools.build.gradle-core-*.jar"),
        build_tools=_found(r"Pkg\.Revision=(\S+)", properties),
        aapt2=_found(r"(\d[\w.-]+)", _run_inside(root, ["/usr/bin/aapt2", "version"], "Asking aapt2")),
        d8=R8_VERSION,
        apksigner=_version_of(java, "apksigner-*.jar"),
        platforms=tuple(sorted(int(platform) for platform in platforms)),
    )


def _version_of(folder: Path, pattern: str) -> str:
    names = sorted(path.stem for path in folder.glob(pattern) if not path.is_symlink())
    if not names:
        raise BoxFault(
            f"The root has no {pattern} in {folder}: Debian's packages are not what the box knows."
        )
    return _found(r"-(\d[\w.]*)$", names[-1])


def _found(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    if match is None:
        raise BoxFault(f"No version is to be read from {text.strip()[:200]!r}.")
    return match.group(1)
