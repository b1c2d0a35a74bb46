"""A phone's adbd as real ones behave, over real sockets, for what the box cannot show.

Old phones (byte sums, small packets, one packet in flight, sync version 1), owners who deny,
phones that stall, and peers that break the protocol. It shares no code with the client: packets
are built and read here anew. Commands of `shell,v2,raw:` run in this host's own `sh`.
"""

import datetime
import os
import ssl
import struct
import subprocess
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial

import anyio
from anyio.abc import ByteStream, SocketAttribute
from anyio.streams.buffered import BufferedByteReceiveStream
from anyio.streams.tls import TLSStream
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, utils
from cryptography.x509.oid import NameOID

from builder_bridge.adb.waiting import Signal, beside

MODERN = "shell_v2,cmd,stat_v2,ls_v2,sendrecv_v2,delayed_ack"
ANDROID_9 = "shell_v2,cmd,stat_v2"
WINDOW_BYTES = 1 << 20


def packet(command: bytes, arg0: int, arg1: int, payload: bytes = b"", *, with_sum: bool = True) -> bytes:
    """Build a packet as adbd does."""
    number = int.from_bytes(command, "little")
    byte_sum = sum(payload) & 0xFFFFFFFF if with_sum else 0
    return struct.pack("<6I", number, arg0, arg1, len(payload), byte_sum, number ^ 0xFFFFFFFF) + payload


@dataclass
class FakePhone:
    """What the phone is like, and what it has seen."""

    features: str = MODERN
    version: int = 0x01000001
    max_payload_bytes: int = 1 << 20
    serial: str = "FAKE0001"
    known_keys: list[bytes] = field(default_factory=list)
    """Private keys (PEM) whose signatures are accepted."""
    wants_auth: bool = False
    wants_tls: bool = False
    owner: str = "ignores"
    """At the dialog: `allows`, `denies` or `ignores`."""
    files: dict[str, bytes] = field(default_factory=dict)
    modes: dict[str, tuple[int, int]] = field(default_factory=dict)
    refuses_writes_after: int | None = None
    """Answer FAIL once so many bytes of a file have come."""
    fail_text: str = "No space left on device"
    claims_bytes: int | None = None
    """Tell this as the size of every file, whatever it is."""
    window_bytes: int = WINDOW_BYTES
    acknowledges_every_bytes: int = 1
    """Acknowledge what was taken in portions of so many bytes at least."""
    takes_nothing: bool = False
    """Answer the greeting and then no packet any more."""
    port: int = 0
    connections: int = 0
    services: list[str] = field(default_factory=list)
    was_asked: Signal = field(default_factory=Signal)
    """Tells of each new one among `services`."""

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    async def serve(self, stream: ByteStream) -> None:
        self.connections += 1
        try:
            await _Connection(self, stream).run()
        except* (anyio.BrokenResourceError, anyio.EndOfStream, anyio.IncompleteRead, OSError):
            pass


@asynccontextmanager
async def open_phone(phone: FakePhone | None = None) -> AsyncIterator[FakePhone]:
    """Let a phone listen on a free port of loopback."""
    phone = phone or FakePhone()
    async with open_peer(phone.serve) as port:
        phone.port = port
        yield phone


@asynccontextmanager
async def open_peer(serve: Callable[[ByteStream], Awaitable[None]]) -> AsyncIterator[int]:
    """Let any peer, however it behaves, listen on a free port of loopback; gives the port."""

    async def serve_and_close(stream: ByteStream) -> None:
        async with stream:
            await serve(stream)

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener, beside(partial(listener.serve, serve_and_close)):
        yield listener.extra(SocketAttribute.local_port)


