"""The page size that a native library was linked for, out of its program headers."""

import struct

_LOADABLE = 1
HEAD_BYTES = 1 << 16
"""Program headers stand at the beginning; linkers put them right after the ELF header."""


def page_size_bytes(head: bytes) -> int | None:
    """Give the least alignment of the loadable segments; None where this is no readable ELF file."""
    if len(head) < 52 or head[:4] != b"\x7fELF" or head[5] != 1:
        return None
    is_64 = head[4] == 2
    try:
        if is_64:
            (offset,) = struct.unpack_from("<Q", head, 32)
            size, count = struct.unpack_from("<HH", head, 54)
        else:
            (offset,) = struct.unpack_from("<I", head, 28)
            size, count = struct.unpack_from("<HH", head, 42)
        alignments = []
        for index in range(count):
            position = offset + index * size
            (kind,) = struct.unpack_from("<I", head, position)
            (alignment,) = struct.unpack_from("<Q" if is_64 else "<I", head, position + (48 if is_64 else 28))
            if kind == _LOADABLE:
                alignments.append(alignment)
    except struct.error:
        return None
    return min(alignments, default=None)
