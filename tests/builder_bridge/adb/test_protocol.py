"""The protocol core, byte by byte: no sockets, no time."""

import struct
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder_bridge.adb.events import (
    AuthWanted,
    Connected,
    Event,
    StreamClosed,
    StreamData,
    StreamOpened,
    StreamWritable,
    TlsWanted,
    parse_banner,
)
from builder_bridge.adb.protocol import READ_AHEAD_BYTES, AdbProtocol
from builder_bridge.errors import ProtocolFault
from tests.builder_bridge.adb.protocols import (
    WITH_SUM,
    WITHOUT_SUM,
    connected,
    feed,
    greeting,
    opened,
    output,
)
from tests.fakes_adb import ANDROID_9, MODERN, packet


def test_the_greeting_names_our_version_packet_size_and_features_with_a_byte_sum() -> None:
    protocol = AdbProtocol()
    protocol.greet()
    sent = output(protocol)
    command, version, max_payload_bytes, size_bytes, byte_sum, magic = struct.unpack("<6I", sent[:24])
    banner = sent[24:]
    assert (command.to_bytes(4, "little"), version, max_payload_bytes) == (b"CNXN", WITHOUT_SUM, 1 << 20)
    assert (size_bytes, byte_sum, magic) == (len(banner), sum(banner), command ^ 0xFFFFFFFF)
    assert banner.startswith(b"host::features=shell_v2,")


def test_a_greeting_gives_state_properties_and_features() -> None:
    protocol = AdbProtocol()
    events = feed(protocol, greeting("shell_v2,cmd,made_up"))
    assert events == [
        Connected(parse_banner(b"device::ro.product.model=Pixel 7;features=shell_v2,cmd,made_up"))
    ]
    assert protocol.banner is not None
    assert protocol.banner.properties == {"ro.product.model": "Pixel 7"}
    assert protocol.features == {"shell_v2", "cmd"}


@pytest.mark.parametrize(
    "junk", [b"", b"\0", b"device", b"device::", b"device::x;;=;features=", b"\xff\xfe:::=;"]
)
def test_any_banner_can_be_read(junk: bytes) -> None:
    assert parse_banner(junk).features <= {""}


def test_packets_are_no_larger_than_the_phone_takes() -> None:
    protocol = connected(ANDROID_9, max_payload_bytes=4096)
    assert protocol.writable_bytes(opened(protocol)) == 4096


def test_byte_sums_are_sent_and_checked_only_for_the_oldest_version() -> None:
    old = connected(ANDROID_9, version=WITH_SUM)
    stream_id = opened(old)
    old.write(stream_id, [b"\x01\x02", b"\xff"])
    assert struct.unpack_from("<I", output(old), 16)[0] == 0x102
    with pytest.raises(ProtocolFault, match="byte sum of a WRTE"):
        feed(old, packet(b"WRTE", 77, stream_id, b"abc", with_sum=False))
    new = connected()
    stream_id = opened(new)
    new.write(stream_id, [b"abc"])
    assert struct.unpack_from("<I", output(new), 16)[0] == 0
    assert feed(new, packet(b"WRTE", 77, stream_id, b"abc", with_sum=False))


def test_a_token_is_answered_by_a_signature_and_then_by_the_public_key() -> None:
    protocol = AdbProtocol()
    assert feed(protocol, packet(b"AUTH", 1, 0, b"t" * 20)) == [AuthWanted(b"t" * 20)]
    protocol.sign(b"signed")
    assert output(protocol) == packet(b"AUTH", 2, 0, b"signed")
    assert feed(protocol, packet(b"AUTH", 1, 0, b"u" * 20)) == [AuthWanted(b"u" * 20)]
    protocol.offer_key(b"QAAAA me@here")
    assert output(protocol) == packet(b"AUTH", 3, 0, b"QAAAA me@here\0")


def test_tls_is_asked_for_and_agreed_to() -> None:
    protocol = AdbProtocol()
    assert feed(protocol, packet(b"STLS", 0x01000000, 0)) == [TlsWanted()]
    protocol.begin_tls()
    assert output(protocol) == packet(b"STLS", 0x01000000, 0)


def test_streams_have_sequential_ids_and_carry_our_window() -> None:
    protocol = connected()
    assert [protocol.open("shell:a"), protocol.open("shell:b", 1 << 16)] == [1, 2]
    sent = output(protocol)
    assert struct.unpack_from("<3I", sent)[1:] == (1, 32 << 20)
    assert struct.unpack_from("<3I", sent, 24 + len("shell:a") + 1)[1:] == (2, 1 << 16)
    old = connected(ANDROID_9)
    old.open("shell:a")
    assert struct.unpack_from("<3I", output(old))[1:] == (1, 0)


