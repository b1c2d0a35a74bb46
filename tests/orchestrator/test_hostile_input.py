"""What strangers send: each is refused with a clear problem, and nothing of it is left behind."""

import hashlib
import io
import stat
import zipfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.orchestrator.conftest import Running, Start

pytestmark = pytest.mark.anyio
LIMITS = {"files": 1000, "unpacked_bytes": 4 << 20, "upload_bytes": 1 << 20, "body_bytes": 100_000,
          "upload_idle_s": 0.3}  # fmt: skip


def zip_of(*entries: tuple[str | zipfile.ZipInfo, bytes]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries:
            archive.writestr(name, content)
    return data.getvalue()


def link(name: str, target: str) -> tuple[zipfile.ZipInfo, bytes]:
    info = zipfile.ZipInfo(name)
    info.create_system = 3
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info, target.encode()


def device(name: str) -> tuple[zipfile.ZipInfo, bytes]:
    info = zipfile.ZipInfo(name)
    info.create_system = 3
    info.external_attr = (stat.S_IFCHR | 0o666) << 16
    return info, b""


def nothing_left(running: Running) -> bool:
    folder = running.settings.data_dir / "workspaces"
    return not list((folder / "incoming").iterdir()) and not list((folder / "trees").iterdir())


ZIPS: dict[str, Callable[[], bytes]] = {
    "parent": lambda: zip_of(("../escape", b"x")),
    "absolute": lambda: zip_of(("/etc/passwd", b"x")),
    "inner-parent": lambda: zip_of(("a/../../b", b"x")),
    "backslashes": lambda: zip_of(("a\\..\\..\\b", b"x"), ("a/../c", b"y")),
    "link-outside": lambda: zip_of(link("evil", "/etc"), ("evil/passwd", b"x")),
    "link-up": lambda: zip_of(link("evil", "../../..")),
    "device": lambda: zip_of(device("dev")),
    "bomb": lambda: zip_of(("zeros", bytes(64 << 20))),
    "too-big": lambda: zip_of(*((f"f{n}", hashlib.sha512(bytes([n])).digest() * 20_000) for n in range(5))),
    "seventy-thousand": lambda: zip_of(*((f"f{n}", b"") for n in range(2000))),
    "twice": lambda: zip_of(("a", b"1"), ("a/b", b"2")),
    "no-zip": lambda: b"PK\x03\x04 this is no zip at all",
    "cut": lambda: zip_of(("a", b"x" * 5000))[:-30],
    "empty": lambda: b"",
}


@pytest.fixture
async def running(start: Start) -> AsyncIterator[Running]:
    async with start(limits=LIMITS) as service:
        yield service


async def test_hostile_zips_are_refused_and_leave_nothing(running: Running, tmp_path: Path) -> None:
    for name, make in ZIPS.items():
        answer = await running.http.post("/v1/workspaces", content=make())
        assert answer.status_code in (400, 413, 422), (name, answer.status_code, answer.text)
        problem = answer.json()
        assert answer.headers["content-type"] == "application/problem+json", name
        assert problem["detail"], name
        assert problem["code"], name
        assert problem["request_id"] == answer.headers["x-request-id"]
        assert nothing_left(running), name
    assert not (tmp_path / "escape").exists()


async def test_an_upload_over_the_limit_is_cut_off_with_or_without_a_length(running: Running) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(100):
            yield bytes(65_536)

    for content in (bytes(2 << 20), endless()):
        answer = await running.http.post("/v1/workspaces", content=content)
        assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
        assert answer.headers["content-type"] == "application/problem+json"
    answer = await running.http.post("/v1/builds", json={"name": "x" * 200_000})
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
    assert nothing_left(running)


async def test_a_sender_that_stalls_is_hung_up_on(running: Running) -> None:
    async def slow() -> AsyncIterator[bytes]:
        yield b"PK"
        await anyio.sleep(1)
        yield b"more"

    answer = await running.http.post("/v1/workspaces", content=slow())
    assert (answer.status_code, answer.json()["code"]) == (400, "upload_stalled")
    assert nothing_left(running)


async def test_a_blob_that_is_not_what_its_name_says_is_thrown_away(running: Running) -> None:
    digest = hashlib.sha256(b"right").hexdigest()
    answer = await running.http.put(f"/v1/blobs/{digest}", content=b"wrong")
    assert (answer.status_code, answer.json()["code"]) == (422, "digest_mismatch")
    missing = await running.http.post("/v1/blobs/missing", json={"sha256": [digest]})
    assert missing.json()["missing"] == [digest]
    assert (await running.http.put(f"/v1/blobs/{digest}", content=b"right")).status_code == 204
    for name in ("UPPER" * 13, "../../etc/passwd", "abc"):
        assert (await running.http.put(f"/v1/blobs/{name}", content=b"x")).status_code in (404, 422)


GOOD = hashlib.sha256(b"right").hexdigest()
WISHES: dict[str, tuple[dict[str, Any], int, str]] = {
    "nothing": ({}, 400, "bad_request"),
    "two sources": ({"path": "/x", "workspace": GOOD}, 400, "bad_request"),
    "relative path": ({"path": "x/y"}, 422, "invalid_request"),
    "outside": ({"path": "/etc"}, 403, "workspace_outside_roots"),
    "dotted outside": ({"path": "{projects}/../.."}, 403, "workspace_outside_roots"),
    "link outside": ({"path": "{projects}/evil"}, 403, "workspace_outside_roots"),
    "no folder": ({"path": "{projects}/none"}, 422, "preflight_bad_workspace"),
    "unknown workspace": ({"workspace": GOOD}, 404, "unknown_workspace"),
    "unknown field": ({"path": "/x", "tusks": []}, 422, "invalid_request"),
    "task with a space": ({"path": "/x", "tasks": ["a b"]}, 422, "invalid_request"),
    "task like an option": ({"path": "/x", "tasks": ["--init-script"]}, 422, "invalid_request"),
    "argument like a task": ({"path": "/x", "args": ["clean"]}, 422, "invalid_request"),
    "null byte": ({"path": "/x\u0000y"}, 422, "invalid_request"),
    "leaving project_dir": ({"path": "{projects}", "project_dir": "../.."}, 422, "invalid_request"),
    "huge deadline": ({"path": "/x", "deadline_s": 1e12}, 422, "invalid_request"),
    "unknown need": ({"path": "{projects}", "needs": {"luck": 1}}, 422, "invalid_request"),
    "unknown phone": ({"path": "{projects}", "phone": "nobody"}, 404, "unknown_phone"),
    "file leaves": ({"files": [{"path": "../x", "sha256": GOOD}]}, 422, "invalid_request"),
    "file is absolute": ({"files": [{"path": "/x", "sha256": GOOD}]}, 422, "invalid_request"),
    "file is unknown": ({"files": [{"path": "x", "sha256": "0" * 64}]}, 409, "blob_missing"),
    "file under a file": (
        {"files": [{"path": "x", "sha256": GOOD}, {"path": "x/y", "sha256": GOOD}]}, 422, "bad_manifest"
    ),
}  # fmt: skip


async def test_impossible_wishes_are_refused_by_their_reason(running: Running, projects: Path) -> None:
    (projects / "evil").symlink_to("/etc")
    await running.http.put(f"/v1/blobs/{GOOD}", content=b"right")
    seen = {}
    for name, (wish, _, _) in WISHES.items():
        body = {
            key: value.replace("{projects}", str(projects)) if isinstance(value, str) else value
            for key, value in wish.items()
        }
        (projects / "evil").unlink(missing_ok=True)
        if "evil" in str(wish):
            (projects / "evil").symlink_to("/etc")
        answer = await running.http.post("/v1/builds", json=body)
        seen[name] = (answer.status_code, answer.json()["code"])
    assert seen == {name: (status, code) for name, (_, status, code) in WISHES.items()}
    assert (await running.http.get("/v1/builds")).json()["builds"] == []


async def test_odd_requests_are_problems_too(running: Running) -> None:
    cases = [
        ("GET", "/v1/builds?cursor=%%%", 422),
        ("GET", "/v1/builds?cursor=bm9uc2Vuc2U=", 422),
        ("GET", "/v1/builds?limit=0", 422),
        ("GET", "/v1/builds/none", 404),
        ("GET", "/v1/builds/none/log/live", 404),
        ("GET", "/v1/nowhere", 404),
        ("DELETE", "/v1/builds", 405),
        ("POST", "/v1/builds", 422),
        ("DELETE", "/v1/phones/none", 404),
    ]
    for method, path, status in cases:
        answer = await running.http.request(method, path)
        assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json"), (
            path
        )
        assert set(answer.json()) >= {"type", "title", "status", "detail", "code", "hint", "request_id"}
