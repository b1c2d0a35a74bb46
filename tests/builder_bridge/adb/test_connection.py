"""A connection under faults: what ends it, what does not, and that the end is noticed."""

import os
from collections import deque
from pathlib import PurePosixPath

import anyio
import anyio.lowlevel
import pytest
from anyio.abc import ByteStream

from builder_bridge.adb import AdbConnection, connect, shell, sync
from builder_bridge.adb.packets import take_bytes
from builder_bridge.adb.transports import connect_over
from builder_bridge.adb.wires import open_tcp
from builder_bridge.errors import (
    PhoneLost,
    PhoneOffline,
    PhoneRefused,
    PhoneUnreachable,
    ProtocolFault,
    ServiceRefused,
)
from tests.chaos import Faults, open_chaos
from tests.fakes_adb import ANDROID_9, FakePhone, open_peer, open_phone, packet
from tests.ports import port_where_nobody_listens

pytestmark = pytest.mark.anyio
NEVER_S = 3600.0
"""Pings so far apart that none of them can be what noticed something."""


async def count_to_the_end(adb: AdbConnection) -> int:
    lines = 0
    async with shell.spawn(adb, "while :; do echo line; sleep 0.01; done") as process:
        async for _, data in process:
            lines += bytes(data).count(b"\n")
    return lines


@pytest.mark.parametrize("with_fin", [False, True], ids=["reset", "fin"])
async def test_a_cut_is_noticed_at_once_and_says_that_something_may_have_run(with_fin: bool) -> None:
    async with (
        open_phone() as phone,
        open_chaos("127.0.0.1", phone.port) as chaos,
        connect(chaos.address, keys=(), ping_interval_s=NEVER_S) as adb,
    ):
        async with shell.spawn(adb, "echo started; sleep 1000") as process:
            output = aiter(process)
            assert await anext(output) == (shell.Stream.STDOUT, b"started\n")
            chaos.cut(with_fin=with_fin)
            with pytest.raises(PhoneLost) as lost, anyio.fail_after(60):
                await anext(output)
        assert lost.value.may_have_run
        assert lost.value.serial == "FAKE0001"
        with pytest.raises(PhoneLost):
            await adb.open("sync:")


async def test_every_stream_hears_of_a_cut() -> None:
    faults = []

    async def listen(adb: AdbConnection) -> None:
        try:
            await count_to_the_end(adb)
        except PhoneLost as fault:
            faults.append(fault)

    async with (
        open_phone() as phone,
        open_chaos("127.0.0.1", phone.port) as chaos,
        connect(chaos.address, keys=()) as adb,
        anyio.create_task_group() as tasks,
    ):
        for _ in range(5):
            tasks.start_soon(listen, adb)
        while len(phone.services) < 6:
            await shell.run(adb, "true")
        chaos.cut()
    assert len(faults) == 5


async def test_a_vanished_phone_is_found_by_three_missed_pings() -> None:
    async with (
        open_phone() as phone,
        open_chaos("127.0.0.1", phone.port) as chaos,
        connect(chaos.address, keys=(), ping_interval_s=0.05) as adb,
    ):
        chaos.go_silent()
        with pytest.raises(PhoneLost, match="silent"), anyio.fail_after(60):
            await shell.run(adb, "echo nobody hears this")


async def test_an_adbd_that_answers_no_packet_is_found_by_pings_too() -> None:
    phone = FakePhone(features="shell_v2")
    async with open_phone(phone), connect(phone.address, keys=(), ping_interval_s=0.05) as adb:
        phone.takes_nothing = True
        with pytest.raises(PhoneLost, match="silent"), anyio.fail_after(60):
            await shell.run(adb, "echo nobody hears this")


async def test_silence_of_a_command_has_no_limit() -> None:
    async with (
        open_phone() as phone,
        connect(phone.address, keys=(), ping_interval_s=0.1) as adb,
        shell.spawn(adb, "read line; echo late") as process,
    ):
        while phone.services.count("pocketbuild-ping:") <= 3:
            await phone.was_asked.wait()
        await process.send_stdin(b"now\n")
        assert b"".join([bytes(data) async for _, data in process]) == b"late\n"


async def test_a_stall_shorter_than_the_pings_allow_harms_nothing() -> None:
    async with (
        open_phone() as phone,
        open_chaos("127.0.0.1", phone.port, Faults(stall_down=(20_000, 1.0))) as chaos,
        connect(chaos.address, keys=(), ping_interval_s=0.8) as adb,
    ):
        assert len((await shell.run(adb, "head -c 300000 /dev/zero")).stdout) == 300_000


async def test_one_byte_segments_give_the_same_bytes() -> None:
    async with (
        open_phone() as phone,
        open_chaos("127.0.0.1", phone.port, Faults(segment_bytes=1)) as chaos,
        connect(chaos.address, keys=()) as adb,
    ):
        assert (await shell.run(adb, "cat", b"every byte for itself")).stdout == b"every byte for itself"


async def test_leaving_a_connection_cancels_nothing_outside() -> None:
    async with open_phone() as phone:
        async with connect(phone.address, keys=()):
            pass
        await anyio.lowlevel.checkpoint()
        async with connect(phone.address, keys=()) as adb:
            assert (await shell.run(adb, "echo again")).stdout == b"again\n"


