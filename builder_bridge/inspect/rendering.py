"""A package and its difference to an earlier one, as text and as JSON. Pure."""

from dataclasses import asdict
from typing import Any

from builder_bridge.inspect.difference import Difference
from builder_bridge.inspect.package import Package

MAX_LISTED = 20


def render_package(package: Package, name: str) -> str:
    """Write a package for a person, one fact a line."""
    manifest = package.manifest
    version = " ".join(
        part
        for part in (manifest.version_name, f"({manifest.version_code})" if manifest.version_code else None)
        if part
    )
    flags = [
        word
        for word, holds in (("debuggable", manifest.is_debuggable), ("unsigned", not package.is_signed))
        if holds
    ]
    lines = [f"{name}: {package.kind}, {_size(package.size_bytes)}" + "".join(f", {flag}" for flag in flags)]
    facts = [
        ("package", manifest.package),
        ("version", version),
        ("minimum SDK", manifest.min_sdk),
        ("target SDK", manifest.target_sdk),
        ("ABIs", ", ".join(package.abis)),
        ("16 KiB pages", _pages(package)),
        ("dex", f"{package.dex_files} with {package.dex_methods} methods" if package.dex_files else None),
        ("permissions", _listed(package.manifest.permissions)),
    ]
    lines += [f"  {label:<13} {value}" for label, value in facts if value]
    for signature in package.signatures:
        lines.append(
            f"  signed {signature.scheme:<6} {signature.certificate_sha256 or 'certificate unreadable'}"
        )
    for part in package.parts:
        sizes = f"{_size(part.packed_bytes)} ({_size(part.unpacked_bytes)} unpacked)"
        lines.append(f"  {part.name:<24} {sizes} in {part.files} files")
    return "\n".join(lines)


def render_difference(change: Difference) -> str:
    """Write what changed since an earlier package, one change a line."""
    lines = [f"since the earlier one: {change.grown_bytes:+,} bytes"]
    lines += [f"  {name}: {size:+,} bytes" for name, size in change.parts_grown_bytes]
    lines += [
        f"  {entry.what}: {entry.before or 'none'} → {entry.after or 'none'}" for entry in change.changes
    ]
    lines += [f"  permission added: {name}" for name in change.permissions_added]
    lines += [f"  permission removed: {name}" for name in change.permissions_removed]
    return "\n".join(lines)


def package_to_json(package: Package) -> dict[str, Any]:
    """Give a package as a JSON object."""
    body = asdict(package)
    body["kind"] = str(package.kind)
    body["fits_16k_pages"] = package.fits_16k_pages
    body["libraries"] = [
        {**asdict(library), "fits_16k_pages": library.fits_16k_pages} for library in package.libraries
    ]
    return body


def difference_to_json(change: Difference) -> dict[str, Any]:
    """Give a difference as a JSON object."""
    return {**asdict(change), "parts_grown_bytes": dict(change.parts_grown_bytes)}


def _pages(package: Package) -> str | None:
    if not package.libraries:
        return None
    bad = [library.path for library in package.libraries if not library.fits_16k_pages]
    return f"not fit: {_listed(tuple(bad))}" if bad else "fit"


def _listed(names: tuple[str, ...]) -> str:
    shown = ", ".join(names[:MAX_LISTED])
    return shown + (f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else "")


def _size(size_bytes: int) -> str:
    if size_bytes < 1024:
        return f"{size_bytes} B"
    return f"{size_bytes / 1024:.1f} KiB" if size_bytes < 1 << 20 else f"{size_bytes / (1 << 20):.1f} MiB"
