"""What the client sends, as a server of HTTP sees it."""

import hashlib
import io
import json
import zipfile
from collections.abc import AsyncIterable
from pathlib import Path

import anyio
import httpx
import pytest

from orchestrator.client import PIECE_BYTES, UPLOADS_AT_ONCE, ApiClient, Refused

pytestmark = pytest.mark.anyio
ROOTS = {"code": "workspace_outside_roots", "detail": "no such root"}


class Service(httpx.AsyncBaseTransport):
    """Takes uploads as a service on another machine does, and remembers how they came."""

    def __init__(self, most_at_once: int) -> None:
        self._most_at_once = most_at_once
        self._all_at_once = anyio.Event()
        self.at_once = self.seen_at_once = self.largest_piece = 0
        self.bodies: dict[str, bytes] = {}
        self.names: list[str] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path
        if path == "/v1/builds":
            wish = json.loads(await request.aread())
            return httpx.Response(403, json=ROOTS) if "path" in wish else httpx.Response(201, json=wish)
        if path == "/v1/blobs/missing":
            return httpx.Response(200, json={"missing": json.loads(await request.aread())["sha256"]})
        self.at_once += 1
        self.seen_at_once = max(self.seen_at_once, self.at_once)
        if self.at_once >= self._most_at_once:
            self._all_at_once.set()
        await self._all_at_once.wait()
        await anyio.lowlevel.checkpoint()
        self.names.append(path)
        self.bodies[path] = await self._taken(request)
        self.at_once -= 1
        return httpx.Response(201, json={"workspace": "fingerprint"})

    async def _taken(self, request: httpx.Request) -> bytes:
        assert isinstance(request.stream, AsyncIterable)
        body = b""
        async for piece in request.stream:
            self.largest_piece = max(self.largest_piece, len(piece))
            body += piece
        return body


async def submitted(service: Service, workspace: Path) -> None:
    async with httpx.AsyncClient(transport=service, base_url="http://far") as http:
        await ApiClient(http).submit_workspace(workspace, {"tasks": ["help"]})


async def test_every_missing_file_is_sent_once_in_pieces_and_only_so_many_at_once(tmp_path: Path) -> None:
    contents = [f"file {number}".encode() for number in range(3 * UPLOADS_AT_ONCE)]
    contents.append(bytes(range(256)) * (PIECE_BYTES * 5 // 2 // 256))
    for number, content in enumerate(contents):
        (tmp_path / f"{number}.bin").write_bytes(content)
    service = Service(most_at_once=UPLOADS_AT_ONCE)
    await submitted(service, tmp_path)
    wanted = {f"/v1/blobs/{hashlib.sha256(content).hexdigest()}": content for content in contents}
    assert service.bodies == wanted
    assert sorted(service.names) == sorted(wanted)
    assert (service.seen_at_once, service.largest_piece) == (UPLOADS_AT_ONCE, PIECE_BYTES)


async def test_a_workspace_with_links_is_sent_as_a_zip_in_pieces(tmp_path: Path) -> None:
    content = hashlib.shake_256(b"so that it can not be packed").digest(PIECE_BYTES * 5 // 2)
    (tmp_path / "large.bin").write_bytes(content)
    (tmp_path / "link").symlink_to("large.bin")
    service = Service(most_at_once=1)
    await submitted(service, tmp_path)
    with zipfile.ZipFile(io.BytesIO(service.bodies["/v1/workspaces"])) as archive:
        assert archive.read("large.bin") == content
        assert archive.read("link") == b"large.bin"
    assert service.largest_piece == PIECE_BYTES


async def test_a_refusal_in_the_middle_of_an_upload_is_told_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "large.bin").write_bytes(bytes(3 * PIECE_BYTES))
    (tmp_path / "link").symlink_to("large.bin")

    async def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/v1/builds":
            return httpx.Response(403, json=ROOTS)
        return httpx.Response(413, json={"code": "too_large", "detail": "the upload is too large"})

    async with httpx.AsyncClient(transport=httpx.MockTransport(answer), base_url="http://far") as http:
        with pytest.raises(Refused, match="the upload is too large"):
            await ApiClient(http).submit_workspace(tmp_path, {})