async def test_a_fault_inside_the_block_comes_out_as_it_is() -> None:
    async with open_phone() as phone:
        with pytest.raises(ZeroDivisionError):
            async with connect(phone.address, keys=()):
                raise ZeroDivisionError


async def test_cancelling_a_command_leaves_the_connection_usable() -> None:
    async with open_phone() as phone, connect(phone.address, keys=()) as adb:
        with anyio.move_on_after(0.1) as scope:
            await count_to_the_end(adb)
        assert scope.cancelled_caught
        assert (await shell.run(adb, "echo here")).stdout == b"here\n"


async def test_an_unknown_service_is_refused_and_the_connection_lives() -> None:
    async with open_phone() as phone, connect(phone.address, keys=()) as adb:
        with pytest.raises(ServiceRefused, match="framebuffer"):
            await adb.open("framebuffer:")
        assert (await shell.run(adb, "echo here")).stdout == b"here\n"


@pytest.mark.parametrize(
    "hostile",
    [b"\0" * 64, packet(b"WRTE", 5, 9, b"x"), packet(b"CNXN", 0x01000001, 4096, b"device::")],
    ids=["zeros", "unknown stream", "second greeting"],
)
async def test_a_peer_that_turns_hostile_ends_the_connection_by_name(hostile: bytes) -> None:
    async def serve(stream: ByteStream) -> None:
        await stream.receive()
        await stream.send(packet(b"CNXN", 0x01000001, 4096, b"device::features=cmd"))
        await stream.receive()
        await stream.send(hostile)
        await anyio.sleep_forever()

    async with open_peer(serve) as port, connect(f"127.0.0.1:{port}", keys=()) as adb:
        with pytest.raises(ProtocolFault):
            await adb.open("sync:")


async def test_something_else_than_adbd_is_named_so() -> None:
    async def serve(stream: ByteStream) -> None:
        await stream.receive()
        await stream.send(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")

    async with open_peer(serve) as port:
        with pytest.raises(PhoneOffline, match="does not speak adb"):
            async with connect(f"127.0.0.1:{port}", keys=()):
                pass


async def test_a_phone_that_never_greets_is_offline() -> None:
    async with open_peer(lambda stream: anyio.sleep_forever()) as port:
        wire = await open_tcp("127.0.0.1", port, 60)
        with pytest.raises(PhoneOffline, match=r"did not greet within 0\.1 s"):
            async with connect_over(wire, (), timeout_s=0.1):
                pass


async def test_a_phone_that_hangs_up_instead_of_greeting_is_offline() -> None:
    async with open_peer(lambda stream: stream.receive()) as port:
        with pytest.raises(PhoneOffline, match="closed the connection"):
            async with connect(f"127.0.0.1:{port}", keys=()):
                pass


async def test_a_port_where_nobody_listens_is_refused_not_unreachable() -> None:
    with (
        port_where_nobody_listens() as port,
        pytest.raises(PhoneRefused, match=r"127\.0\.0\.1:[0-9]+ refused"),
    ):
        async with connect(f"127.0.0.1:{port}", keys=()):
            pass


async def test_a_host_that_is_none_is_unreachable() -> None:
    with pytest.raises(PhoneUnreachable):
        async with connect("no-such-host.invalid:5555", keys=()):
            pass


async def test_an_old_phones_stream_that_nobody_reads_waits_and_harms_no_other() -> None:
    phone = FakePhone(features=ANDROID_9, max_payload_bytes=256 << 10)
    async with (
        open_phone(phone),
        connect(phone.address, keys=()) as adb,
        shell.spawn(adb, "head -c 20000000 /dev/zero") as process,
    ):
        assert (await shell.run(adb, "echo other")).stdout == b"other\n"
        assert sum([len(data) async for _, data in process]) == 20_000_000


@pytest.mark.parametrize("every_bytes", [3 << 20, 8 << 20])
async def test_a_phone_that_acknowledges_rarely_still_gets_all(every_bytes: int) -> None:
    phone = FakePhone(window_bytes=32 << 20, acknowledges_every_bytes=every_bytes)
    sent = os.urandom(1 << 20) * 16
    async with open_phone(phone), connect(phone.address, keys=()) as adb:
        with anyio.fail_after(300):
            async with anyio.create_task_group() as tasks:
                for name in ("/one", "/other"):
                    tasks.start_soon(sync.push, adb, sent, PurePosixPath(name))
    assert phone.files["/one"] == phone.files["/other"] == sent


@pytest.mark.parametrize("limit_bytes", [1, 2, 3, 5, 100])
def test_bytes_are_taken_in_order_and_none_is_lost(limit_bytes: int) -> None:
    waiting = deque(memoryview(part) for part in (b"abc", b"d", b"efgh"))
    taken = b""
    while waiting:
        portion = b"".join(take_bytes(waiting, limit_bytes))
        assert 0 < len(portion) <= limit_bytes
        taken += portion
    assert taken == b"abcdefgh"


async def test_closing_a_stream_wakes_whoever_reads_it() -> None:
    received: list[bytes] = []
    async with open_phone() as phone, connect(phone.address, keys=()) as adb:
        stream = await adb.open("shell,v2,raw:sleep 1000")

        async def listen() -> None:
            received.append(bytes(await stream.receive()))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listen)
            await anyio.wait_all_tasks_blocked()
            await stream.close()
    assert received == [b""]
