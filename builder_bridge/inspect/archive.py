"""The zip file that a package is, opened with limits; its members are strangers' data."""

import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from builder_bridge.inspect import signing
from builder_bridge.inspect.package import PackageFault, Signature

MAX_ENTRIES = 100_000
MAX_DIRECTORY_BYTES = 64 << 20
_END_MARK = b"PK\x05\x06"
_END_BYTES = 22
_MAX_COMMENT_BYTES = 65_535
_LOCAL_HEADER_BYTES = 30


class PackageArchive:
    """A package's members by name, read in part or whole, never written out."""

    def __init__(self, archive: zipfile.ZipFile, file: BinaryIO, directory_start: int) -> None:
        self._archive = archive
        self._file = file
        self._directory_start = directory_start
        self.members = [member for member in archive.infolist() if not member.is_dir()]
        self._by_name = {member.filename: member for member in self.members}

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def read(self, name: str, limit_bytes: int) -> bytes:
        """Give a member whole; raises PackageFault where it is absent or larger than the limit."""
        if name not in self._by_name:
            raise PackageFault(f"there is no {name} in it")
        data = self.read_head(name, limit_bytes + 1)
        if len(data) > limit_bytes:
            raise PackageFault(f"{name} unpacks to over {limit_bytes} bytes")
        return data

    def read_head(self, name: str, size_bytes: int) -> bytes:
        """Give the first bytes of a member."""
        with self._archive.open(self._by_name[name]) as stream:
            return stream.read(size_bytes)

    def data_offset(self, member: zipfile.ZipInfo) -> int | None:
        """Give where in the file a member's data begins; None where its header is damaged."""
        self._file.seek(member.header_offset)
        header = self._file.read(_LOCAL_HEADER_BYTES)
        if len(header) < _LOCAL_HEADER_BYTES:
            return None
        name_size, extra_size = struct.unpack_from("<HH", header, 26)
        return member.header_offset + _LOCAL_HEADER_BYTES + int(name_size) + int(extra_size)

    def block_signatures(self) -> list[Signature]:
        """Give the schemes of the signing block before the central directory."""
        footer_start = self._directory_start - signing.FOOTER_BYTES
        if footer_start < 8:
            return []
        self._file.seek(footer_start)
        size = signing.block_size(self._file.read(signing.FOOTER_BYTES))
        if size is None or size > self._directory_start - 8:
            return []
        self._file.seek(self._directory_start - size)
        return signing.signatures_in_block(self._file.read(size - signing.FOOTER_BYTES))


@contextmanager
def open_archive(path: Path) -> Iterator[PackageArchive]:
    """Open a zip file after a look at its directory's size; raises PackageFault for what is none."""
    with path.open("rb") as file:
        directory_start = _check_directory(file, path.stat().st_size)
        try:
            with zipfile.ZipFile(file) as archive:
                yield PackageArchive(archive, file, directory_start)
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as fault:
            raise PackageFault(f"it cannot be read as a zip file: {fault}") from fault


def _check_directory(file: BinaryIO, size_bytes: int) -> int:
    """Give where the central directory starts, before anything of it is held in memory."""
    file.seek(max(0, size_bytes - _END_BYTES - _MAX_COMMENT_BYTES))
    tail = file.read()
    position = tail.rfind(_END_MARK)
    if position < 0 or position + _END_BYTES > len(tail):
        raise PackageFault("it is no zip file: it has no end of a central directory")
    entries, directory_bytes, start = struct.unpack_from("<HII", tail, position + 10)
    if entries > MAX_ENTRIES or directory_bytes > MAX_DIRECTORY_BYTES:
        raise PackageFault(
            f"its directory claims {entries} members in {directory_bytes} bytes; that is too much"
        )
    return int(start)
