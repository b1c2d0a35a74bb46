"""Packages of each kind, as built and as an enemy would make them."""

import contextlib
import json
import random
import struct
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from builder_bridge.inspect.axml import read_axml
from builder_bridge.inspect.difference import Change, difference
from builder_bridge.inspect.elf import page_size_bytes
from builder_bridge.inspect.package import PackageFault, PackageKind, Signature
from builder_bridge.inspect.plain_xml import read_plain_xml
from builder_bridge.inspect.proto_xml import read_proto_xml
from builder_bridge.inspect.reader import inspect_package
from builder_bridge.inspect.signing import signatures_in_block
from orchestrator.cli.apk import apk
from tests.builder_bridge.inspect.forms import axml, dex, elf, manifest_tree, proto_xml, write_zip

HELLO = Path(__file__).parents[2] / "cases" / "packages" / "hello-debug.apk"
CERTIFICATE = "e930c8a4a389961458848cab0f4b60570cde0f2d54c84c2f4abaf3221d165c2b"


def test_an_apk_that_a_phone_built_is_read() -> None:
    package = inspect_package(HELLO)
    manifest = package.manifest
    assert (manifest.package, manifest.version_code, manifest.version_name) == (
        "org.pocketbuild.hello",
        3,
        "1.2",
    )
    assert (manifest.min_sdk, manifest.target_sdk, manifest.is_debuggable) == ("21", "23", True)
    assert (package.kind, package.dex_files, package.dex_methods) == (PackageKind.APK, 1, 35)
    assert package.signatures == (Signature("v1", CERTIFICATE), Signature("v2", CERTIFICATE))
    assert sum(part.packed_bytes for part in package.parts) < package.size_bytes


@pytest.mark.parametrize("has_names", [True, False])
def test_attributes_are_known_by_id_where_their_names_were_taken_away(
    tmp_path: Path, has_names: bool
) -> None:
    path = write_zip(tmp_path / "a.apk", {"AndroidManifest.xml": axml(manifest_tree(), has_names=has_names)})
    manifest = inspect_package(path).manifest
    assert (manifest.version_code, manifest.min_sdk, manifest.target_sdk) == (7, "24", "36")
    assert manifest.permissions == ("android.permission.INTERNET",)


def test_a_bundle_is_read_from_its_protocol_buffers(tmp_path: Path) -> None:
    members = {
        "base/manifest/AndroidManifest.xml": proto_xml(manifest_tree()),
        "base/dex/classes.dex": dex(12),
        "base/lib/arm64-v8a/libx.so": elf(16384),
    }
    package = inspect_package(write_zip(tmp_path / "a.aab", members))
    assert (package.kind, package.manifest.package, package.manifest.version_code) == (
        PackageKind.AAB,
        "net.acme.app",
        7,
    )
    assert (package.abis, package.dex_methods, package.fits_16k_pages) == (("arm64-v8a",), 12, True)


def test_a_library_archive_is_read_from_plain_xml(tmp_path: Path) -> None:
    text = '<manifest xmlns:android="http://schemas.android.com/apk/res/android" package="net.acme.lib">'
    text += '<uses-sdk android:minSdkVersion="21"/></manifest>'
    members = {"AndroidManifest.xml": text.encode(), "classes.jar": b"x", "jni/x86_64/libx.so": elf(4096)}
    package = inspect_package(write_zip(tmp_path / "a.aar", members))
    assert (package.kind, package.manifest.package, package.manifest.min_sdk) == (
        PackageKind.AAR,
        "net.acme.lib",
        "21",
    )
    assert package.fits_16k_pages is False


def test_a_library_stored_off_a_page_border_does_not_fit_16k_pages(tmp_path: Path) -> None:
    members = {"AndroidManifest.xml": axml(manifest_tree()), "lib/arm64-v8a/libx.so": elf(16384)}
    packed = inspect_package(write_zip(tmp_path / "packed.apk", members))
    stored = inspect_package(write_zip(tmp_path / "stored.apk", members, stored=("lib/arm64-v8a/libx.so",)))
    assert (packed.fits_16k_pages, packed.libraries[0].is_zip_aligned) == (True, None)
    assert (stored.fits_16k_pages, stored.libraries[0].is_zip_aligned) == (False, False)


def test_a_32_bit_library_is_never_asked_for_16k_pages(tmp_path: Path) -> None:
    members = {"AndroidManifest.xml": axml(manifest_tree()), "lib/armeabi-v7a/libx.so": b"\x7fELF"}
    assert inspect_package(write_zip(tmp_path / "a.apk", members)).fits_16k_pages