class _Connection:
    def __init__(self, phone: FakePhone, stream: ByteStream) -> None:
        self.phone = phone
        self.wire = stream
        self.reader = BufferedByteReceiveStream(stream)
        self.sending = anyio.Lock()
        self.streams: dict[int, _Service] = {}
        self.last_id = 100
        self.peer_max = 4096
        self.has_windows = False

    async def run(self) -> None:
        if not await self.greet():
            return
        async with anyio.create_task_group() as tasks:
            while True:
                command, arg0, arg1, payload = await self.receive()
                if self.phone.takes_nothing:
                    continue
                if command == b"OPEN":
                    self.last_id += 1
                    name = payload.rstrip(b"\0").decode()
                    self.phone.services.append(name)
                    self.phone.was_asked.notify()
                    service = _Service(self, self.last_id, arg0, arg1)
                    run = service.find(name)
                    if run is None:
                        service.arrived_send.close()
                        service.arrived.close()
                        await self.send(b"CLSE", 0, arg0)
                        continue
                    self.streams[self.last_id] = service
                    await service.grant(self.phone.window_bytes)
                    tasks.start_soon(service.live, run)
                elif arg1 in self.streams:
                    await self.streams[arg1].take(command, payload)

    async def greet(self) -> bool:
        command, version, self.peer_max, banner = await self.receive()
        assert command == b"CNXN"
        assert version == 0x01000001
        if self.phone.wants_tls:
            await self.send(b"STLS", 0x01000000, 0)
            command, *_ = await self.receive()
            assert command == b"STLS"
            context = _tls_context()
            self.wire = await TLSStream.wrap(
                self.wire, server_side=True, ssl_context=context, standard_compatible=False
            )
            self.reader = BufferedByteReceiveStream(self.wire)
        elif self.phone.wants_auth and not await self.authorize():
            return False
        self.has_windows = "delayed_ack" in self.phone.features and b"delayed_ack" in banner
        text = f"device::ro.product.name=fake;ro.product.model=Fake;features={self.phone.features}"
        await self.send(b"CNXN", self.phone.version, self.phone.max_payload_bytes, text.encode())
        self.peer_max = min(self.peer_max, self.phone.max_payload_bytes)
        return True

    async def authorize(self) -> bool:
        while True:
            token = os.urandom(20)
            await self.send(b"AUTH", 1, 0, token)
            command, kind, _, payload = await self.receive()
            assert command == b"AUTH"
            if kind == 2 and any(_is_signed(key, token, payload) for key in self.phone.known_keys):
                return True
            if kind == 3 and self.phone.owner == "allows":
                return True
            if kind == 3 and self.phone.owner == "ignores":
                await anyio.sleep_forever()

    async def receive(self) -> tuple[bytes, int, int, bytes]:
        header = await self.reader.receive_exactly(24)
        command, arg0, arg1, size_bytes, byte_sum, magic = struct.unpack("<6I", header)
        assert command ^ magic == 0xFFFFFFFF
        assert size_bytes <= max(self.phone.max_payload_bytes, 4096)
        payload = await self.reader.receive_exactly(size_bytes) if size_bytes else b""
        if self.phone.version == 0x01000000:
            assert byte_sum == sum(payload) & 0xFFFFFFFF, "the client owes an old phone a byte sum"
        return command.to_bytes(4, "little"), arg0, arg1, payload

    async def send(self, command: bytes, arg0: int, arg1: int, payload: bytes = b"") -> None:
        with_sum = self.phone.version == 0x01000000
        async with self.sending:
            await self.wire.send(packet(command, arg0, arg1, payload, with_sum=with_sum))


