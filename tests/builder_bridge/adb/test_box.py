"""The real adbd of the phone in a box, and Google's own adb beside ours."""

import hashlib
import os
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path, PurePosixPath

import anyio
import pytest
from adb_shell.adb_device import AdbDeviceTcp
from adb_shell.transport.tcp_transport import TcpTransport

from builder_bridge.adb import AdbConnection, connect, shell, sync
from builder_bridge.adb.blocking_wire import open_blocking
from builder_bridge.adb.compression import ALGORITHMS, Algorithm
from builder_bridge.adb.keys import AdbKey, make_key
from builder_bridge.adb.line import line_speed
from builder_bridge.adb.sync import PushFile
from builder_bridge.adb.transports import connect_over
from builder_bridge.box import Box, Kind, Mode, restart_adbd
from builder_bridge.box.owner import Answer, allow_key, answer_dialogs, forget_keys
from builder_bridge.errors import (
    PathRefused,
    PhoneLost,
    PhoneNotPaired,
    PhoneUnauthorized,
    ServiceRefused,
)
from tests.box.fixtures import BoxFactory
from tests.chaos import Faults, open_chaos
from tests.real_adb import RealAdb, newest_adb, start_server

pytestmark = [pytest.mark.anyio, pytest.mark.box]
TMP = PurePosixPath("/data/local/tmp")


@pytest.fixture(scope="session")
def key(tmp_path_factory: pytest.TempPathFactory) -> AdbKey:
    return make_key(tmp_path_factory.mktemp("keys") / "adbkey")


@pytest.fixture
def folder(request: pytest.FixtureRequest) -> PurePosixPath:
    """A folder on the phone of the test's own; the box is thrown away with all of them."""
    return TMP / hashlib.sha256(request.node.nodeid.encode()).hexdigest()[:16]


@pytest.fixture(scope="session")
def google(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealAdb]:
    try:
        program = newest_adb()
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        if os.environ.get("POCKETBUILD_REQUIRE_BOX") == "1":
            raise
        pytest.skip(f"Google's adb cannot be fetched here: {error}")
    adb = start_server(program, tmp_path_factory.mktemp("home"))
    yield adb
    adb("kill-server")


async def sha256_of(adb: AdbConnection, path: PurePosixPath) -> str:
    return (await shell.run(adb, f"sha256sum {path}")).stdout.decode().split()[0]


async def test_the_real_adbd_lets_us_in_with_windows_and_its_serial(tiny_box: Box) -> None:
    async with connect(tiny_box.serial) as adb:
        assert {"shell_v2", "stat_v2", "sendrecv_v2_zstd", "delayed_ack"} <= adb.features
        assert adb.serial == tiny_box.name
        assert adb.banner.state == "device"
        assert adb.banner.properties["ro.product.model"]


async def test_exit_codes_streams_and_stdin_are_the_commands_own(tiny_box: Box) -> None:
    async with connect(tiny_box.serial) as adb:
        assert await shell.run(adb, "echo out; echo err >&2; exit 7") == shell.ShellResult(
            7, b"out\n", b"err\n"
        )
        assert (await shell.run(adb, "kill -9 $$")).exit_code == 137
        sent = os.urandom(3_000_001)
        assert (await shell.run(adb, "cat", sent)).stdout == sent
        assert (await shell.run(adb, "no-such-command")).exit_code == 127
        assert (await shell.run(adb, r"printf '\r\n\000\377'")).stdout == b"\r\n\0\xff"


async def test_a_file_and_its_times_come_back_as_they_went(
    tiny_box: Box, folder: PurePosixPath, tmp_path: Path
) -> None:
    source = tmp_path / "there"
    source.write_bytes(os.urandom(5_000_001))
    os.utime(source, (1_600_000_000, 1_600_000_000))
    async with connect(tiny_box.serial) as adb:
        await sync.push(adb, source, folder / "deep/er/file")
        assert (
            await sha256_of(adb, folder / "deep/er/file") == hashlib.sha256(source.read_bytes()).hexdigest()
        )
        stat = await sync.pull(adb, folder / "deep/er/file", tmp_path / "back")
        assert stat.mtime_s == 1_600_000_000
        listed = await sync.listdir(adb, folder / "deep")
        assert [(entry.name, entry.stat.is_dir) for entry in listed] == [("er", True)]
    assert (tmp_path / "back").read_bytes() == source.read_bytes()


