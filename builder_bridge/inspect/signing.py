"""Which signing schemes an APK bears, and whose certificates.

v1 lies in META-INF as PKCS #7; v2, v3 and v3.1 in the block before the central directory, as
pairs of id and value (source.android.com, "APK signature scheme v2" and v3); v4 in a file beside.
"""

import hashlib
import struct
from collections.abc import Iterator

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding, pkcs7

from builder_bridge.inspect.package import Signature

MAGIC = b"APK Sig Block 42"
FOOTER_BYTES = 24
MAX_BLOCK_BYTES = 32 << 20
MAX_V1_BYTES = 1 << 20
_SCHEMES = {0x7109871A: "v2", 0xF05368C0: "v3", 0x1B93AD61: "v3.1"}


def block_size(footer: bytes) -> int | None:
    """Give the size of the signing block whose last 24 bytes these are, without its first 8; None if none."""
    if len(footer) != FOOTER_BYTES or footer[8:] != MAGIC:
        return None
    (size,) = struct.unpack_from("<Q", footer)
    return size if FOOTER_BYTES <= size <= MAX_BLOCK_BYTES else None


def signatures_in_block(block: bytes) -> list[Signature]:
    """Read the pairs of a signing block, without its leading size and its footer."""
    found = []
    position = 0
    while position + 12 <= len(block):
        length, identity = struct.unpack_from("<QI", block, position)
        end = position + 8 + length
        if length < 4 or end > len(block):
            break
        scheme = _SCHEMES.get(identity)
        if scheme:
            certificate = _first_certificate(block[position + 12 : end])
            digest = hashlib.sha256(certificate).hexdigest() if certificate else None
            found.append(Signature(scheme, digest))
        position = end
    return found


def signature_v1(data: bytes) -> Signature:
    """Read a `META-INF/*.RSA`, `.DSA` or `.EC` file."""
    try:
        certificates = pkcs7.load_der_pkcs7_certificates(data)
    except (ValueError, UnsupportedAlgorithm):
        return Signature("v1", None)
    if not certificates:
        return Signature("v1", None)
    return Signature("v1", hashlib.sha256(certificates[0].public_bytes(Encoding.DER)).hexdigest())


def _first_certificate(value: bytes) -> bytes | None:
    """Walk signers → signer → signed data → (digests, certificates) → first certificate."""
    signers = next(_prefixed(value), b"")
    signer = next(_prefixed(signers), b"")
    signed_data = next(_prefixed(signer), b"")
    sequences = list(_prefixed(signed_data, 2))
    return next(_prefixed(sequences[1]), None) if len(sequences) == 2 else None


def _prefixed(data: bytes, limit: int = 1) -> Iterator[bytes]:
    """Give the first values of a sequence whose members have their length before them."""
    position = 0
    for _ in range(limit):
        if position + 4 > len(data):
            return
        (length,) = struct.unpack_from("<I", data, position)
        if position + 4 + length > len(data):
            return
        yield data[position + 4 : position + 4 + length]
        position += 4 + length