class _Service:
    """One stream, as adbd's side of it."""

    def __init__(self, connection: _Connection, own_id: int, peer_id: int, window_bytes: int) -> None:
        self.connection = connection
        self.phone = connection.phone
        self.own_id, self.peer_id = own_id, peer_id
        self.credit = window_bytes if connection.has_windows else 1
        self.credited = anyio.Event()
        self.arrived_send, self.arrived = anyio.create_memory_object_stream[bytes](1000)
        self.reader = BufferedByteReceiveStream(_Arrivals(self))
        self.scope = anyio.CancelScope()
        self.unread = b""

    def find(self, name: str) -> Callable[[], Awaitable[None]] | None:
        if name == "sync:":
            return self.sync
        if name.startswith("shell,v2,raw:"):
            return partial(self.shell, name.partition(":")[2])
        if name.startswith("sink:"):
            return partial(self.sink, int(name.partition(":")[2]))
        return None

    async def live(self, run: Callable[[], Awaitable[None]]) -> None:
        with self.arrived_send, self.arrived, self.scope:
            with suppress(anyio.EndOfStream, anyio.IncompleteRead, anyio.ClosedResourceError):
                await run()
            await self.connection.send(b"CLSE", self.own_id, self.peer_id)
        self.connection.streams.pop(self.own_id, None)

    async def grant(self, size_bytes: int) -> None:
        payload = struct.pack("<i", size_bytes) if self.connection.has_windows else b""
        await self.connection.send(b"OKAY", self.own_id, self.peer_id, payload)

    async def take(self, command: bytes, payload: bytes) -> None:
        if command == b"OKAY":
            assert bool(payload) == self.connection.has_windows
            self.credit += struct.unpack("<i", payload)[0] if payload else 1
            self.credited.set()
            self.credited = anyio.Event()
        elif command == b"WRTE":
            with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):  # it has just ended
                await self.arrived_send.send(payload)
        elif command == b"CLSE":
            self.scope.cancel()

    async def write(self, data: bytes) -> None:
        while data:
            while self.credit <= 0:
                await self.credited.wait()
            part = data[: self.connection.peer_max]
            data = data[len(part) :]
            self.credit -= len(part) if self.connection.has_windows else 1
            await self.connection.send(b"WRTE", self.own_id, self.peer_id, part)

    async def sink(self, size_bytes: int) -> None:
        await self.reader.receive_exactly(size_bytes)

    async def shell(self, command: str) -> None:
        if command == "getprop ro.serialno":
            command = f"echo {self.phone.serial}"
        with anyio.CancelScope(shield=True):  # given up half-way, asyncio would leave the pipes open
            process = await anyio.open_process(["sh", "-c", command], stdin=subprocess.PIPE)
        try:
            async with anyio.create_task_group() as tasks:
                async with anyio.create_task_group() as outputs:
                    tasks.start_soon(self.feed_stdin, process)
                    outputs.start_soon(self.tell_output, 1, process.stdout)
                    outputs.start_soon(self.tell_output, 2, process.stderr)
                code = await process.wait()
                tasks.cancel_scope.cancel()
            await self.write(struct.pack("<BIB", 3, 1, code if code >= 0 else 128 - code))
        finally:
            if process.returncode is None:
                process.terminate()
            with anyio.CancelScope(shield=True):
                await process.aclose()

    async def tell_output(self, kind: int, output: anyio.abc.ByteReceiveStream) -> None:
        async for data in output:
            await self.write(struct.pack("<BI", kind, len(data)) + data)

    async def feed_stdin(self, process: anyio.abc.Process) -> None:
        while True:
            kind, size_bytes = struct.unpack("<BI", await self.reader.receive_exactly(5))
            data = await self.reader.receive_exactly(size_bytes) if size_bytes else b""
            try:
                if kind == 4:
                    await process.stdin.aclose()
                elif kind == 0:
                    await process.stdin.send(data)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                pass

    async def sync(self) -> None:
        while True:
            kind, size_bytes = struct.unpack("<4sI", await self.reader.receive_exactly(8))
            text = (await self.reader.receive_exactly(size_bytes)).decode() if size_bytes else ""
            match kind:
                case b"STAT":
                    await self.write(b"STAT" + struct.pack("<III", *self.stat(text)))
                case b"STA2":
                    mode, size, mtime = self.stat(text)
                    fields = (0 if mode else 2, 1, 1, mode, 1, 0, 0, size, 0, mtime, 0)
                    await self.write(b"STA2" + struct.pack("<IQQIIIIQqqq", *fields))
                case b"LIST":
                    for path in sorted(self.phone.files):
                        folder, _, name = path.rpartition("/")
                        if folder == text:
                            entry = struct.pack("<4sIIII", b"DENT", *self.stat(path), len(name))
                            await self.write(entry + name.encode())
                    await self.write(struct.pack("<4sIIII", b"DONE", 0, 0, 0, 0))
                case b"SEND":
                    path, _, mode = text.rpartition(",")
                    if not await self.take_file(path, int(mode)):
                        return
                case b"SND2":
                    _, mode, flags = struct.unpack("<4sII", await self.reader.receive_exactly(12))
                    assert flags == 0
                    if not await self.take_file(text, mode):
                        return
                case b"RECV" | b"RCV2":
                    if kind == b"RCV2":
                        await self.reader.receive_exactly(8)
                    if not await self.give_file(text):
                        return
                case _:
                    return

    def stat(self, path: str) -> tuple[int, int, int]:
        if path not in self.phone.files:
            return 0, 0, 0
        mode, mtime = self.phone.modes.get(path, (0o100644, 0))
        claimed = self.phone.claims_bytes
        return mode, len(self.phone.files[path]) if claimed is None else claimed, mtime

    async def take_file(self, path: str, mode: int) -> bool:
        content = bytearray()
        while True:
            kind, number = struct.unpack("<4sI", await self.reader.receive_exactly(8))
            if kind == b"DONE":
                break
            assert kind == b"DATA"
            assert number <= 64 << 10
            content += await self.reader.receive_exactly(number)
            refused_after = self.phone.refuses_writes_after
            if refused_after is not None and len(content) > refused_after:
                return await self.fail(self.phone.fail_text)
        self.phone.files[path] = bytes(content)
        self.phone.modes[path] = (mode, number)
        await self.write(struct.pack("<4sI", b"OKAY", 0))
        return True

    async def give_file(self, path: str) -> bool:
        if path not in self.phone.files:
            return await self.fail("No such file or directory")
        content = self.phone.files[path]
        for start in range(0, len(content), 64 << 10):
            part = content[start : start + (64 << 10)]
            await self.write(struct.pack("<4sI", b"DATA", len(part)) + part)
        await self.write(struct.pack("<4sI", b"DONE", 0))
        return True

    async def fail(self, text: str) -> bool:
        """Say why, and go on reading as adbd does, so that the client's bytes do not pile up."""
        await self.write(struct.pack("<4sI", b"FAIL", len(text)) + text.encode())
        return False


