"""What is different between a package and an earlier one of the same variant. Pure."""

from dataclasses import dataclass

from builder_bridge.inspect.package import Package


@dataclass(frozen=True, slots=True)
class Change:
    """One fact that differs; a missing value is None."""

    what: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class Difference:
    """All that changed, and by how many bytes the file and each of its parts grew."""

    changes: tuple[Change, ...]
    grown_bytes: int
    parts_grown_bytes: tuple[tuple[str, int], ...]
    permissions_added: tuple[str, ...] = ()
    permissions_removed: tuple[str, ...] = ()


def difference(before: Package, after: Package) -> Difference:
    """Compare two packages, the earlier one first."""
    facts_before, facts_after = _facts(before), _facts(after)
    changes = [
        Change(what, facts_before[what], facts_after[what])
        for what in facts_after
        if facts_before[what] != facts_after[what]
    ]
    old, new = set(before.manifest.permissions), set(after.manifest.permissions)
    sizes_before = {part.name: part.packed_bytes for part in before.parts}
    sizes_after = {part.name: part.packed_bytes for part in after.parts}
    grown = [
        (name, sizes_after.get(name, 0) - sizes_before.get(name, 0))
        for name in dict.fromkeys([*sizes_after, *sizes_before])
    ]
    return Difference(
        tuple(changes),
        after.size_bytes - before.size_bytes,
        tuple(sorted(((name, size) for name, size in grown if size), key=lambda pair: -abs(pair[1]))),
        tuple(sorted(new - old)),
        tuple(sorted(old - new)),
    )


def _facts(package: Package) -> dict[str, str | None]:
    manifest = package.manifest
    certificates = sorted({signature.certificate_sha256 or "unreadable" for signature in package.signatures})
    return {
        "kind": str(package.kind),
        "package": manifest.package,
        "version code": _text(manifest.version_code),
        "version name": manifest.version_name,
        "minimum SDK": manifest.min_sdk,
        "target SDK": manifest.target_sdk,
        "debuggable": "yes" if manifest.is_debuggable else "no",
        "ABIs": ", ".join(package.abis) or None,
        "fits 16 KiB pages": "yes" if package.fits_16k_pages else "no",
        "dex files": str(package.dex_files),
        "methods": str(package.dex_methods),
        "signing schemes": ", ".join(signature.scheme for signature in package.signatures) or None,
        "certificate": ", ".join(certificates) or None,
    }


def _text(value: int | None) -> str | None:
    return None if value is None else str(value)
