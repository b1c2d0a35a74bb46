"""Framing: where events begin and end, and what is no event."""

from copy import deepcopy
from itertools import chain
from typing import Any

import pytest

from agent.wire.limits import MAX_BODY_BYTES, MAX_LINE_BYTES
from agent.wire.sse import EventReader, Junk, Oddity

MIB = 1024 * 1024


def events(body: bytes, piece: int = 1) -> list[tuple[int, Any]]:
    """Read a body in pieces; give (offset, event or oddity)."""
    reader = EventReader()
    pieces = [body[at : at + piece] for at in range(0, len(body), piece)]
    found = chain(chain.from_iterable(map(reader.feed, pieces)), reader.close())
    return [(reader.offset, event.oddity if isinstance(event, Junk) else deepcopy(event)) for event in found]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'data: {"a":1}\n\ndata: {"a":2}\n\n', [(0, {"a": 1}), (15, {"a": 2})]),
        (b'data: {"a":1}\r\n\r\ndata: {"a":2}', [(0, {"a": 1}), (17, {"a": 2})]),
        (b'data: {"a":1}\r\rdata: {"a":2}\r', [(0, {"a": 1}), (15, {"a": 2})]),
        (b'data: {"a":1}\ndata: {"a":2}\n', [(0, {"a": 1}), (14, {"a": 2})]),
        (b'\xef\xbb\xbfdata: {"a":1}\n\n', [(0, {"a": 1})]),
        (b'data: {\ndata: "a": 1\ndata: }\n\n', [(0, {"a": 1})]),
        (b'data: {"a"\n\ndata: {"a":2}\n\n', [(0, Oddity.MALFORMED), (12, {"a": 2})]),
        (b'data: {"a"\ndata: {"a":2}\n', [(0, Oddity.MALFORMED), (11, {"a": 2})]),
        (b'data: {"a":[\ndata: {"a":2}\n\n', [(0, Oddity.MALFORMED), (13, {"a": 2})]),
        (b'{"a":\n\n1}\n', [(0, {"a": 1})]),
        (b'[{"a":1},\n{"a":2}]', [(0, {"a": 1}), (10, {"a": 2})]),
        (b'data: [{"a":1},null,"x",{"a":2}]\n\n', [(0, {"a": 1}), (0, {"a": 2})]),
        (b'data: {"a":1}{"a":2}\n\n', [(0, {"a": 1}), (0, {"a": 2})]),
        (b'{"a":1}\n{"a":2}\n', [(0, {"a": 1}), (8, {"a": 2})]),
        (b'data: {"a":1}\n\ndata: [DONE]\n\ndata: {"a":2}\n\n', [(0, {"a": 1})]),
        (b": ping\n\nid: 5\nretry: 9\n\n", []),
        (b"data: null\n\ndata: 12\n\ndata: true\n\n", []),
        (b"data: ping\n\n", [(0, Oddity.MALFORMED)]),
        (b"data: the server is busy\n\n", [(0, Oddity.TEXT)]),
        (b"<html>\n", [(0, Oddity.TEXT)]),
        (b"x-cost: 4\n", [(0, Oddity.FIELD)]),
        (b'data: {"a', [(0, Oddity.CUT)]),
        (b"dat", [(0, Oddity.CUT)]),
        (b"data: [DO", [(0, Oddity.CUT)]),
        (b'data: {"a":"\xff"}\n\n', [(0, Oddity.MALFORMED), (0, {"a": "\ufffd"})]),
        (b'data: {"a":"\xed\xa0\xbd\xed\xba\x80"}\n\n', [(0, {"a": "\ud83d\ude80"})]),
        (b'data: {"a":"x\ty"}\n\n', [(0, {"a": "x\ty"})]),
        (b'data: {"a":-Infinity}\n\n', [(0, {"a": float("-inf")})]),
    ],
)
def test_a_body_is_cut_into_events(body: bytes, expected: list[tuple[int, Any]]) -> None:
    assert events(body) == expected
    assert events(body, len(body)) == expected


def test_the_name_of_an_event_ends_with_the_event() -> None:
    reader = EventReader()
    names = [
        reader.name
        for _ in reader.feed(b'event: a\ndata: {"x":1}\n\ndata: {"x":2}\n\nevent:b\r\ndata: {}\r\n')
    ]
    assert names == ["a", "", "b"]


def test_reading_ends_at_the_end_marker() -> None:
    reader = EventReader()
    assert list(reader.feed(b"data: [DONE]\n\n" + b"x" * 1000)) == []
    assert reader.is_done
    assert reader.saw_end_marker
    assert list(reader.feed(b'data: {"a":1}\n\n')) == []


@pytest.mark.parametrize("size_bytes", [MAX_LINE_BYTES + 1, 64 * MIB])
@pytest.mark.parametrize("piece_bytes", [MIB, 64 * MIB + 1])
def test_a_line_without_end_is_given_up(size_bytes: int, piece_bytes: int) -> None:
    body = b'data: {"a":1}\n\ndata: "' + b"x" * size_bytes
    reader = EventReader()
    found = [
        event.oddity if isinstance(event, Junk) else event
        for at in range(0, len(body), piece_bytes)
        for event in reader.feed(body[at : at + piece_bytes])
    ]
    assert found == [{"a": 1}, Oddity.TOO_LONG]
    assert reader.is_done
    assert list(reader.close()) == []


def test_a_body_without_end_is_given_up() -> None:
    reader = EventReader()
    line = b'data: {"a":"' + b"x" * (MIB - 16) + b'"}\n\n'
    found = [event for _ in range(MAX_BODY_BYTES // MIB + 5) for event in reader.feed(line)]
    assert isinstance(found[-1], Junk)
    assert found[-1].oddity is Oddity.TOO_LONG
    assert len(found) <= MAX_BODY_BYTES // MIB + 1
    assert reader.size_bytes <= MAX_BODY_BYTES


def test_many_objects_on_one_line_take_linear_time() -> None:
    assert len(events(b"data: " + b"{}" * 30_000 + b"\n", 1 << 20)) == 30_000
