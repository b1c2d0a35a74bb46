"""What strangers send: one table. Each is refused with a clear problem, and nothing of it is left behind."""

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
import sqlalchemy as sa

from orchestrator.store.tables import metadata
from tests.orchestrator.conftest import Running, Start
from tests.orchestrator.hostile_zips import ZIPS
from tests.orchestrator.test_builds import ended, submit
from tests.orchestrator.workspaces import make_workspace

pytestmark = pytest.mark.anyio
LIMITS = {"files": 1000, "unpacked_bytes": 4 << 20, "upload_bytes": 8 << 20, "body_bytes": 100_000}
GOOD = hashlib.sha256(b"right").hexdigest()


@dataclass(frozen=True, slots=True)
class World:
    """A service with one ended build, one whose packed log is damaged, and a blob."""

    running: Running
    projects: Path
    build: str
    damaged: str


Send = Callable[[World], Awaitable[httpx.Response]]


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    send: Send
    status: int
    code: str


def ask(method: str, path: str, **options: Any) -> Send:
    async def send(world: World) -> httpx.Response:
        url = path.replace("{build}", world.build).replace("{damaged}", world.damaged)
        return await world.running.http.request(method, url, **options)

    return send


def wish(**body: Any) -> Send:
    async def send(world: World) -> httpx.Response:
        text = json.dumps(body).replace("{projects}", str(world.projects))
        (world.projects / "evil").unlink(missing_ok=True)
        if "evil" in text:
            (world.projects / "evil").symlink_to("/etc")
        headers = {"content-type": "application/json"}
        return await world.running.http.post("/v1/builds", content=text, headers=headers)

    return send


def upload(chunks: Callable[[], AsyncIterator[bytes]], path: str = "/v1/workspaces") -> Send:
    async def send(world: World) -> httpx.Response:
        method = "PUT" if "blobs" in path else "POST"
        return await world.running.http.request(method, path, content=chunks())

    return send


def raw(head: bytes) -> Send:
    """Send bytes that no client library would."""

    async def send(world: World) -> httpx.Response:
        host, _, port = world.running.url.removeprefix("http://").partition(":")
        async with await anyio.connect_tcp(host, int(port)) as stream:
            await stream.send(head.replace(b"{host}", f"{host}:{port}".encode()))
            got = b""
            with anyio.fail_after(60):
                while b"\r\n\r\n" not in got or b"}" not in got:
                    got += await stream.receive()
        top, _, body = got.partition(b"\r\n\r\n")
        first, *lines = top.decode().split("\r\n")
        headers = [tuple(line.split(": ", 1)) for line in lines]
        return httpx.Response(int(first.split()[1]), headers=headers, content=body)  # type: ignore[arg-type]

    return send


async def endless() -> AsyncIterator[bytes]:
    for _ in range(400):
        yield bytes(65_536)


