"""Peers that break the protocol are told by name, whatever they send and however it is cut."""

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder_bridge.adb.events import (
    StreamData,
)
from builder_bridge.adb.protocol import AdbProtocol
from builder_bridge.errors import ProtocolFault
from tests.builder_bridge.adb.protocols import WITH_SUM, WITHOUT_SUM, connected, feed, greeting, opened
from tests.fakes_adb import ANDROID_9, packet

HOSTILE = {
    "damaged": b"\0" * 24,
    "HTTP": b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "WRTE packet claims": struct.pack("<6I", 0x45545257, 77, 1, (1 << 20) + 1, 0, 0x45545257 ^ 0xFFFFFFFF),
    "CLSE packet claims": struct.pack("<6I", 0x45534C43, 77, 1, 4097, 0, 0x45534C43 ^ 0xFFFFFFFF),
    "never opened": packet(b"WRTE", 77, 2, b"x"),
    "stream 0": packet(b"OKAY", 77, 0, b"\0\0\0\0"),
    "comes from stream 78": packet(b"WRTE", 78, 1, b"x"),
    "comes from stream 0": packet(b"WRTE", 0, 1, b"x"),
    "bytes of credit": packet(b"OKAY", 77, 1),
    "CNXN": greeting(),
    "AUTH": packet(b"AUTH", 1, 0, b"t" * 20),
    "STLS": packet(b"STLS", 0x01000000, 0),
    "SYNC": packet(b"SYNC", 1, 0),
    "JUNK": packet(b"JUNK", 1, 1),
    "overran its window": packet(b"WRTE", 77, 1, b"x" * (1 << 20), with_sum=False) * 34,
}


@pytest.mark.parametrize(("named", "packets"), HOSTILE.items(), ids=HOSTILE)
def test_a_peer_that_breaks_the_protocol_is_told_by_name(named: str, packets: bytes) -> None:
    protocol = connected()
    assert opened(protocol) == 1
    with pytest.raises(ProtocolFault, match=named):
        feed(protocol, packets)


def test_what_came_before_a_fault_is_given_first() -> None:
    protocol = connected()
    stream_id = opened(protocol)
    events = protocol.feed(packet(b"WRTE", 77, stream_id, b"last words") + b"\0" * 24)
    assert next(events) == StreamData(stream_id, memoryview(b"last words"))
    with pytest.raises(ProtocolFault):
        next(events)


def test_damaged_data_is_never_given_where_sums_are_checked() -> None:
    protocol = connected(ANDROID_9, version=WITH_SUM)
    stream_id = opened(protocol)
    damaged = packet(b"WRTE", 77, stream_id, b"abc", with_sum=False)
    assert feed(protocol, damaged[:-1]) == []
    with pytest.raises(ProtocolFault, match="byte sum"):
        feed(protocol, damaged[-1:])


def test_data_before_the_stream_was_opened_is_a_fault() -> None:
    protocol = connected()
    stream_id = protocol.open("shell:")
    with pytest.raises(ProtocolFault, match="before it was opened"):
        feed(protocol, packet(b"WRTE", 77, stream_id, b"x"))


@pytest.mark.parametrize(("version", "max_payload_bytes"), [(0x00FFFFFF, 4096), (WITHOUT_SUM, 0)])
def test_a_senseless_greeting_is_a_fault(version: int, max_payload_bytes: int) -> None:
    with pytest.raises(ProtocolFault, match="offers version"):
        feed(AdbProtocol(), greeting(version=version, max_payload_bytes=max_payload_bytes))


pieces_of_wire = st.one_of(
    st.binary(max_size=60),
    st.builds(
        packet,
        st.sampled_from([b"CNXN", b"AUTH", b"STLS", b"OPEN", b"OKAY", b"WRTE", b"CLSE", b"????"]),
        st.integers(0, 0xFFFFFFFF),
        st.integers(0, 3),
        st.binary(max_size=40),
        with_sum=st.booleans(),
    ),
    st.just(greeting()),
)


@settings(deadline=None, max_examples=60)
@given(pieces=st.lists(pieces_of_wire, max_size=8), is_greeted=st.booleans())
def test_garbage_is_a_protocol_fault_and_nothing_else(pieces: list[bytes], is_greeted: bool) -> None:
    protocol = connected() if is_greeted else AdbProtocol()
    if is_greeted:
        opened(protocol)
    try:
        for piece in pieces:
            for event in feed(protocol, piece):
                if isinstance(event, StreamData):
                    protocol.consume(event.stream_id, len(event.data))
    except ProtocolFault as fault:
        assert str(fault).endswith(".")  # noqa: PT017
