"""A file on this host → what it is. Nothing of it is unpacked or run."""

import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

from builder_bridge.inspect import elf, signing
from builder_bridge.inspect.archive import PackageArchive, open_archive
from builder_bridge.inspect.axml import read_axml
from builder_bridge.inspect.element import Element
from builder_bridge.inspect.package import (
    Manifest,
    NativeLibrary,
    Package,
    PackageFault,
    PackageKind,
    Part,
    Signature,
)
from builder_bridge.inspect.plain_xml import read_plain_xml
from builder_bridge.inspect.proto_xml import read_proto_xml

MAX_MANIFEST_BYTES = 8 << 20
MAX_LIBRARIES = 5_000
MAX_DEX_FILES = 1_000
PAGE_BYTES = 16_384
_DEX_HEADER_BYTES = 112
_DEX_METHOD_COUNT = 88

_MANIFESTS: tuple[tuple[PackageKind, str, Callable[[bytes], Element]], ...] = (
    (PackageKind.AAB, "base/manifest/AndroidManifest.xml", read_proto_xml),
    (PackageKind.APK, "AndroidManifest.xml", read_axml),
)


def inspect_package(path: Path) -> Package:
    """Read an APK, AAB or AAR; raises PackageFault, whose message names the file, for anything else."""
    try:
        with open_archive(path) as archive:
            return _inspect(archive, path)
    except PackageFault as fault:
        raise PackageFault(f"{path.name}: {fault}") from fault


def _inspect(archive: PackageArchive, path: Path) -> Package:
    kind, manifest = _manifest(archive)
    libraries = _libraries(archive, kind)
    dex_files, dex_methods = _dex(archive)
    return Package(
        kind,
        path.stat().st_size,
        manifest,
        tuple(sorted({library.abi for library in libraries})),
        libraries,
        dex_files,
        dex_methods,
        _signatures(archive, path, kind),
        _parts(archive),
    )


def _manifest(archive: PackageArchive) -> tuple[PackageKind, Manifest]:
    for kind, name, read in _MANIFESTS:
        if name in archive:
            data = archive.read(name, MAX_MANIFEST_BYTES)
            if data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
                return PackageKind.AAR, _facts(read_plain_xml(data))
            return kind, _facts(read(data))
    raise PackageFault("it has no AndroidManifest.xml, so it is no APK, AAB or AAR")


def _facts(root: Element) -> Manifest:
    sdk = root.first("uses-sdk").attributes
    code = _number(root.attributes.get("versionCode"))
    major = _number(root.attributes.get("versionCodeMajor"))
    permissions = (
        element.attributes.get("name", "")
        for tag in ("uses-permission", "uses-permission-sdk-23")
        for element in root.all(tag)
    )
    return Manifest(
        root.attributes.get("package"),
        code if not major or code is None else major << 32 | code,
        root.attributes.get("versionName"),
        sdk.get("minSdkVersion"),
        sdk.get("targetSdkVersion"),
        tuple(sorted({name for name in permissions if name})),
        root.first("application").attributes.get("debuggable") == "true",
        root.attributes.get("split"),
    )


def _number(text: str | None) -> int | None:
    try:
        return int(text, 0) if text and len(text) < 20 else None
    except ValueError:
        return None


def _libraries(archive: PackageArchive, kind: PackageKind) -> tuple[NativeLibrary, ...]:
    found: list[NativeLibrary] = []
    for member in archive.members:
        folders = member.filename.split("/")
        is_library = member.filename.endswith(".so") and len(folders) >= 3 and folders[-3] in ("lib", "jni")
        if not is_library:
            continue
        if len(found) >= MAX_LIBRARIES:
            raise PackageFault(f"it has over {MAX_LIBRARIES} native libraries")
        head = archive.read_head(member.filename, elf.HEAD_BYTES)
        is_stored = member.compress_type == zipfile.ZIP_STORED and kind is PackageKind.APK
        offset = archive.data_offset(member) if is_stored else None
        is_aligned = offset % PAGE_BYTES == 0 if offset is not None else None
        page_size = elf.page_size_bytes(head)
        found.append(NativeLibrary(member.filename, folders[-2], member.file_size, page_size, is_aligned))
    return tuple(found)


def _dex(archive: PackageArchive) -> tuple[int, int]:
    files = [member.filename for member in archive.members if member.filename.endswith(".dex")]
    if len(files) > MAX_DEX_FILES:
        raise PackageFault(f"it has over {MAX_DEX_FILES} dex files")
    methods = 0
    for name in files:
        head = archive.read_head(name, _DEX_HEADER_BYTES)
        if len(head) == _DEX_HEADER_BYTES and head.startswith(b"dex\n"):
            methods += struct.unpack_from("<I", head, _DEX_METHOD_COUNT)[0]
    return len(files), methods


def _signatures(archive: PackageArchive, path: Path, kind: PackageKind) -> tuple[Signature, ...]:
    found: list[Signature] = []
    for member in archive.members:
        name = member.filename.upper()
        if name.startswith("META-INF/") and name.count("/") == 1 and name.endswith((".RSA", ".DSA", ".EC")):
            found.append(signing.signature_v1(archive.read(member.filename, signing.MAX_V1_BYTES)))
    if kind is PackageKind.APK:
        found += archive.block_signatures()
        if path.with_name(path.name + ".idsig").is_file():
            found.append(Signature("v4", None))
    return tuple(dict.fromkeys(found))


def _parts(archive: PackageArchive) -> tuple[Part, ...]:
    sums: dict[str, list[int]] = {}
    for member in archive.members:
        total = sums.setdefault(_part_of(member.filename), [0, 0, 0])
        total[0] += 1
        total[1] += member.compress_size
        total[2] += member.file_size
    parts = [Part(name, *numbers) for name, numbers in sums.items()]
    return tuple(sorted(parts, key=lambda part: (-part.packed_bytes, part.name)))


def _part_of(name: str) -> str:
    folders = name.split("/")
    if name.endswith(".dex") or folders[-1] == "classes.jar":
        return "code"
    if "lib" in folders[:2] or "jni" in folders[:2]:
        return "native libraries"
    if "res" in folders[:2] or folders[-1] in ("resources.arsc", "resources.pb", "R.txt"):
        return "resources"
    if "assets" in folders[:2]:
        return "assets"
    return "signatures and metadata" if folders[0] in ("META-INF", "BUNDLE-METADATA") else "other"
