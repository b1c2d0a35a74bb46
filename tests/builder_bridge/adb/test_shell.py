"""Commands on a phone: exit codes, two streams, stdin with an end."""

from collections.abc import AsyncIterator
from itertools import pairwise

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder_bridge.adb import connect, shell
from builder_bridge.adb.shell import ShellReader, Stream
from builder_bridge.errors import PhoneLost, ProtocolFault, ServiceRefused
from tests.fakes_adb import ANDROID_9, FakePhone, open_phone

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["modern", "android 9", "byte sums"])
def phone(request: pytest.FixtureRequest) -> FakePhone:
    match request.param:
        case "modern":
            return FakePhone()
        case "android 9":
            return FakePhone(features=ANDROID_9, max_payload_bytes=256 << 10)
        case _:
            return FakePhone(features=ANDROID_9, version=0x01000000, max_payload_bytes=4096)


async def test_exit_code_and_both_outputs_come_apart(phone: FakePhone) -> None:
    async with open_phone(phone), connect(phone.address, keys=()) as adb:
        result = await shell.run(adb, "echo out; echo err >&2; exit 7")
    assert result == shell.ShellResult(7, b"out\n", b"err\n")


async def test_a_command_killed_by_a_signal_exits_with_128_and_its_number(phone: FakePhone) -> None:
    async with open_phone(phone), connect(phone.address, keys=()) as adb:
        assert (await shell.run(adb, "kill -9 $$")).exit_code == 137


async def test_stdin_arrives_whole_and_ends(phone: FakePhone) -> None:
    sent = bytes(range(256)) * 3000
    async with open_phone(phone), connect(phone.address, keys=()) as adb:
        assert (await shell.run(adb, "cat", sent)).stdout == sent


async def test_stdin_may_come_bit_by_bit() -> None:
    async def words() -> AsyncIterator[bytes]:
        for word in (b"one ", b"", b"two ", b"three"):
            yield word

    async with open_phone() as phone, connect(phone.address, keys=()) as adb:
        assert (await shell.run(adb, "cat", words())).stdout == b"one two three"


async def test_a_command_that_does_not_read_its_stdin_still_gives_its_exit_code() -> None:
    async with open_phone() as phone, connect(phone.address, keys=()) as adb:
        result = await shell.run(adb, "exec 0<&-; echo done; exit 3", b"x" * (8 << 20))
    assert (result.exit_code, result.stdout) == (3, b"done\n")


async def test_output_streams_while_the_command_runs_and_answers() -> None:
    async with (
        open_phone() as phone,
        connect(phone.address, keys=()) as adb,
        shell.spawn(adb, "read word; echo got $word; read word; echo got $word; exit 2") as process,
    ):
        heard = b""
        await process.send_stdin(b"first\n")
        async for stream, data in process:
            assert stream is Stream.STDOUT
            heard += data
            if heard == b"got first\n":
                await process.send_stdin(b"second\n")
        assert heard == b"got first\ngot second\n"
        assert process.exit_code == 2


async def test_many_commands_at_once_do_not_mix() -> None:
    results: dict[int, bytes] = {}

    async def run(number: int) -> None:
        results[number] = (await shell.run(adb, f"seq {number} 10 20000")).stdout

    async with (
        open_phone() as phone,
        connect(phone.address, keys=()) as adb,
        anyio.create_task_group() as tasks,
    ):
        for number in range(8):
            tasks.start_soon(run, number)
    for number in range(8):
        assert results[number] == b"".join(b"%d\n" % line for line in range(number, 20001, 10))


async def test_a_command_that_nobody_listens_to_holds_up_no_other() -> None:
    async with (
        open_phone() as phone,
        connect(phone.address, keys=()) as adb,
        shell.spawn(adb, "yes", window_bytes=64 << 10),
    ):
        for _ in range(5):
            assert (await shell.run(adb, "echo still here")).stdout == b"still here\n"


async def test_leaving_early_ends_the_command_on_the_phone() -> None:
    async with open_phone() as phone, connect(phone.address, keys=()) as adb:
        async with shell.spawn(adb, "echo $$; exec sleep 1000") as process:
            async for _, data in process:
                pid = int(bytes(data))
                break
        wait = f"n=0; while kill -0 {pid} && [ $n -lt 1000 ]; do sleep 0.01; n=$((n+1)); done; kill -0 {pid}"
        assert (await shell.run(adb, wait)).exit_code != 0


async def test_a_phone_without_shell_v2_is_refused_before_anything_runs() -> None:
    async with open_phone(FakePhone(features="cmd")) as phone, connect(phone.address, keys=()) as adb:
        with pytest.raises(ServiceRefused, match="exit codes"):
            await shell.run(adb, "echo hi")
        assert phone.services == []


async def test_a_stream_that_ends_without_an_exit_code_is_a_lost_phone_not_a_result() -> None:
    class Stream:
        async def receive(self) -> bytes:
            return b""

    with pytest.raises(PhoneLost, match="exit code"):
        async for _ in shell.ShellProcess(Stream()):  # type: ignore[arg-type]
            pass


def encode(kind: int, data: bytes) -> bytes:
    return bytes([kind]) + len(data).to_bytes(4, "little") + data


@settings(deadline=None, max_examples=60)
@given(
    packets=st.lists(st.tuples(st.sampled_from([1, 2]), st.binary(max_size=40)), max_size=8),
    code=st.integers(0, 255),
    cuts=st.lists(st.integers(0, 400)),
)
def test_any_cut_of_the_stream_gives_the_same_output(
    packets: list[tuple[int, bytes]], code: int, cuts: list[int]
) -> None:
    wire = b"".join(encode(kind, data) for kind, data in packets) + encode(3, bytes([code]))
    reader = ShellReader()
    heard = {Stream.STDOUT: b"", Stream.STDERR: b""}
    edges = sorted({0, len(wire), *(cut for cut in cuts if cut < len(wire))})
    for start, end in pairwise(edges):
        for stream, data in reader.feed(wire[start:end]):
            heard[stream] += data
    for stream in Stream:
        assert heard[stream] == b"".join(data for kind, data in packets if kind == stream)
    assert reader.exit_code == code


@settings(deadline=None, max_examples=60)
@given(st.binary(max_size=200))
def test_garbage_in_the_shell_stream_is_a_protocol_fault_or_silence(garbage: bytes) -> None:
    reader = ShellReader()
    try:
        list(reader.feed(garbage))
    except ProtocolFault as fault:
        assert "The phone's shell sent" in str(fault)  # noqa: PT017