def test_an_old_phone_takes_one_packet_at_a_time() -> None:
    protocol = connected(ANDROID_9)
    stream_id = protocol.open("sync:")
    assert protocol.writable_bytes(stream_id) == 0
    assert feed(protocol, packet(b"OKAY", 5, stream_id)) == [StreamOpened(stream_id)]
    protocol.write(stream_id, [b"first"])
    assert protocol.writable_bytes(stream_id) == 0
    assert feed(protocol, packet(b"OKAY", 5, stream_id)) == [StreamWritable(stream_id)]
    assert protocol.writable_bytes(stream_id) == 1 << 20


def test_a_window_is_spent_by_bytes_and_granted_by_bytes() -> None:
    protocol = connected()
    stream_id = opened(protocol, credit=10)
    assert protocol.writable_bytes(stream_id) == 10
    protocol.write(stream_id, [b"0123456"])
    assert protocol.writable_bytes(stream_id) == 3
    feed(protocol, packet(b"OKAY", 77, stream_id, struct.pack("<i", 7)))
    assert protocol.writable_bytes(stream_id) == 10


def test_a_stream_pauses_with_enough_in_flight_until_half_of_it_is_acknowledged() -> None:
    protocol = connected()
    stream_id = opened(protocol, credit=1000)
    protocol.limit_in_flight(stream_id, 100)
    protocol.write(stream_id, [bytes(100)])
    assert protocol.writable_bytes(stream_id) == 900, "the limit is reached, not passed"
    protocol.write(stream_id, [bytes(100)])
    assert protocol.writable_bytes(stream_id) == 0
    assert feed(protocol, packet(b"OKAY", 77, stream_id, struct.pack("<i", 149))) == []
    assert protocol.writable_bytes(stream_id) == 0
    acknowledged = packet(b"OKAY", 77, stream_id, struct.pack("<i", 1))
    assert feed(protocol, acknowledged) == [StreamWritable(stream_id)]
    assert protocol.writable_bytes(stream_id) == 950
    protocol.write(stream_id, [bytes(900)])
    protocol.limit_in_flight(stream_id, 2000)
    assert protocol.writable_bytes(stream_id) == 50, "a higher limit lets it go on at once"


def test_an_old_phone_has_one_packet_in_flight_whatever_the_limit() -> None:
    protocol = connected(ANDROID_9)
    stream_id = opened(protocol)
    protocol.limit_in_flight(stream_id, 1)
    for _ in range(3):
        protocol.write(stream_id, [bytes(1000)])
        assert protocol.writable_bytes(stream_id) == 0
        feed(protocol, packet(b"OKAY", 77, stream_id))
        assert protocol.writable_bytes(stream_id) > 0


def test_writing_without_credit_is_refused() -> None:
    protocol = connected()
    stream_id = opened(protocol, credit=3)
    with pytest.raises(AssertionError, match="credit"):
        protocol.write(stream_id, [b"four"])