class _Arrivals(anyio.abc.ByteReceiveStream):
    """What the client wrote to a stream; taking it grants credit."""

    def __init__(self, service: _Service) -> None:
        self.service = service
        self.ungranted_bytes = 0

    async def receive(self, max_bytes: int = 65536) -> bytes:
        data = await self.service.arrived.receive()
        self.ungranted_bytes += len(data)
        if self.ungranted_bytes >= self.service.phone.acknowledges_every_bytes:
            await self.service.grant(self.ungranted_bytes)
            self.ungranted_bytes = 0
        return data

    async def aclose(self) -> None:
        self.service.arrived.close()


def _is_signed(private_pem: bytes, token: bytes, signature: bytes) -> bool:
    key = serialization.load_pem_private_key(private_pem, None)
    try:
        key.public_key().verify(signature, token, padding.PKCS1v15(), utils.Prehashed(hashes.SHA1()))
    except InvalidSignature:
        return False
    return True


def _tls_context() -> ssl.SSLContext:
    """Make a phone's side of TLS, which knows every client."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Adb")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    with tempfile.NamedTemporaryFile() as chain:
        chain.write(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
            + certificate.public_bytes(serialization.Encoding.PEM)
        )
        chain.flush()
        context.load_cert_chain(chain.name)
    return context
