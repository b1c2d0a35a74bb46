"""What is moved: the payloads on this host's disk, and what is done with them."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

from transfer_parts.peers import Floor, Peer

PLACE = PurePosixPath("/data/local/tmp/bench")
ROUND_TRIPS = 20
CHUNK_BYTES = 64 << 10


@dataclass(frozen=True)
class Row:
    """One thing to do; `size_bytes` 0 counts calls instead of bytes.

    `kind` picks the bar; `floor` is the same work for a floor, where one can do it.
    """

    name: str
    kind: str
    size_bytes: int
    work: Callable[[Peer], object]
    prepare: Callable[[], object] = lambda: None
    floor: Callable[[Floor], object] | None = None


def make_rows(folder: Path, scale: float, bulk: float) -> list[Row]:
    """Lay out the files and say what is done with them; `bulk` scales the large ones further."""
    folder.mkdir()
    large, packed = folder / "large", folder / "packed.zip"
    for file, megabytes in ((large, 100), (packed, 50)):
        file.write_bytes(os.urandom(int(megabytes * scale * bulk * (1 << 20)) // CHUNK_BYTES * CHUNK_BYTES))
    many, many_count = folder / "many", int(2000 * scale)
    for number in range(many_count):
        path = many / f"d{number % 20}" / f"f{number}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.urandom(4096))
    sources = folder / "sources"
    source_bytes = copy_sources(sources, 15e6 * scale)
    out_bytes = int((200 << 20) * scale * bulk)

    def read_output(peer: Peer) -> None:
        size_bytes = peer.stdout_bytes(f"head -c {out_bytes} /dev/zero")
        assert size_bytes == out_bytes, (peer.name, size_bytes)

    def push(file: Path, peer: Floor) -> None:
        peer.push(file, PLACE / file.name)

    large_bytes, packed_bytes = large.stat().st_size, packed.stat().st_size
    return [
        Row(
            f"push {named(large_bytes)}",
            "push",
            large_bytes,
            partial(push, large),
            floor=partial(push, large),
        ),
        Row(
            f"pull {named(large_bytes)}",
            "pull",
            large_bytes,
            lambda peer: peer.pull(PLACE / "large", folder / "back"),
            partial((folder / "back").unlink, missing_ok=True),
        ),
        Row(
            f"push {named(packed_bytes)} zip",
            "push",
            packed_bytes,
            partial(push, packed),
            floor=partial(push, packed),
        ),
        Row(
            f"push {many_count:,} x 4 KB", "many", 4096 * many_count, lambda peer: peer.push_tree(many, PLACE)
        ),
        Row(
            f"push {source_bytes / 1e6:.0f} MB of sources",
            "many",
            source_bytes,
            lambda peer: peer.push_tree(sources, PLACE),
        ),
        Row("shell round trip", "call", 0, lambda peer: [peer.shell("true") for _ in range(ROUND_TRIPS)]),
        Row(f"stdout {named(out_bytes)}", "stdout", out_bytes, read_output),
    ]


def named(size_bytes: int) -> str:
    return f"{size_bytes >> 20} MB"


def copy_sources(folder: Path, limit_bytes: float) -> int:
    """Copy Python's own library, file after file, until there is enough of it."""
    folder.mkdir()
    copied_bytes = 0
    for path in sorted(Path(os.__file__).parent.rglob("*.py")):
        if copied_bytes > limit_bytes:
            break
        (folder / f"{copied_bytes}.py").write_bytes(path.read_bytes())
        copied_bytes += path.stat().st_size
    return copied_bytes
