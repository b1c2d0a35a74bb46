"""Variants of Debian's adbd 34 that ask what a phone asks: its owner's consent, or TLS.

Debian builds adbd without authorization, though the code is all there. Each variant switches one
constant in the machine code of amd64; a pattern that does not match in exactly one place is refused,
so another build of adbd can never be damaged silently.
"""

import re

from builder_bridge.errors import BoxFault

_AUTHORIZATION = re.compile(rb"\xc6\x00(\x00)\x48\x8d\x3d.{4}\xe8", re.DOTALL)
"""`auth_required = false;`, stored just before getenv("ADB_EXTERNAL_STORAGE") is called."""

_TLS = re.compile(
    rb"\x31\xd2\xb9\x01\x00\x00\x00\x4c\x8d\x64\x24\x20\x4d\x89\xe0(\x45\x31\xc9)\xe8", re.DOTALL
)
"""`use_tls` of register_socket_transport in the TCP listener: `xor r9d, r9d`."""


def with_authorization(program: bytes) -> bytes:
    """Give an adbd that wants an RSA key its owner has allowed, as over USB or on port 5555."""
    return _replace(program, _AUTHORIZATION, b"\x01", "authorization")


def with_tls(program: bytes) -> bytes:
    """Give an adbd that asks every connection for TLS, as wireless debugging does."""
    return _replace(with_authorization(program), _TLS, b"\x41\xb1\x01", "TLS")


def _replace(program: bytes, pattern: re.Pattern[bytes], code: bytes, what: str) -> bytes:
    places = list(pattern.finditer(program))
    if len(places) != 1:
        raise BoxFault(
            f"{what} cannot be switched on in this adbd: {len(places)} places match, and it must be one.",
            hint="Use a plain box; this adbd is of another build than the one Debian 13 has on amd64.",
        )
    start, end = places[0].span(1)
    return program[:start] + code + program[end:]