INVALID = (422, "invalid_request")
LARGE = (413, "too_large")
RANGE = (416, "range_not_satisfiable")
MANIFEST = (422, "bad_manifest")
NO_HTTP = (400, "bad_http")
HEAD = (431, "head_too_large")
BEHIND = {"range": "bytes=99999-"}
JSON = {"content-type": "application/json"}
LINE = b"GET /v1/builds HTTP/1.1\r\nhost: {host}\r\n"
CASES = [
    *(Case(f"zip: {name}", ask("POST", "/v1/workspaces", content=made.data), made.status, made.code)
      for name, made in ZIPS.items()),
    Case("zip: a name that climbs", ask("POST", "/v1/workspaces?name=../x", content=b"x"), *INVALID),
    Case("upload: too large", ask("POST", "/v1/workspaces", content=bytes(9 << 20)), *LARGE),
    Case("upload: too large, of no stated length", upload(endless), *LARGE),
    Case("blob: too large", upload(endless, f"/v1/blobs/{'0' * 64}"), *LARGE),
    Case("blob: other digest", ask("PUT", f"/v1/blobs/{'0' * 64}", content=b"wrong"), 422, "digest_mismatch"),
    Case("blob: upper case", ask("PUT", f"/v1/blobs/{GOOD.upper()}", content=b"right"), *INVALID),
    Case("blob: a path", ask("PUT", "/v1/blobs/..%2F..%2Fetc%2Fpasswd", content=b"x"), 404, "not_found"),
    Case("blob: short", ask("PUT", "/v1/blobs/abc", content=b"x"), *INVALID),
    Case("blobs: no digest", ask("POST", "/v1/blobs/missing", json={"sha256": ["x"]}), *INVALID),
    Case("body: too large", ask("POST", "/v1/builds", json={"name": "x" * 200_000}), *LARGE),
    *(Case(f"body: too large for {path}", ask("POST", path, content=bytes(200_000)), *LARGE)
      for path in ("/mcp", "/v1/retention", "/v1/blobs/missing", "/v1/phones", "/v1/runs")),
    Case("body: too large for MCP, of no stated length", upload(endless, "/mcp"), *LARGE),
    Case("body: no JSON", ask("POST", "/v1/builds", content=b"{", headers=JSON),
         *INVALID),
    Case("body: deep", ask("POST", "/v1/builds", content=b"[" * 50_000, headers=JSON), 400, "bad_request"),
    Case("body: none", ask("POST", "/v1/builds"), *INVALID),
    Case("wish: nothing", wish(), 400, "bad_request"),
    Case("wish: two sources", wish(path="/x", workspace=GOOD), 400, "bad_request"),
    Case("wish: relative path", wish(path="x/y"), *INVALID),
    Case("wish: outside", wish(path="/etc"), 403, "workspace_outside_roots"),
    Case("wish: dotted outside", wish(path="{projects}/../.."), 403, "workspace_outside_roots"),
    Case("wish: link outside", wish(path="{projects}/evil"), 403, "workspace_outside_roots"),
    Case("wish: no folder", wish(path="{projects}/none"), 422, "preflight_bad_workspace"),
    Case("wish: unknown workspace", wish(workspace=GOOD), 404, "unknown_workspace"),
    Case("wish: unknown field", wish(path="/x", tusks=[]), *INVALID),
    Case("wish: task with a space", wish(path="/x", tasks=["a b"]), *INVALID),
    Case("wish: task like an option", wish(path="/x", tasks=["--init-script"]), *INVALID),
    Case("wish: argument like a task", wish(path="/x", args=["clean"]), *INVALID),
    Case("wish: null byte", wish(path="/x\u0000y"), *INVALID),
    Case("wish: leaving project_dir", wish(path="{projects}", project_dir="../.."), *INVALID),
    Case("wish: huge deadline", wish(path="/x", deadline_s=1e12), *INVALID),
    Case("wish: unknown need", wish(path="{projects}", needs={"luck": 1}), *INVALID),
    Case("wish: unknown phone", wish(path="{projects}/w", phone="nobody"), 404, "unknown_phone"),
    Case("files: one leaves", wish(files=[{"path": "../x", "sha256": GOOD}]), *INVALID),
    Case("files: one is absolute", wish(files=[{"path": "/x", "sha256": GOOD}]), *INVALID),
    Case("files: one was not sent", wish(files=[{"path": "x", "sha256": "0" * 64}]), 409, "blob_missing"),
    Case("files: a long name", wish(files=[{"path": "x" * 256, "sha256": GOOD}]), *MANIFEST),
    Case("files: a long path", wish(files=[{"path": "x/" * 1500 + "y", "sha256": GOOD}]), *MANIFEST),
    Case("files: twice", wish(files=[{"path": "x", "sha256": GOOD}] * 2), *MANIFEST),
    Case("files: under a file", wish(files=[{"path": "x", "sha256": GOOD}, {"path": "x/y", "sha256": GOOD}]),
         *MANIFEST),
    *(Case(f"cursor: {cursor}", ask("GET", "/v1/builds", params={"cursor": cursor}), *INVALID)
      for cursor in ("%%%", "bm9uc2Vuc2U=", "nan_x", "1e9_x", "1.0_x' or 1=1 --", "1.0", "9" * 400 + ".0_x")),
    *(Case(f"cursor of runs: {cursor}", ask("GET", "/v1/runs", params={"cursor": cursor}), *INVALID)
      for cursor in ("%%%", "../..", "20260102-030405-abcd/..", "20260102-030405-ABCD", "1.0_x", "9" * 4000)),
    Case("runs: no limit", ask("GET", "/v1/runs?limit=201"), *INVALID),
    Case("runs: unknown state", ask("GET", "/v1/runs?state=happy"), *INVALID),
    Case("runs: relative folder", ask("GET", "/v1/runs?workspace=x"), *INVALID),
    Case("list: no limit", ask("GET", "/v1/builds?limit=0"), *INVALID),
    Case("list: unknown state", ask("GET", "/v1/builds?state=happy"), *INVALID),
    Case("unknown build", ask("GET", "/v1/builds/none"), 404, "not_found"),
    Case("unknown build, live", ask("GET", "/v1/builds/none/log/live"), 404, "not_found"),
    Case("unknown route", ask("GET", "/v1/nowhere"), 404, "not_found"),
    Case("wrong method", ask("DELETE", "/v1/builds"), 405, "method_not_allowed"),
    Case("a method of nobody", ask("BREW", "/v1/builds"), 405, "method_not_allowed"),
    Case("unknown phone", ask("DELETE", "/v1/phones/none"), 404, "unknown_phone"),
    Case("log: behind its end", ask("GET", "/v1/builds/{build}/log", headers=BEHIND), *RANGE),
    Case("log: its last none", ask("GET", "/v1/builds/{build}/log", headers={"range": "bytes=-0"}),
         *RANGE),
    Case("log: a long range", ask("GET", "/v1/builds/{build}/log", headers={"range": "bytes=" + "0-1," * 99}),
         *INVALID),
    Case("log: negative offset", ask("GET", "/v1/builds/{build}/log?offset=-1"), *INVALID),
    Case("log: event id", ask("GET", "/v1/builds/{build}/log/live", headers={"last-event-id": "x"}),
         *INVALID),
    Case("log: back-reference", ask("GET", "/v1/builds/{build}/log/search", params={"pattern": r"(a)\1"}),
         400, "bad_pattern"),
    Case("log: huge one", ask("GET", "/v1/builds/{build}/log/search", params={"pattern": "(a{999}){999}"}),
         400, "bad_pattern"),
    Case("artifact: none such", ask("GET", "/v1/builds/{build}/artifacts/7"), 404, "not_found"),
    Case("artifact: no number", ask("GET", "/v1/builds/{build}/artifacts/x"), *INVALID),
    Case("artifact: behind its end", ask("GET", "/v1/builds/{build}/artifacts/0", headers=BEHIND), *RANGE),
    *(Case(f"damaged log: {path}", ask("GET", "/v1/builds/{damaged}/" + path), 500, "log_damaged")
      for path in ("log", "log/lines", "log/search?pattern=x", "log/live")),
    Case("head: giant header", raw(LINE + b"x-big: " + b"x" * 100_000), *HEAD),
    Case("head: many headers", raw(LINE + b"x-one: 1\r\n" * 20_000), *HEAD),
    Case("head: giant path", raw(b"GET /" + b"x" * 100_000), *HEAD),
    Case("head: no HTTP", raw(b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n"), *NO_HTTP),
    Case("head: two lengths", raw(LINE + b"content-length: 1\r\ncontent-length: 2\r\n\r\n"), *NO_HTTP),
    Case("head: two hosts", raw(LINE + b"host: evil.example\r\n\r\n"), *NO_HTTP),
    Case("head: another's name", raw(b"GET / HTTP/1.1\r\nhost: evil.example\r\n\r\n"), 400, "unknown_host"),
]  # fmt: skip


@pytest.fixture
async def world(start: Start, projects: Path) -> AsyncIterator[World]:
    async with start("p1", limits=LIMITS) as running:
        ids = []
        noise = [hashlib.sha256(bytes([n % 256, n >> 8])).hexdigest() for n in range(4000)]
        for name, lines in (("w", ["x"]), ("damaged", noise)):
            workspace = make_workspace(projects / name, text=name, lines=lines)
            ids.append((await submit(running, workspace))["id"])
            await ended(running, ids[-1])
        packed = running.service.stores.logs.packed_path(f"{ids[1]}-1")
        data = packed.read_bytes()
        packed.write_bytes(data[:2000] + bytes(1000) + data[3000:])
        (await running.http.put(f"/v1/blobs/{GOOD}", content=b"right")).raise_for_status()
        yield World(running, projects, ids[0], ids[1])


async def kept(running: Running) -> Counter[str]:
    """Count what the service keeps: its files, and the rows of its tables."""
    data = running.settings.data_dir
    files = Counter(
        str(Path(folder, name).relative_to(data))
        for folder, folders, names in os.walk(data)  # passes over what vanishes meanwhile
        for name in (*folders, *names)
        if not re.search(r"\.db(-wal|-shm|-journal)?$|/hashes/|^.*/incoming$", str(Path(folder, name)))
    )

    def count(connection: sa.Connection) -> dict[str, int]:
        query = sa.select(sa.func.count())
        return {
            name: connection.execute(query.select_from(table)).scalar_one()
            for name, table in metadata.tables.items()
        }

    return files + Counter(await running.service.stores.database.read(count))


async def left_since(running: Running, before: Counter[str]) -> dict[str, int]:
    """Give what is there beyond what was; an answer may come before what it refuses is tidied up."""
    left: Counter[str] = Counter()
    with anyio.move_on_after(60):
        while left := await kept(running) - before:  # noqa: ASYNC110 - nobody tells
            await anyio.sleep(0.05)
    return dict(left)


def build_named_by(answer: httpx.Response) -> str | None:
    """Give the id of a build that the path of the request names."""
    if getattr(answer, "_request", None) is None:
        return None
    named = re.match(r"/v1/builds/([0-9a-z-]+)(?:/|$)", answer.request.url.path)
    return None if named is None else named[1]


async def test_what_strangers_send_is_refused_clearly_and_leaves_nothing(
    world: World, tmp_path: Path
) -> None:
    before = await kept(world.running)
    wrong = {}
    for case in CASES:
        answer = await case.send(world)
        problem = answer.json() if answer.headers["content-type"] == "application/problem+json" else {}
        seen = (answer.status_code, problem.get("code"))
        is_clear = all(problem.get(field) for field in ("type", "title", "status", "detail", "hint"))
        is_clear = is_clear and problem.get("build_id") == build_named_by(answer)
        has_id = problem.get("request_id") == answer.headers.get("x-request-id", "")
        left = await left_since(world.running, before)
        if seen != (case.status, case.code) or not is_clear or not has_id or left:
            wrong[case.name] = (seen, answer.text[:300], left)
    assert wrong == {}
    assert not [path async for path in anyio.Path(tmp_path).rglob("escape*")]


async def test_the_hint_of_a_refused_archive_speaks_of_the_archive(world: World) -> None:
    for name in ("a name above", "a bomb"):
        answer = await world.running.http.post("/v1/workspaces", content=ZIPS[name].data)
        assert answer.json()["hint"].startswith("Mend what the message names, make the archive anew")
