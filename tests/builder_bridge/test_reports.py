"""The archive of reports is a stranger's: it gives files inside the workspace, or a named fault."""

import contextlib
import io
import tarfile
from collections.abc import AsyncIterable, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder_bridge.adb import AdbConnection
from builder_bridge.bridge import Bridge
from builder_bridge.build import RunId
from builder_bridge.errors import ProtocolFault
from builder_bridge.reports import MAX_REPORTS, read_archive
from builder_bridge.routes.route import LogStream
from builder_bridge.workspace.kept import KeptContents

XML = "app/build/test-results/t/TEST-a.xml"


def archive(*entries: tuple[str, bytes, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as target:
        for name, content, kind in entries:
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "/etc/passwd"
            info.size = len(content) if kind == tarfile.REGTYPE else 0
            target.addfile(info, io.BytesIO(content))
    return out.getvalue()


def test_reports_come_by_their_paths_in_order() -> None:
    found = read_archive(
        archive((f"./{XML}", b"<a/>", tarfile.REGTYPE), ("a" * 150 + "/b.xml", b"", tarfile.REGTYPE))
    )
    assert list(found.items()) == [("a" * 150 + "/b.xml", b""), (XML, b"<a/>")]


@pytest.mark.parametrize(
    ("name", "kind"),
    [("../a.xml", tarfile.REGTYPE), ("/a.xml", tarfile.REGTYPE), ("a/../b.xml", tarfile.REGTYPE),
     (XML, tarfile.SYMTYPE), (XML, tarfile.LNKTYPE), (XML, tarfile.DIRTYPE), (XML, tarfile.CHRTYPE)],
)  # fmt: skip
def test_what_may_lie_outside_is_refused(name: str, kind: bytes) -> None:
    with pytest.raises(ProtocolFault, match="outside"):
        read_archive(archive((name, b"x", kind)))


def test_more_reports_than_are_allowed_are_refused() -> None:
    entries = [(f"a/{number}.xml", b"", tarfile.REGTYPE) for number in range(MAX_REPORTS + 1)]
    assert len(read_archive(archive(*entries[:-1]))) == MAX_REPORTS
    with pytest.raises(ProtocolFault, match="more than"):
        read_archive(archive(*entries))


def test_an_archive_that_is_cut_is_a_fault_or_shorter_by_whole_reports() -> None:
    whole = archive((XML, b"x" * 3000, tarfile.REGTYPE), ("b.xml", b"y" * 3000, tarfile.REGTYPE))
    for size in range(0, len(whole), 100):
        try:
            found = read_archive(whole[:size])
        except ProtocolFault:
            continue
        assert all(len(content) == 3000 for content in found.values())


@given(st.binary(max_size=1500))
def test_no_bytes_whatever_get_past_as_anything_but_a_protocol_fault(data: bytes) -> None:
    with contextlib.suppress(ProtocolFault):
        assert read_archive(data) == {}


class EndlessRoute:
    """A route to a phone that never stops sending."""

    name = "endless"

    async def call(self, *words: str, stdin: bytes | AsyncIterable[bytes] = b"") -> bytes:
        raise ProtocolFault("nothing but streams")

    @asynccontextmanager
    async def log(self, run_id: str, offset: int) -> AsyncIterator[LogStream]:
        raise ProtocolFault("no log")
        yield

    @asynccontextmanager
    async def get(self, run_id: str, index: str, offset: int) -> AsyncIterator[AsyncIterator[bytes]]:
        async def chunks() -> AsyncIterator[bytes]:
            while True:
                yield b"x" * (1 << 20)

        yield chunks()

    async def install(self, place: str, content: bytes) -> None:
        raise ProtocolFault("nothing is installed")


@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["events", "reports"])
async def test_a_phone_that_sends_without_end_is_ended_by_name(kind: str, tmp_path: Path) -> None:
    adb = cast(AdbConnection, None)  # what a run left is read by the route alone
    bridge = Bridge(adb, EndlessRoute(), "org.test", None, KeptContents(tmp_path))
    with pytest.raises(ProtocolFault, match=f"bytes of {kind}"):
        await getattr(bridge, kind)(RunId("r"))
