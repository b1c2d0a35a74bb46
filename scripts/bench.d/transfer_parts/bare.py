"""The bare protocol: the least that a client must do to push one file, as a floor for ours.

One blocking socket, one file after the other, nothing but SEND, DATA and DONE in the largest packets
that adbd takes: no names of faults, no cancelling, no second stream, no pings, no keys.
"""

import os
import socket
import struct
from pathlib import Path, PurePosixPath

CHUNK_BYTES, CHUNKS = 64 << 10, 15
IN_FLIGHT_BYTES = 2 << 20


class BareClient:
    """Speaks with one adbd that lets anyone in and has `delayed_ack`, and pushes files to it."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._stream_id = 0
        self._send(b"CNXN", 0x01000001, 1 << 20, b"host::features=sendrecv_v2,delayed_ack")
        command, *_ = self._receive()
        assert command == b"CNXN", command
        slot = struct.pack("<4sI", b"DATA", CHUNK_BYTES) + bytes(CHUNK_BYTES)
        self._block = memoryview(bytearray(slot * CHUNKS))
        self._slots = [
            self._block[start + 8 : start + len(slot)] for start in range(0, len(self._block), len(slot))
        ]

    def push(self, source: Path, destination: PurePosixPath) -> None:
        """Send one file of whole chunks."""
        self._stream_id += 1
        self._send(b"OPEN", self._stream_id, 32 << 20, b"sync:\0")
        command, remote_id, _, _ = self._receive()
        assert command == b"OKAY", command
        path, in_flight = str(destination).encode(), 0
        head = struct.pack("<4sI", b"SND2", len(path)) + path + struct.pack("<4sII", b"SND2", 0o100644, 0)
        self._send(b"WRTE", self._stream_id, remote_id, head)
        with source.open("rb", buffering=0) as file:
            while read := os.readv(file.fileno(), self._slots):
                assert read % CHUNK_BYTES == 0, "the floor sends whole chunks only"
                block = self._block[: read + read // CHUNK_BYTES * 8]
                self._send(b"WRTE", self._stream_id, remote_id, block)
                in_flight += len(block)
                while in_flight > IN_FLIGHT_BYTES:
                    in_flight -= self._take_credit()
        self._send(b"WRTE", self._stream_id, remote_id, struct.pack("<4sI", b"DONE", 0))
        while self._take_credit():
            pass
        self._send(b"CLSE", self._stream_id, remote_id)
        while self._receive()[0] != b"CLSE":
            pass

    def _take_credit(self) -> int:
        """Give the bytes that a packet acknowledges; none for the answer that the file is there."""
        command, _, _, payload = self._receive()
        if command == b"OKAY":
            size_bytes: int = struct.unpack("<i", payload)[0]
            return size_bytes
        assert payload[:4] == b"OKAY", payload
        return 0

    def _send(self, command: bytes, arg0: int, arg1: int, payload: bytes | memoryview = b"") -> None:
        number = int.from_bytes(command, "little")
        byte_sum = sum(payload) if command == b"CNXN" else 0
        header = struct.pack("<6I", number, arg0, arg1, len(payload), byte_sum, number ^ 0xFFFFFFFF)
        sent = self._socket.sendmsg([header, payload])
        self._socket.sendall(
            (header + bytes(payload))[sent:] if sent < len(header) else payload[sent - len(header) :]
        )

    def _receive(self) -> tuple[bytes, int, int, bytes]:
        command, arg0, arg1, size_bytes = struct.unpack("<4s3I8x", self._exactly(24))
        return command, arg0, arg1, self._exactly(size_bytes) if size_bytes else b""

    def _exactly(self, size_bytes: int) -> bytes:
        data = self._socket.recv(size_bytes, socket.MSG_WAITALL)
        assert len(data) == size_bytes, "adbd closed the connection"
        return data
