"""Fuzz all that reads a phone's bytes: ADB packets and streams, sync, shell, banners, adb servers.

    .venv/bin/python scripts/fuzz.d/adb.py [--seconds 60] [--seed N]

Sessions that a phone could hold are made, then damaged. Each must give the same events whole and in
random pieces, or end in the same ProtocolFault; nothing else may be raised, and no more bytes may be
kept than came in. Where atheris is installed, coverage leads the second half of the search. A failing
input is written to a file, with the seed that made it, and the exit code is above 0.
"""

import argparse
import random
import struct
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

from guided import coverage

with coverage.watched("builder_bridge.adb"):
    from builder_bridge.adb.events import StreamData, parse_banner
    from builder_bridge.adb.protocol import AdbProtocol
    from builder_bridge.adb.server import parse_phones
    from builder_bridge.adb.shell import ShellReader
    from builder_bridge.adb.sync_packets import Data, SyncReader
    from builder_bridge.errors import ProtocolFault

COMMANDS = (b"CNXN", b"AUTH", b"STLS", b"OPEN", b"OKAY", b"WRTE", b"CLSE", b"SYNC", b"????")
SYNC_KINDS = (b"DATA", b"DONE", b"OKAY", b"FAIL", b"STAT", b"STA2", b"LST2", b"DENT", b"DNT2", b"QUIT")
STREAMS = 3
ODD_NUMBERS = (0, 1, 2, 3, 4, 5, 77, 4095, 4097, 65536, 65537, 1 << 20, (1 << 20) + 1, 1 << 31, 0xFFFFFFFF)
Trace = list[object]


def read_wire(pieces: list[bytes], features: str) -> Trace:
    """Feed a connection and tell what came of it, data of one stream joined."""
    protocol = AdbProtocol(features.split(","))
    for _ in range(STREAMS):
        protocol.open("shell:", 1 << 16)
    trace: Trace = []
    data: dict[int, bytearray] = {}
    try:
        for piece in pieces:
            for event in protocol.feed(piece):
                if isinstance(event, StreamData):
                    data.setdefault(event.stream_id, bytearray()).extend(event.data)
                else:
                    trace.append(event)
    except ProtocolFault as fault:
        trace.append(str(fault))
    return [*trace, data, b"".join(protocol.take_output())]


def read_sync(pieces: list[bytes], entry: str) -> Trace:
    """Feed a sync session, its content joined."""
    reader, content, trace = SyncReader(entry.encode()), bytearray(), list[object]()
    try:
        for piece in pieces:
            for answer in reader.feed(piece):
                if isinstance(answer, Data):
                    content.extend(answer.data)
                else:
                    trace.append(answer)
    except ProtocolFault as fault:
        trace.append(str(fault))
    return [*trace, bytes(content)]


def read_shell(pieces: list[bytes], _: str) -> Trace:
    """Feed a shell stream, each output joined."""
    reader, output, trace = ShellReader(), {1: bytearray(), 2: bytearray()}, list[object]()
    try:
        for piece in pieces:
            for stream, data in reader.feed(piece):
                output[stream].extend(data)
    except ProtocolFault as fault:
        trace.append(str(fault))
    return [*trace, output, reader.exit_code]


READERS: dict[str, tuple[Callable[[list[bytes], str], Trace], tuple[str, ...]]] = {
    "wire": (read_wire, ("shell_v2", "shell_v2,delayed_ack")),
    "sync": (read_sync, ("DONE", "DENT", "DNT2")),
    "shell": (read_shell, ("",)),
}


def check(data: bytes, rng: random.Random) -> None:
    """Hold every reader to its word on these bytes."""
    cuts = sorted({0, len(data), *(rng.randint(0, len(data)) for _ in range(rng.randint(0, 12)))})
    pieces = [data[start:end] for start, end in pairwise(cuts)]
    for read, kinds in READERS.values():
        for kind in kinds:
            whole, cut = read([data], kind), read(pieces, kind)
            assert whole == cut, (kind, whole, cut)
    parse_banner(data)
    parse_phones(data.decode("utf-8", "replace"))


