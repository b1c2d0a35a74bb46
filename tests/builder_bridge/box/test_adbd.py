"""Switching on what Debian's adbd leaves out."""

import pytest

from builder_bridge.box.adbd import with_authorization, with_tls
from builder_bridge.errors import BoxFault

AUTHORIZATION_OFF = b"\xc6\x00\x00\x48\x8d\x3d\x11\x22\x33\x44\xe8"
TLS_OFF = b"\x31\xd2\xb9\x01\x00\x00\x00\x4c\x8d\x64\x24\x20\x4d\x89\xe0\x45\x31\xc9\xe8"
PROGRAM = b"\x7fELF head" + AUTHORIZATION_OFF + b"between" + TLS_OFF + b"tail"


def test_authorization_changes_one_byte() -> None:
    changed = [
        i for i, (old, new) in enumerate(zip(PROGRAM, with_authorization(PROGRAM), strict=True)) if old != new
    ]
    assert changed == [PROGRAM.index(AUTHORIZATION_OFF) + 2]


def test_tls_keeps_the_length_and_wants_authorization_too() -> None:
    program = with_tls(PROGRAM)
    assert len(program) == len(PROGRAM)
    assert program == with_authorization(PROGRAM).replace(b"\x45\x31\xc9\xe8", b"\x41\xb1\x01\xe8")


@pytest.mark.parametrize("program", [b"another build", PROGRAM + PROGRAM])
def test_a_program_with_no_or_several_such_places_is_refused(program: bytes) -> None:
    with pytest.raises(BoxFault, match=r"(0|2) places match"):
        with_authorization(program)
