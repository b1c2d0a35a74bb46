"""Mends one class of Debian's Android Gradle plugin 2.2.2.

`AaptV1` hands a function that gives a future to `Futures.transform`, which the Guava it was built
for took. Debian's Guava has that as `transformAsync`; with `transform` every merge of resources
fails with "SettableFuture cannot be cast to File". The call is changed in the class's constant pool
(JVM specification, chapter 4.4), where the names and types of all it calls stand.
"""

import io
import struct
import zipfile
from dataclasses import dataclass

from builder_bridge.errors import BoxFault

CLASS_NAME = "com/android/builder/internal/aapt/v1/AaptV1.class"

_FUTURE = b"Lcom/google/common/util/concurrent/ListenableFuture;"
_FUNCTION = b"Lcom/google/common/base/Function;"
_ASYNC_FUNCTION = b"Lcom/google/common/util/concurrent/AsyncFunction;"
_UTF8, _LONG, _DOUBLE, _METHOD_TYPE = 1, 5, 6, 16
_BODY_SIZES = {
    3: 4,
    4: 4,
    5: 8,
    6: 8,
    7: 2,
    8: 2,
    9: 4,
    10: 4,
    11: 4,
    12: 4,
    15: 3,
    16: 2,
    17: 4,
    18: 4,
    19: 2,
    20: 2,
}


@dataclass(slots=True)
class _Constant:
    tag: int
    body: bytes


def mend_archive(archive: bytes) -> bytes:
    """Give the plugin's builder archive with its class `AaptV1` mended and all else as it was."""
    mended = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(archive)) as old,
        zipfile.ZipFile(mended, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        if CLASS_NAME not in old.namelist():
            raise BoxFault(
                "The Android Gradle plugin to be mended holds no class AaptV1; it is another version."
            )
        for entry in old.infolist():
            content = old.read(entry)
            new.writestr(entry, mend_class(content) if entry.filename == CLASS_NAME else content)
    return mended.getvalue()


def mend_class(content: bytes) -> bytes:
    """Give the class with its calls of transform turned into transformAsync."""
    pool, end = _read_pool(content)
    future_result = _index_of_text(pool, b"(Ljava/lang/Object;)" + _FUTURE)
    for constant in pool.values():
        if constant.tag == _UTF8 and constant.body == b"transform":
            constant.body = b"transformAsync"
        elif constant.tag == _UTF8 and constant.body.startswith(b"("):
            constant.body = constant.body.replace(_FUNCTION, _ASYNC_FUNCTION)
        elif (
            constant.tag == _METHOD_TYPE
            and _text_of(pool, constant) == b"(Ljava/lang/Object;)Ljava/lang/Object;"
        ):
            constant.body = struct.pack(">H", future_result)
    return content[:10] + b"".join(map(_encode, pool.values())) + content[end:]


def _read_pool(content: bytes) -> tuple[dict[int, _Constant], int]:
    (count,) = struct.unpack_from(">H", content, 8)
    pool: dict[int, _Constant] = {}
    index, offset = 1, 10
    while index < count:
        tag = content[offset]
        if tag == _UTF8:
            (size,) = struct.unpack_from(">H", content, offset + 1)
            start = offset + 3
        else:
            size, start = _BODY_SIZES[tag], offset + 1
        pool[index] = _Constant(tag, content[start : start + size])
        offset = start + size
        index += 2 if tag in {_LONG, _DOUBLE} else 1
    return pool, offset


def _encode(constant: _Constant) -> bytes:
    size = struct.pack(">H", len(constant.body)) if constant.tag == _UTF8 else b""
    return bytes([constant.tag]) + size + constant.body


def _text_of(pool: dict[int, _Constant], reference: _Constant) -> bytes:
    return pool[struct.unpack(">H", reference.body)[0]].body


def _index_of_text(pool: dict[int, _Constant], text: bytes) -> int:
    for index, constant in pool.items():
        if constant.tag == _UTF8 and constant.body == text:
            return index
    raise BoxFault("The class AaptV1 to be mended has no method that gives a future; it is another version.")
