"""What is no POM, no module file or no coordinate is refused, and never leads elsewhere."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder_bridge.prefix.gradle_module import read_module
from builder_bridge.prefix.pom import (
    PomFault,
    make_coordinate,
    parse_coordinate,
    read_pom,
)


@pytest.mark.parametrize("url", ["../x.jar", "/x", "a/b.jar", "", "-x", ".hidden"])
def test_a_file_of_a_module_may_not_lie_elsewhere(url: str) -> None:
    with pytest.raises(PomFault, match="outside"):
        read_module(json.dumps({"variants": [{"files": [{"url": url}]}]}).encode())


@pytest.mark.parametrize(
    ("document", "why"),
    [
        (b'<!DOCTYPE project [<!ENTITY a "x">]><project>&a;</project>', "document type"),
        (b'<!DOCTYPE project SYSTEM "file:///etc/passwd"><project/>', "document type"),
        (b"<project>", "well-formed"),
        (b"", "well-formed"),
        (b"<project>&undeclared;</project>", "well-formed"),
        (b"<html/>", "not a POM"),
        (b"<project>" + b"<a>" * 60 + b"</a>" * 60 + b"</project>", "nested"),
        (b"<project>" + b"<a/>" * 100_001 + b"</project>", "elements"),
        (b"<project>" + b" " * (4 << 20) + b"</project>", "bytes"),
        (b'<?xml version="1.0" encoding="no-such"?><project/>', "well-formed"),
    ],
)
def test_hostile_poms_are_refused(document: bytes, why: str) -> None:
    with pytest.raises(PomFault, match=why):
        read_pom(document)


@given(st.binary(max_size=200))
def test_no_bytes_make_the_reader_do_anything_but_refuse(data: bytes) -> None:
    for read in (read_pom, read_module):
        try:
            read(data)
        except PomFault:
            continue


@given(st.text(max_size=30), st.text(max_size=30), st.text(max_size=30))
def test_a_coordinate_never_leads_out_of_the_repository(group: str, name: str, version: str) -> None:
    try:
        path = make_coordinate(group, name, version).path(".pom")
    except PomFault:
        return
    assert path.isascii()
    assert not any(part in ("", ".", "..") or part[0] in ".-+" for part in path.split("/"))


@pytest.mark.parametrize(
    "text", ["", "a", "a:b", "a:b:c:d", "a b:c:1", "a..b:c:1", "a:b:1/2", "a:b:+", "$(id):b:1"]
)
def test_what_is_no_coordinate_is_refused(text: str) -> None:
    with pytest.raises(PomFault):
        parse_coordinate(text)