def test_an_old_phones_packets_are_answered_until_much_waits_unread() -> None:
    protocol = connected(ANDROID_9)
    stream_id = opened(protocol)
    block, answer = b"x" * (1 << 20), packet(b"OKAY", stream_id, 77)
    for _ in range(READ_AHEAD_BYTES // len(block) - 1):
        feed(protocol, packet(b"WRTE", 77, stream_id, block, with_sum=False))
        assert output(protocol) == answer
    feed(protocol, packet(b"WRTE", 77, stream_id, block, with_sum=False))
    assert output(protocol) == b""
    protocol.consume(stream_id, len(block))
    assert output(protocol) == answer


def test_taken_bytes_are_granted_in_large_portions() -> None:
    protocol = connected()
    stream_id = protocol.open("shell:", 800)
    feed(protocol, packet(b"OKAY", 77, stream_id, struct.pack("<i", 1)))
    protocol.take_output()
    feed(protocol, packet(b"WRTE", 77, stream_id, b"x" * 150))
    protocol.consume(stream_id, 99)
    assert output(protocol) == b""
    protocol.consume(stream_id, 51)
    assert output(protocol) == packet(b"OKAY", stream_id, 77, struct.pack("<i", 150), with_sum=False)


def test_a_stream_that_the_phone_closes_is_closed_back_once() -> None:
    protocol = connected()
    stream_id = opened(protocol)
    assert feed(protocol, packet(b"CLSE", 77, stream_id)) == [StreamClosed(stream_id)]
    assert output(protocol) == packet(b"CLSE", stream_id, 77)
    protocol.close(stream_id)
    protocol.consume(stream_id, 5)
    assert output(protocol) == b""


def test_a_refused_service_is_a_closed_stream() -> None:
    protocol = connected()
    stream_id = protocol.open("nonsense:")
    protocol.take_output()
    assert feed(protocol, packet(b"CLSE", 0, stream_id)) == [StreamClosed(stream_id)]
    assert output(protocol) == b""


def test_what_comes_late_for_a_stream_we_closed_is_dropped() -> None:
    protocol = connected()
    stream_id = opened(protocol)
    protocol.close(stream_id)
    assert output(protocol) == packet(b"CLSE", stream_id, 77)
    late = packet(b"WRTE", 77, stream_id, b"late") + packet(b"OKAY", 77, stream_id, b"\0\0\0\0")
    assert feed(protocol, late + packet(b"CLSE", 77, stream_id)) == []


def test_a_stream_given_up_before_it_was_opened_is_closed_when_it_opens() -> None:
    protocol = connected()
    stream_id = protocol.open("shell:sleep 100")
    protocol.close(stream_id)
    protocol.take_output()
    assert feed(protocol, packet(b"OKAY", 77, stream_id, b"\0\0\1\0")) == []
    assert output(protocol) == packet(b"CLSE", stream_id, 77)


def test_a_stream_that_the_phone_wants_to_open_is_refused() -> None:
    protocol = connected()
    assert feed(protocol, packet(b"OPEN", 9, 0, b"tcp:80\0")) == []
    assert output(protocol) == packet(b"CLSE", 0, 9)


def test_packets_of_an_earlier_session_before_the_greeting_are_dropped() -> None:
    protocol = AdbProtocol()
    stale = packet(b"WRTE", 9, 4, b"stale") + packet(b"OKAY", 9, 4) + packet(b"CLSE", 9, 4)
    assert [type(event) for event in feed(protocol, stale + greeting())] == [Connected]


def merged(events: list[Event]) -> list[Event | tuple[int, bytes]]:
    """Give events with the data of a stream joined, so that only its content counts."""
    result: list[Event | tuple[int, bytes]] = []
    for event in events:
        if not isinstance(event, StreamData):
            result.append(event)
        elif result and isinstance(result[-1], tuple) and result[-1][0] == event.stream_id:
            result[-1] = (event.stream_id, result[-1][1] + bytes(event.data))
        else:
            result.append((event.stream_id, bytes(event.data)))
    return result


sessions = st.lists(
    st.one_of(
        st.tuples(st.just(b"WRTE"), st.integers(1, 4), st.binary(max_size=60)),
        st.tuples(st.just(b"OKAY"), st.integers(1, 4), st.just(struct.pack("<i", 100))),
        st.tuples(st.just(b"CLSE"), st.integers(1, 4), st.just(b"")),
    ),
    max_size=12,
)


@settings(deadline=None, max_examples=60)
@given(session=sessions, cuts=st.lists(st.integers(0, 1500), max_size=30), is_old=st.booleans())
def test_any_cut_of_the_wire_gives_the_same_streams(
    session: list[tuple[bytes, int, bytes]], cuts: list[int], is_old: bool
) -> None:
    features, version = (ANDROID_9, WITH_SUM) if is_old else (MODERN, WITHOUT_SUM)
    window = b"" if is_old else struct.pack("<i", 1000)
    wire = greeting(features, version=version)
    wire += b"".join(packet(b"OKAY", 70 + number, number, window) for number in range(1, 5))
    wire += b"".join(
        packet(command, 70 + number, number, b"" if is_old and command == b"OKAY" else payload)
        for command, number, payload in session
    )
    results = []
    for edges in ([0, len(wire)], sorted({0, len(wire), *(cut for cut in cuts if cut < len(wire))})):
        protocol = AdbProtocol()
        feed(protocol, b"")
        for _ in range(4):
            protocol.open("shell:")
        protocol.take_output()
        events = [event for start, end in pairwise(edges) for event in feed(protocol, wire[start:end])]
        results.append((merged(events), output(protocol)))
    assert results[0] == results[1]
