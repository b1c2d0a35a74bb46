"""The RSA keys by which phones know this host.

They are adb's own: what a phone allowed to `adb` it allows to us. The user's keys are taken from
`$ADB_VENDOR_KEYS` and `~/.android/adbkey`; only where there is none, one is made in our own
configuration folder, readable by its owner alone. adb-shell makes, encodes and signs with them.
"""

import datetime
import hashlib
import os
import ssl
import tempfile
from dataclasses import dataclass
from pathlib import Path

from adb_shell.auth import keygen
from adb_shell.auth.sign_pythonrsa import PythonRSASigner
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

from builder_bridge.errors import PhoneUnauthorized

CERTIFICATE_LIFE = datetime.timedelta(days=3650)


@dataclass(frozen=True, slots=True, repr=False)
class AdbKey:
    """One key pair; `public_key` is the line of an `adbkey.pub` file."""

    path: Path
    private_pem: bytes
    public_key: bytes

    @property
    def fingerprint(self) -> str:
        """Names the key without giving it away: SHA-256 of the public half, in hex."""
        return hashlib.sha256(self.public_key.split()[0]).hexdigest()

    def sign(self, token: bytes) -> bytes:
        """Sign what a phone's AUTH packet asks."""
        signature: bytes = PythonRSASigner(priv=self.private_pem.decode()).Sign(token)
        return signature

    def tls_context(self) -> ssl.SSLContext:
        """Make the client side of wireless debugging: TLS 1.3 with this key in a certificate.

        The phone makes its own certificate anew at each start, so there is nothing to check it
        against; what the phone checks is our key.
        """
        private = serialization.load_pem_private_key(self.private_pem, None)
        assert isinstance(private, rsa.RSAPrivateKey)
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "pocketbuild")])
        now = datetime.datetime.now(datetime.UTC)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(private.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + CERTIFICATE_LIFE)
            .sign(private, hashes.SHA256())
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with tempfile.NamedTemporaryFile() as chain:  # the ssl module loads from files only; mode is 0600
            chain.write(self.private_pem + b"\n" + certificate.public_bytes(serialization.Encoding.PEM))
            chain.flush()
            context.load_cert_chain(chain.name)
        return context


def load_keys() -> tuple[AdbKey, ...]:
    """Give the keys to offer to a phone, the user's own first; make one if there is none."""
    places = [Path(place) for place in os.environ.get("ADB_VENDOR_KEYS", "").split(":") if place]
    files = [
        file for place in places for file in (sorted(place.glob("*.adb_key")) if place.is_dir() else [place])
    ]
    files.append(Path(os.environ.get("ANDROID_USER_HOME", Path.home() / ".android")) / "adbkey")
    own = Path(os.environ.get("XDG_CONFIG_HOME", Path.home() / ".config")) / "pocketbuild" / "adbkey"
    found = tuple(load_key(file) for file in files if file.is_file())
    return found or (load_key(own) if own.is_file() else make_key(own),)


def load_key(path: Path) -> AdbKey:
    """Read a key pair; a missing public half is worked out. Raises `PhoneUnauthorized` if it is no key."""
    public_path = path.with_name(f"{path.name}.pub")
    try:
        private_pem = path.read_bytes()
        public_key = public_path.read_bytes().strip() if public_path.is_file() else _encode_public_key(path)
        serialization.load_pem_private_key(private_pem, None)
    except (OSError, ValueError, TypeError) as error:
        raise PhoneUnauthorized(
            f"The adb key {path} cannot be read: {error}.",
            hint="Mend or move the named file, then connect again.",
        ) from error
    return AdbKey(path, private_pem, public_key)


def make_key(path: Path) -> AdbKey:
    """Make a key pair, private from its first byte; if another process was quicker, take its."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        fresh = Path(folder) / path.name
        fresh.touch(mode=0o600)
        keygen.keygen(str(fresh))
        try:
            os.link(fresh, path)
        except FileExistsError:
            return load_key(path)
        Path(f"{fresh}.pub").rename(path.with_name(f"{path.name}.pub"))
    return load_key(path)


def _encode_public_key(path: Path) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        public_path = Path(folder) / "adbkey.pub"
        keygen.write_public_keyfile(str(path), str(public_path))
        return public_path.read_bytes()