@pytest.mark.parametrize("head", [b"", b"MZ", b"\x7fELF", elf(4096)[:70], b"\x7fELF\x02\x02" + b"\0" * 60])
def test_what_is_no_library_has_no_page_size(head: bytes) -> None:
    assert page_size_bytes(head) is None


def test_what_changed_since_an_earlier_package_is_told(tmp_path: Path) -> None:
    before = inspect_package(write_zip(tmp_path / "1.apk", {"AndroidManifest.xml": axml(manifest_tree())}))
    tree = manifest_tree(("android.permission.CAMERA",), "1.3")
    members = {"AndroidManifest.xml": axml(tree), "assets/a.bin": random.Random(1).randbytes(5000)}
    after = inspect_package(write_zip(tmp_path / "2.apk", members))
    change = difference(before, after)
    assert change.changes == (Change("version name", "1.2", "1.3"),)
    assert (change.permissions_added, change.permissions_removed) == (
        ("android.permission.CAMERA",),
        ("android.permission.INTERNET",),
    )
    assert dict(change.parts_grown_bytes)["assets"] >= 5000
    assert difference(after, after).changes == ()


def test_each_signing_scheme_of_a_block_is_named_with_its_certificate() -> None:
    def prefixed(data: bytes) -> bytes:
        return struct.pack("<I", len(data)) + data

    signed_data = prefixed(b"") + prefixed(prefixed(b"certificate"))
    value = prefixed(prefixed(prefixed(signed_data)))
    block = b"".join(
        struct.pack("<QI", 4 + len(value), identity) + value
        for identity in (0x7109871A, 0xF05368C0, 0x1B93AD61, 0x42726577)
    )
    found = signatures_in_block(block)
    assert [signature.scheme for signature in found] == ["v2", "v3", "v3.1"]
    assert len({signature.certificate_sha256 for signature in found}) == 1


@pytest.mark.parametrize(
    ("name", "members"),
    [
        ("empty.zip", {}),
        ("other.zip", {"readme.txt": b"x"}),
        ("text.apk", {"AndroidManifest.xml": b"no xml at all"}),
        ("doctype.aar", {"AndroidManifest.xml": b'<!DOCTYPE a [<!ENTITY b "c">]><manifest/>'}),
        ("broken.aar", {"AndroidManifest.xml": b"<manifest>"}),
        ("bomb.apk", {"AndroidManifest.xml": b"\0" * (9 << 20)}),
        ("proto.aab", {"base/manifest/AndroidManifest.xml": b"\x0b\xff"}),
    ],
)
def test_what_is_no_package_is_refused_with_its_name(
    tmp_path: Path, name: str, members: dict[str, bytes]
) -> None:
    with pytest.raises(PackageFault, match=name):
        inspect_package(write_zip(tmp_path / name, members))


def test_a_directory_that_claims_too_much_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "many.apk"
    path.write_bytes(b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, 65535, 65535, 0xFFFFFFFF, 0, 0))
    with pytest.raises(PackageFault, match="too much"):
        inspect_package(path)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 1 << 30), st.integers(1, 8))
def test_damaged_manifests_are_read_or_refused_but_nothing_else(seed: int, count: int) -> None:
    chance = random.Random(seed)
    for data, read in ((axml(manifest_tree()), read_axml), (proto_xml(manifest_tree()), read_proto_xml)):
        damaged = bytearray(data)
        for _ in range(count):
            damaged[chance.randrange(len(damaged))] = chance.choice((0, 1, 0x7F, 0xFF, chance.randrange(256)))
        with contextlib.suppress(PackageFault):
            read(bytes(damaged[: chance.randrange(1, len(damaged) + 1)]))


def test_nesting_without_end_is_refused() -> None:
    with pytest.raises(PackageFault, match="deep"):
        read_plain_xml(b"<a>" * 200)
    data = b""
    for _ in range(200):
        data = proto_xml(("a", {}, [])) if not data else _wrapped(data)
    with pytest.raises(PackageFault, match="deep"):
        read_proto_xml(data)


def _wrapped(child: bytes) -> bytes:
    from tests.builder_bridge.inspect.forms import _field

    return _field(1, _field(5, child))


def test_the_command_tells_a_package_and_refuses_what_is_none(tmp_path: Path) -> None:
    told = CliRunner().invoke(apk, ["--json", str(HELLO)])
    assert told.exit_code == 0
    assert json.loads(told.output)["manifest"]["package"] == "org.pocketbuild.hello"
    text = CliRunner().invoke(apk, [str(HELLO), "--since", str(HELLO)])
    assert "since the earlier one: +0 bytes" in text.output
    other = tmp_path / "x.apk"
    other.write_text("no zip")
    refused = CliRunner().invoke(apk, [str(other)])
    assert refused.exit_code == 1
    assert "x.apk: it is no zip file" in refused.output
