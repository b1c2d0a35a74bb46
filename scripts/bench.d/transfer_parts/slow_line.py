"""A line that delays and limits, as a process of its own between a client and adbd.

    python slow_line.py HOST PORT RTT_S BYTES_PER_S    prints its port; ends when its stdin does

The kernel's netem would do it, but many kernels are built without it.
"""

import collections
import math
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

BLOCK_BYTES = 256 << 10
ON_THE_WAY_BYTES = 64 << 20
SLICE_S = 0.005


class OneWay:
    """Carries bytes from one socket to another, late and no faster than allowed."""

    def __init__(
        self, source: socket.socket, sink: socket.socket, delay_s: float, bytes_per_s: float
    ) -> None:
        self.source, self.sink = source, sink
        self.delay_s, self.bytes_per_s = delay_s, bytes_per_s
        self.waiting = collections.deque[tuple[float, bytes]]()
        self.waiting_bytes = 0
        self.changed = threading.Condition()
        # A slow line holds as much as it delays and a little of a queue, as a real one does.
        self.limit_bytes = min(ON_THE_WAY_BYTES, max(bytes_per_s * (delay_s + 0.1), BLOCK_BYTES))

    def start(self) -> None:
        for work in (self.read, self.write):
            threading.Thread(target=work, daemon=True).start()

    def read(self) -> None:
        data = b"?"
        while data:
            try:
                data = self.source.recv(BLOCK_BYTES)
            except OSError:
                data = b""
            with self.changed:
                while self.waiting_bytes > self.limit_bytes:
                    self.changed.wait()
                self.waiting.append((time.monotonic() + self.delay_s, data))
                self.waiting_bytes += len(data)
                self.changed.notify_all()

    def write(self) -> None:
        free_at = 0.0
        slice_bytes = int(min(BLOCK_BYTES, max(self.bytes_per_s * SLICE_S, 1)))
        try:
            while True:
                with self.changed:
                    while not self.waiting:
                        self.changed.wait()
                    due, data = self.waiting.popleft()
                if not data:
                    return self.sink.shutdown(socket.SHUT_WR)
                for start in range(0, len(data), slice_bytes):
                    part = data[start : start + slice_bytes]
                    free_at = max(free_at, due) + len(part) / self.bytes_per_s
                    pause_s = free_at - time.monotonic()
                    if pause_s > 0:
                        time.sleep(pause_s)
                    self.sink.sendall(part)
                with self.changed:
                    self.waiting_bytes -= len(data)
                    self.changed.notify_all()
        except OSError:
            self.source.close()


def serve(host: str, port: int, round_trip_s: float, bytes_per_s: float) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    while True:
        client, _ = listener.accept()
        phone = socket.create_connection((host, port))
        for end in (client, phone):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        OneWay(client, phone, round_trip_s / 2, bytes_per_s).start()
        OneWay(phone, client, round_trip_s / 2, bytes_per_s).start()


@contextmanager
def slow_line(
    host: str, port: int, round_trip_s: float = 0.0, bytes_per_s: float = math.inf
) -> Iterator[str]:
    """Put a line before `host:port`; gives the address to use instead."""
    command = [sys.executable, __file__, host, str(port), str(round_trip_s), str(bytes_per_s)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        yield f"127.0.0.1:{int(process.stdout.readline())}"
        process.terminate()


if __name__ == "__main__":
    worker = threading.Thread(
        target=serve,
        args=(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])),
        daemon=True,
    )
    worker.start()
    sys.stdin.read()