def packet(command: bytes, arg0: int, arg1: int, payload: bytes, rng: random.Random) -> bytes:
    number = int.from_bytes(command, "little")
    size = len(payload) if rng.random() < 0.97 else rng.choice(ODD_NUMBERS)
    magic = number ^ 0xFFFFFFFF if rng.random() < 0.99 else 0
    byte_sum = sum(payload) if rng.random() < 0.9 else 0
    return struct.pack("<6I", number, arg0 & 0xFFFFFFFF, arg1, size, byte_sum, magic) + payload


def make_wire(rng: random.Random) -> bytes:
    """Make a session: mostly a greeting, streams that open, then packets of all kinds."""
    with_windows = rng.random() < 0.5
    banner = b"device::ro.x=y;features=shell_v2" + (b",delayed_ack" if with_windows else b"")
    version = rng.choice((0x01000000, 0x01000001))
    parts = [packet(b"CNXN", version, rng.choice((4096, 1 << 20)), banner, rng)] if rng.random() < 0.9 else []
    credit = struct.pack("<i", 1 << 16) if with_windows else b""
    opened = (number for number in range(1, STREAMS + 1) if rng.random() < 0.9)
    parts += [packet(b"OKAY", 70 + number, number, credit, rng) for number in opened]
    for _ in range(rng.randint(0, 20)):
        number = rng.randint(1, STREAMS) if rng.random() < 0.95 else rng.choice(ODD_NUMBERS)
        command = (
            rng.choice((b"WRTE", b"WRTE", b"OKAY", b"CLSE")) if rng.random() < 0.9 else rng.choice(COMMANDS)
        )
        payload = (
            credit if command == b"OKAY" else b"" if command == b"CLSE" else rng.randbytes(rng.randint(0, 60))
        )
        parts.append(packet(command, 70 + number if rng.random() < 0.95 else 0, number, payload, rng))
    return b"".join(parts)


def make_sync(rng: random.Random) -> bytes:
    parts = []
    for _ in range(rng.randint(1, 10)):
        kind = rng.choice(SYNC_KINDS)
        text = rng.randbytes(rng.randint(0, 30))
        size = len(text) if rng.random() < 0.9 else rng.choice(ODD_NUMBERS)
        fields = {b"STAT": 12, b"STA2": 68, b"LST2": 68, b"DENT": 12, b"DNT2": 68}.get(kind, 0)
        parts.append(kind + rng.randbytes(fields) + struct.pack("<I", size) + text)
    return b"".join(parts)


def make_shell(rng: random.Random) -> bytes:
    parts = []
    for _ in range(rng.randint(1, 10)):
        text = rng.randbytes(rng.randint(0, 30))
        kind = rng.choice((1, 2, 1, 2, 3)) if rng.random() < 0.95 else rng.randint(0, 255)
        parts.append(struct.pack("<BI", kind, len(text)) + text)
    return b"".join(parts)


def make_input(rng: random.Random) -> bytes:
    data = bytearray(rng.choice((make_wire, make_wire, make_sync, make_shell))(rng))
    for _ in range(rng.choice((0, 0, 1, 3))):
        if data:
            data[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(data[: rng.randint(0, len(data))] if rng.random() < 0.1 else data)


def run_random(seconds: float, seed: int) -> int:
    deadline, count = time.monotonic() + seconds, 0
    while time.monotonic() < deadline:
        rng = random.Random(f"{seed}-{count}")
        data = make_input(rng)
        try:
            check(data, rng)
        except Exception:  # noqa: BLE001 - whatever a reader raises is what is looked for
            file = Path(tempfile.gettempdir()) / f"fuzz-adb-{seed}-{count}.bin"
            file.write_bytes(data)
            traceback.print_exc()
            print(f"seed {seed}, input {count}: written to {file}", file=sys.stderr)
            return 1
        count += 1
    print(f"adb: {count} inputs, seed {seed}, nothing found")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    options = parser.parse_args()
    seconds, seed = coverage.share(options.seconds), options.seed
    code = run_random(seconds, seed)
    seeds = (make_input(random.Random(f"{seed}-{number}")) for number in range(300))
    return code or coverage.search(lambda data: check(data, random.Random(seed)), seeds, seconds, seed)


if __name__ == "__main__":
    sys.exit(main())
