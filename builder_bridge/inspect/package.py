"""What an APK, AAB or AAR is, as values."""

from dataclasses import dataclass
from enum import StrEnum


class PackageKind(StrEnum):
    """The three things that an Android build makes."""

    APK = "apk"
    AAB = "aab"
    AAR = "aar"


class PackageFault(ValueError):
    """The file is no APK, AAB or AAR, or is damaged, or goes over a limit; nothing of it was unpacked."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """What the manifest says; a value that is a reference to a resource stays as `@7f0a0012`."""

    package: str | None = None
    version_code: int | None = None
    version_name: str | None = None
    min_sdk: str | None = None
    target_sdk: str | None = None
    permissions: tuple[str, ...] = ()
    is_debuggable: bool = False
    split: str | None = None


@dataclass(frozen=True, slots=True)
class NativeLibrary:
    """One `.so`; `page_size_bytes` is the least alignment of its loadable segments, None if unreadable.

    `is_zip_aligned` is whether its data lies at a multiple of 16 KiB in the archive; None where it
    is compressed and so unpacked at installation.
    """

    path: str
    abi: str
    size_bytes: int
    page_size_bytes: int | None
    is_zip_aligned: bool | None

    @property
    def fits_16k_pages(self) -> bool:
        """Whether a phone with pages of 16 KiB can load it; 32-bit libraries are never asked to."""
        if self.abi not in ("arm64-v8a", "x86_64", "riscv64"):
            return True
        is_linked = self.page_size_bytes is not None and self.page_size_bytes >= 16384
        return is_linked and self.is_zip_aligned is not False


@dataclass(frozen=True, slots=True)
class Signature:
    """One signing scheme (`v1`, `v2`, `v3`, `v3.1`, `v4`) and the SHA-256 of its first certificate.

    The scheme's presence and its certificate are read; whether it is valid is for apksigner to say.
    """

    scheme: str
    certificate_sha256: str | None


@dataclass(frozen=True, slots=True)
class Part:
    """How much of the file one kind of content takes, packed and unpacked."""

    name: str
    files: int
    packed_bytes: int
    unpacked_bytes: int


@dataclass(frozen=True, slots=True)
class Package:
    """Everything that was read of one file."""

    kind: PackageKind
    size_bytes: int
    manifest: Manifest
    abis: tuple[str, ...] = ()
    libraries: tuple[NativeLibrary, ...] = ()
    dex_files: int = 0
    dex_methods: int = 0
    signatures: tuple[Signature, ...] = ()
    parts: tuple[Part, ...] = ()

    @property
    def fits_16k_pages(self) -> bool:
        """Whether all of its libraries can be loaded on phones with pages of 16 KiB."""
        return all(library.fits_16k_pages for library in self.libraries)

    @property
    def is_signed(self) -> bool:
        """Whether any signing scheme is present."""
        return bool(self.signatures)
