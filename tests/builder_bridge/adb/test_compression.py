"""What is compressed, by what, in which portions, and what damaged or swelling content comes to."""

import os
import struct
from pathlib import Path, PurePosixPath

import pytest

from builder_bridge.adb import connect, sync
from builder_bridge.adb.compression import (
    ALGORITHMS,
    BROTLI,
    LZ4,
    ZSTD,
    Algorithm,
    choose_algorithm,
    gives_in,
    is_packed,
)
from builder_bridge.adb.content import LOT_BYTES, Encoder, PushFile
from builder_bridge.adb.packets import Buffer
from builder_bridge.errors import (
    ProtocolFault,
    TransferFault,
)
from tests.builder_bridge.adb.test_sync import PLACE, anyio_test, names_in
from tests.fakes_adb import MODERN, FakePhone, open_phone

SOURCE_TEXT = b"".join(
    b"public static final int answer%d = %d; // the same words again and again\n" % (number, number**2)
    for number in range(20_000)
)


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda algorithm: algorithm.name)
def test_what_an_algorithm_makes_small_it_makes_large_again(algorithm: Algorithm) -> None:
    compressor = algorithm.new_compressor()
    small = compressor.add(SOURCE_TEXT[:1000]) + compressor.add(SOURCE_TEXT[1000:]) + compressor.end()
    assert len(small) < len(SOURCE_TEXT) / 5
    for step in (100, 65536, len(small)):
        large = bytearray()
        decompress = algorithm.new_decompress(large.extend)
        for start in range(0, len(small), step):
            decompress(small[start : start + step])
        assert large == SOURCE_TEXT


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda algorithm: algorithm.name)
def test_what_swells_comes_in_small_portions_and_can_be_stopped(algorithm: Algorithm) -> None:
    compressor = algorithm.new_compressor()
    bomb = compressor.add(bytes(64 << 20)) + compressor.end()
    portions = list[int]()

    def write(portion: Buffer) -> None:
        portions.append(len(portion))
        if len(portions) == 3:
            raise TransferFault("That is enough.")

    with pytest.raises(TransferFault):
        algorithm.new_decompress(write)(bomb)
    assert len(portions) == 3
    assert max(portions) <= 8 << 20


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda algorithm: algorithm.name)
def test_damaged_compression_is_a_protocol_fault(algorithm: Algorithm) -> None:
    with pytest.raises(ProtocolFault, match=algorithm.name):
        algorithm.new_decompress(lambda portion: None)(b"\xff" * 1000)


ALL = frozenset(algorithm.feature for algorithm in ALGORITHMS)


@pytest.mark.parametrize(
    ("features", "bytes_per_s", "chosen"),
    [
        (ALL, None, None),
        (ALL, 1e6, ZSTD),
        (ALL, 60e6, LZ4),
        (ALL, 900e6, None),
        (frozenset({BROTLI.feature}), 10e6, BROTLI),
        (frozenset({BROTLI.feature}), 60e6, None),
        (frozenset(), 1e6, None),
    ],
)
def test_the_algorithm_follows_the_line_and_the_phone(
    features: frozenset[str], bytes_per_s: float | None, chosen: Algorithm | None
) -> None:
    assert choose_algorithm(features, bytes_per_s) is chosen


def test_only_content_that_gives_in_is_compressed() -> None:
    assert gives_in(SOURCE_TEXT[:65536])
    assert not gives_in(os.urandom(65536))
    assert not gives_in(b"")
    assert is_packed(PurePosixPath("/out/App-Debug.APK"))
    assert not is_packed(PurePosixPath("/src/Main.java"))


def flag_of(encoded: bytes) -> int:
    second = encoded.index(b"SND2", 4)
    flag: int = struct.unpack_from("<I", encoded, second + 8)[0]
    return flag


@pytest.mark.parametrize(
    ("name", "content", "flag"),
    [
        ("Main.java", SOURCE_TEXT[:60000], 4),
        ("noise", os.urandom(60000), 0),
        ("a.apk", SOURCE_TEXT[:60000], 0),
        ("Large.java", SOURCE_TEXT[:60000] * 4, 4),
        ("noise of several chunks", os.urandom(200_000), 0),
    ],
)
def test_each_file_is_compressed_on_its_own_merit(name: str, content: bytes, flag: int) -> None:
    count, encoded = Encoder(0, ZSTD).encode_lot([PushFile(content, PurePosixPath(name))])
    assert count == 1
    assert flag_of(encoded) == flag
    assert (len(encoded) < len(content)) == bool(flag)


def test_a_lot_ends_where_it_is_full_or_a_file_must_be_streamed(tmp_path: Path) -> None:
    large = tmp_path / "large"
    large.write_bytes(bytes(LOT_BYTES + 1))
    small = [PushFile(bytes(LOT_BYTES // 2), PurePosixPath(str(number))) for number in range(3)]
    encoder = Encoder(0)
    assert encoder.encode_lot(small)[0] == 2
    assert encoder.encode_lot([small[0], PushFile(large, PLACE), small[1]])[0] == 1
    assert encoder.encode_lot([PushFile(large, PLACE)]) == (0, b"")
    assert encoder.encode_lot([PushFile(bytes(LOT_BYTES + 1), PLACE)]) == (0, b"")


@anyio_test
@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda algorithm: algorithm.name)
async def test_a_decompression_bomb_is_ended_by_name(algorithm: Algorithm, tmp_path: Path) -> None:
    compressor = algorithm.new_compressor()
    bomb = compressor.add(bytes(64 << 20)) + compressor.end()
    phone = FakePhone(
        files={str(PLACE): bomb}, claims_bytes=1 << 20, features=f"{MODERN},{algorithm.feature}"
    )
    async with open_phone(phone), connect(phone.address, keys=()) as adb:
        adb.line_bytes_per_s = 1e6
        with pytest.raises(TransferFault, match=r"More bytes .* than the 1048576 "):
            await sync.pull(adb, PLACE, tmp_path / "back")
    assert names_in(tmp_path) == []
