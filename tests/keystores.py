"""Keystores for tests, made on the spot so that no key lies in the repository."""

import datetime
import hashlib

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import NameOID


def make_keystore(alias: str, password: str) -> tuple[bytes, str]:
    """Make a PKCS #12 keystore with one signing key; give it and the SHA-256 of its certificate."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Pocketbuild test release")])
    begin = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(begin + datetime.timedelta(days=20_000))
        .sign(key, hashes.SHA256())
    )
    store = pkcs12.serialize_key_and_certificates(
        alias.encode(), key, certificate, None, serialization.BestAvailableEncryption(password.encode())
    )
    return store, hashlib.sha256(certificate.public_bytes(serialization.Encoding.DER)).hexdigest()
