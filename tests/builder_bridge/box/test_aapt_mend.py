"""Mending the Android Gradle plugin's class in its constant pool."""

import io
import struct
import zipfile

import pytest

from builder_bridge.box.aapt_mend import CLASS_NAME, mend_archive, mend_class
from builder_bridge.errors import BoxFault

FUTURE = b"Lcom/google/common/util/concurrent/ListenableFuture;"
FUNCTION = b"Lcom/google/common/base/Function;"
ASYNC_FUNCTION = b"Lcom/google/common/util/concurrent/AsyncFunction;"


def utf8(text: bytes) -> bytes:
    return b"\x01" + struct.pack(">H", len(text)) + text


def class_of(*constants: bytes, slots: int | None = None) -> bytes:
    count = (slots or len(constants)) + 1
    return b"\xca\xfe\xba\xbe\x00\x00\x00\x34" + struct.pack(">H", count) + b"".join(constants) + b"the rest"


LONG = b"\x05" + bytes(8)
BROKEN = class_of(
    LONG,  # takes the slots 1 and 2
    utf8(b"transform"),
    utf8(b"(" + FUTURE + FUNCTION + b")" + FUTURE),
    utf8(b"(Ljava/lang/Object;)Ljava/lang/Object;"),
    utf8(b"(Ljava/lang/Object;)" + FUTURE),
    b"\x10" + struct.pack(">H", 5),
    b"\x10" + struct.pack(">H", 6),
    slots=8,
)
MENDED = class_of(
    LONG,
    utf8(b"transformAsync"),
    utf8(b"(" + FUTURE + ASYNC_FUNCTION + b")" + FUTURE),
    utf8(b"(Ljava/lang/Object;)Ljava/lang/Object;"),
    utf8(b"(Ljava/lang/Object;)" + FUTURE),
    b"\x10" + struct.pack(">H", 6),
    b"\x10" + struct.pack(">H", 6),
    slots=8,
)


def archive_of(**entries: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return file.getvalue()


def test_the_call_becomes_the_asynchronous_one_and_nothing_else_changes() -> None:
    assert mend_class(BROKEN) == MENDED


def test_a_mended_class_stays_as_it_is() -> None:
    assert mend_class(MENDED) == MENDED


def test_a_class_without_such_a_method_is_refused() -> None:
    with pytest.raises(BoxFault, match="another version"):
        mend_class(class_of(utf8(b"transform")))


def test_of_an_archive_only_that_class_changes() -> None:
    other = "com/android/builder/Other.class"
    mended = mend_archive(archive_of(**{CLASS_NAME: BROKEN, other: BROKEN}))
    with zipfile.ZipFile(io.BytesIO(mended)) as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == {
            CLASS_NAME: MENDED,
            other: BROKEN,
        }


def test_an_archive_without_that_class_is_refused() -> None:
    with pytest.raises(BoxFault, match="no class AaptV1"):
        mend_archive(archive_of(other=b""))
