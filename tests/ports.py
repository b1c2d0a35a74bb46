"""Ports for programs that are told where to listen before they do."""

import random
import socket
from collections.abc import Iterator
from contextlib import contextmanager

_chance = random.SystemRandom()


def port_to_listen_on() -> int:
    """Give a TCP port of 127.0.0.1 that nobody holds, and that nobody is given by chance meanwhile.

    It lies below those that the kernel hands to who asks for any, be it to listen or to connect.
    """
    while True:
        port = _chance.randrange(15_000, 30_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port


@contextmanager
def port_where_nobody_listens() -> Iterator[int]:
    """Hold a TCP port of 127.0.0.1 that refuses connections, and that nobody else gets meanwhile."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]
