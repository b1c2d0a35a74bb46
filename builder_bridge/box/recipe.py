"""What the roots of the box are made of, and the digest that tells one recipe from another."""

import hashlib
from enum import StrEnum
from pathlib import Path

SUITE = "trixie"
"""The Debian release the box is made of; its adbd is Android 14's (34)."""

PARTS = Path(__file__).parent / "parts"
"""Sources and files that are laid into a root."""

_MAKING_MODULES = (
    "aapt_mend.py",
    "adbd.py",
    "downloads.py",
    "layout.py",
    "prefix.py",
    "recipe.py",
    "root.py",
    "toolchain.py",
)


class Kind(StrEnum):
    """What a box carries: adbd and the device's tools, or the builder prefix as well."""

    TINY = "tiny"
    AGP = "agp"


_DEVICE_PACKAGES = ("adbd", "busybox", "gzip", "libc-bin", "mksh", "toybox", "unzip")

_BUILDER_PACKAGES = (
    "aapt",
    "aidl",
    "android-sdk-build-tools-common",
    "android-sdk-platform-tools-common",
    "coreutils",
    "gradle",
    "gradle-debian-helper",
    "groovy",
    "libapksig-java",
    "libgradle-android-plugin-java",
    "maven-repo-helper",
    "openjdk-21-jdk-headless",
    "split-select",
    "zip",
    "zipalign",
)

PACKAGES: dict[Kind, tuple[str, ...]] = {
    Kind.TINY: _DEVICE_PACKAGES,
    Kind.AGP: (*_DEVICE_PACKAGES, *_BUILDER_PACKAGES),
}
"""Debian packages to unpack, with what they depend on."""

BUSYBOX_APPLETS = ("awk", "dd", "diff", "expr", "tr")
"""Tools that Android's toybox has and Debian's lacks."""

APPLETS = PARTS / "applets"
"""Commands of Android 14's toybox; what else Debian's has stays off the device's PATH."""

BUILDER_PACKAGE = "org.pocketbuild.builder"
RELEASE_PACKAGE = "org.pocketbuild.release"
BUILDER_UID = 10123
RELEASE_UID = 10124


def digest(kind: Kind, architecture: str) -> str:
    """Give the name of what `make_root` makes: other files, packages or code, other digest."""
    here = Path(__file__).parent
    sha256 = hashlib.sha256(f"{kind}\0{architecture}\0{SUITE}\0".encode())
    files = [here / name for name in _MAKING_MODULES]
    files += sorted(path for path in PARTS.rglob("*") if path.is_file())
    for path in files:
        content = path.read_bytes()
        sha256.update(f"{path.relative_to(here).as_posix()}\0{len(content)}\0".encode())
        sha256.update(content)
    return sha256.hexdigest()[:16]