async def test_sizes_above_four_gibibytes_are_told_right(tiny_box: Box, folder: PurePosixPath) -> None:
    async with connect(tiny_box.serial) as adb:
        await shell.run(adb, f"mkdir -p {folder} && truncate -s 5G {folder}/large")
        stat = await sync.stat(adb, folder / "large")
        await shell.run(adb, f"rm {folder}/large")
    assert stat is not None
    assert stat.size_bytes == 5 << 30


class PhoneWithOne:
    """A phone on a slow line that knows one algorithm alone; an `AdbConnection`."""

    line_bytes_per_s: float | None = 10e6
    key_fingerprint = None

    def __init__(self, adb: AdbConnection, algorithm: Algorithm) -> None:
        self.serial, self.banner, self.open = adb.serial, adb.banner, adb.open
        others = {other.feature for other in ALGORITHMS} - {algorithm.feature}
        self.features = adb.features - others


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda algorithm: algorithm.name)
async def test_compressed_transfers_are_the_same_bytes_on_both_ends(
    tiny_box: Box, folder: PurePosixPath, tmp_path: Path, algorithm: Algorithm
) -> None:
    content = b"".join(b"the same words again and again, line %d\n" % line for line in range(60_000))
    async with connect(tiny_box.serial) as connection:
        adb = PhoneWithOne(connection, algorithm)
        await sync.push_many(
            adb,
            [PushFile(content, folder / "large.txt"), PushFile(content[:9000], folder / "small.txt")],
        )
        assert await sha256_of(adb, folder / "large.txt") == hashlib.sha256(content).hexdigest()
        assert await sha256_of(adb, folder / "small.txt") == hashlib.sha256(content[:9000]).hexdigest()
        await sync.pull(adb, folder / "large.txt", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == content


async def test_a_slow_line_is_measured_and_compressed_for(tiny_box: Box, folder: PurePosixPath) -> None:
    content = b"the same words again and again, line after line\n" * 60_000
    faults = Faults(bytes_per_s=20e6)
    async with open_chaos("127.0.0.1", tiny_box.port, faults) as chaos, connect(chaos.address) as adb:
        assert await line_speed(adb) < 40e6
        before = chaos.up_bytes
        await sync.push(adb, content, folder / "text")
        assert chaos.up_bytes - before < len(content) / 5
        assert await sha256_of(adb, folder / "text") == hashlib.sha256(content).hexdigest()


async def test_the_phones_refusal_comes_at_once_even_in_the_middle_of_a_file(tiny_box: Box) -> None:
    async with connect(tiny_box.serial) as adb:
        with pytest.raises(PathRefused, match=r"/system/no\.bin: .*Permission denied"):
            await sync.push(adb, os.urandom(30 << 20), PurePosixPath("/system/no.bin"))
        with pytest.raises(PathRefused, match="no /data/local/tmp/nothing"):
            await sync.pull(adb, TMP / "nothing", Path("/nonexistent/never/opened"))
        with pytest.raises(ServiceRefused):
            await adb.open("no-such-service:")
        assert (await shell.run(adb, "echo fine")).stdout == b"fine\n"


async def test_five_hundred_files_arrive_each_as_itself(
    tiny_box: Box, folder: PurePosixPath, tmp_path: Path
) -> None:
    files, contents = [], {}
    for number in range(500):
        path, content = tmp_path / f"file {number} ü$'", os.urandom(number * 7 % 5000)
        path.write_bytes(content)
        contents[f"d {number % 9}/{path.name}".encode()] = content
        files.append(
            PushFile(path, folder / f"d {number % 9}" / path.name, mode=0o755 if number % 2 else 0o644)
        )
    async with connect(tiny_box.serial) as adb:
        await sync.push_many(adb, files)
        there = await shell.run(
            adb, f"cd {folder} && find . -type f | sort | tr '\\n' '\\0' | xargs -0 cat | sha256sum"
        )
    expected = b"".join(content for _, content in sorted(contents.items()))
    assert there.stdout.decode().split()[0] == hashlib.sha256(expected).hexdigest()


async def test_an_ordinary_mtu_loses_nothing(
    box_factory: BoxFactory, folder: PurePosixPath, tmp_path: Path
) -> None:
    box = await anyio.to_thread.run_sync(partial(box_factory, Kind.TINY, mtu_1500=True))
    sent = os.urandom(8 << 20)
    async with connect(box.serial) as adb:
        await sync.push(adb, sent, folder / "file")
        await sync.pull(adb, folder / "file", tmp_path / "back")
        assert (await shell.run(adb, "cat", sent[: 5 << 20])).stdout == sent[: 5 << 20]
    assert (tmp_path / "back").read_bytes() == sent


async def test_one_byte_segments_and_latency_change_nothing(tiny_box: Box, folder: PurePosixPath) -> None:
    for faults in (Faults(segment_bytes=1), Faults(latency_s=0.02)):
        async with open_chaos("127.0.0.1", tiny_box.port, faults) as chaos, connect(chaos.address) as adb:
            sent = os.urandom(4_000)
            await sync.push(adb, sent, folder / "file")
            assert await sha256_of(adb, folder / "file") == hashlib.sha256(sent).hexdigest()


async def test_the_end_of_adbd_is_noticed_at_once_and_the_same_phone_found_again(
    box_factory: BoxFactory,
) -> None:
    box = await anyio.to_thread.run_sync(box_factory)
    # Pings are so far apart that none of them can be what notices.
    async with connect(box.serial, ping_interval_s=3600.0) as adb:
        serial = adb.serial
        async with shell.spawn(adb, "echo started; sleep 1000") as process:
            output = aiter(process)
            await anext(output)
            await anyio.to_thread.run_sync(restart_adbd, box.name)
            with pytest.raises(PhoneLost), anyio.fail_after(60):
                await anext(output)
    async with connect(box.serial) as adb:
        assert adb.serial == serial
        assert (await shell.run(adb, "echo back")).stdout == b"back\n"


async def test_the_owner_is_asked_and_what_the_owner_says_counts(
    box_factory: BoxFactory, key: AdbKey
) -> None:
    box = await anyio.to_thread.run_sync(partial(box_factory, mode=Mode.AUTH))
    said: list[str] = []
    async with answer_dialogs(box, Answer.IGNORE) as owner:
        with pytest.raises(PhoneUnauthorized, match="nobody answered"):
            async with connect(box.serial, keys=[key], dialog_timeout_s=0.3, on_dialog=said.append):
                pass
        assert len(said) == 1
        owner.answer = Answer.ALLOW
        await anyio.to_thread.run_sync(restart_adbd, box.name)  # a dialog left standing hides the next
        async with connect(box.serial, keys=[key]) as adb:
            assert adb.key_fingerprint == key.fingerprint
            assert (await shell.run(adb, "id -u")).stdout == b"2000\n"
        asked = len(owner.asked)
        allow_key(box, key.public_key.decode())
        async with connect(box.serial, keys=[key]) as adb:
            assert adb.key_fingerprint == key.fingerprint
        assert len(owner.asked) == asked, "a key allowed for good is not asked for again"


async def test_wireless_debugging_lets_in_only_a_paired_key(
    box_factory: BoxFactory, key: AdbKey, folder: PurePosixPath, tmp_path: Path
) -> None:
    box = await anyio.to_thread.run_sync(partial(box_factory, mode=Mode.TLS))
    other_key = make_key(tmp_path / "adbkey")
    forget_keys(box)
    with pytest.raises(PhoneNotPaired, match="refused our key"):
        async with connect(box.serial, keys=[key, other_key]):
            pass
    allow_key(box, key.public_key.decode())
    sent = os.urandom(9 << 20)
    async with connect(box.serial, keys=[key]) as adb:
        await sync.push(adb, sent, folder / "file")
        await sync.pull(adb, folder / "file", tmp_path / "back")
        assert adb.key_fingerprint == key.fingerprint
    assert (tmp_path / "back").read_bytes() == sent
    async with connect(box.serial, keys=[other_key, key]) as adb:
        assert adb.key_fingerprint == key.fingerprint, "each key is offered until one is known"


async def test_our_protocol_runs_over_adb_shells_transport_too(tiny_box: Box, folder: PurePosixPath) -> None:
    wire = await open_blocking(TcpTransport(tiny_box.host, tiny_box.port), "adb-shell", 60)
    sent = os.urandom(3 << 20)
    async with connect_over(wire, ()) as adb:
        await sync.push(adb, sent, folder / "file")
        assert await sha256_of(adb, folder / "file") == hashlib.sha256(sent).hexdigest()


async def test_adb_shell_reads_what_we_wrote_and_we_what_it_wrote(
    tiny_box: Box, folder: PurePosixPath, tmp_path: Path
) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    ours.write_bytes(os.urandom(300_000))

    def with_adb_shell() -> None:
        device = AdbDeviceTcp(tiny_box.host, tiny_box.port, default_transport_timeout_s=120)
        device.connect()
        device.pull(f"{folder}/ours", str(theirs))
        device.push(str(ours), f"{folder}/theirs")
        device.close()

    async with connect(tiny_box.serial) as adb:
        await sync.push(adb, ours, folder / "ours")
        await anyio.to_thread.run_sync(with_adb_shell)
        await sync.pull(adb, folder / "theirs", tmp_path / "back")
    assert theirs.read_bytes() == (tmp_path / "back").read_bytes() == ours.read_bytes()


async def test_google_s_adb_reads_what_we_wrote_and_we_what_it_wrote(
    tiny_box: Box, folder: PurePosixPath, tmp_path: Path, google: RealAdb
) -> None:
    tree = tmp_path / "tree"
    contents = {f"d{number % 3}/f {number}": os.urandom(number * 9000) for number in range(40)}
    for name, content in contents.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_bytes(content)
    files = [PushFile(tree / name, folder / "tree" / name) for name in contents]
    await anyio.to_thread.run_sync(google.connect, tiny_box.serial)
    google_does = partial(google, serial=tiny_box.serial)
    async with connect(tiny_box.serial) as adb:
        await sync.push_many(adb, files)
        await anyio.to_thread.run_sync(google_does, "pull", f"{folder}/tree", str(tmp_path / "pulled"))
        await anyio.to_thread.run_sync(google_does, "push", str(tree), f"{folder}/pushed")
        for name, content in contents.items():
            await sync.pull(adb, folder / "pushed" / name, tmp_path / "back")
            assert (tmp_path / "back").read_bytes() == content
            assert (tmp_path / "pulled" / name).read_bytes() == content


async def test_a_phone_behind_google_s_server_is_used_like_any_other(
    tiny_box: Box,
    folder: PurePosixPath,
    tmp_path: Path,
    google: RealAdb,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ANDROID_ADB_SERVER_PORT", str(google.server_port))
    monkeypatch.delenv("ADB_SERVER_SOCKET", raising=False)
    await anyio.to_thread.run_sync(google.connect, tiny_box.serial)
    sent = os.urandom(4 << 20)
    async with connect(f"server:{tiny_box.serial}") as adb:
        assert await shell.run(adb, "cat; exit 4", b"in") == shell.ShellResult(4, b"in", b"")
        await sync.push(adb, sent, folder / "file")
        await sync.pull(adb, folder / "file", tmp_path / "back")
        with pytest.raises(PathRefused, match="Permission denied"):
            await sync.push(adb, sent, PurePosixPath("/system/no.bin"))
        with pytest.raises(ServiceRefused):
            await adb.open("no-such-service:")
    assert (tmp_path / "back").read_bytes() == sent
    assert b"36.0" in google("version"), "the server still is the one that was started"
