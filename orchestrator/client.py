"""A client of the service's own HTTP API; the command line and the agent know no other door.

A connection that breaks is no fault of a build: reads are tried again for a while, the live feed
goes on at the byte where it stopped.
"""

import json
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import anyio
import httpx
from anyio import to_thread

from builder_bridge.workspace.archive import write_archive
from builder_bridge.workspace.scan import scan
from builder_bridge.workspace.snapshot import Snapshot, SnapshotFile
from orchestrator.errors import Refusal, ServiceUnreachable

JsonObject = dict[str, Any]
PATIENCE_S = 60.0
WAIT_PAUSE_S = 0.3
UPLOADS_AT_ONCE = 8
PIECE_BYTES = 1 << 20
"""How much of what is sent is in memory at once; a file up to this size is sent whole."""


class Refused(Refusal):
    """The service answered with a problem; `status` and `body` are as it sent them."""

    def __init__(self, status: int, body: Mapping[str, Any]) -> None:
        detail = str(body.get("detail") or f"the service answered with status {status}")
        super().__init__(detail, code=str(body.get("code", "refused")), hint=str(body.get("hint", "")))
        self.answered_status = status
        self.body = dict(body)


@dataclass(frozen=True, slots=True)
class FeedEvent:
    """One event of a build's live feed; `id` names the log byte to go on from."""

    name: str
    data: JsonObject
    id: str


class ApiClient:
    """The `/v1` API of one service as methods; bodies are JSON objects as the API gives them.

    For `patience_s` what only reads is tried again where the service does not answer.
    """

    def __init__(self, http: httpx.AsyncClient, patience_s: float = PATIENCE_S) -> None:
        self._http = http
        self._patience_s = patience_s

    @property
    def url(self) -> str:
        """Where the service is."""
        return str(self._http.base_url).rstrip("/")

    async def submit_workspace(self, workspace: Path, wish: JsonObject) -> JsonObject:
        """Ask for a build of a folder's present state, sending only what the service lacks.

        A service on this machine reads the folder itself where its settings allow that.
        """
        path = await to_thread.run_sync(workspace.resolve)
        try:
            return await self._send("POST", "/v1/builds", json={**wish, "path": str(path)})
        except Refused as refusal:
            if refusal.reason_code != "workspace_outside_roots":
                raise
        snapshot = await to_thread.run_sync(scan, workspace)
        named = {"name": wish.get("name") or _name_of(snapshot)}
        if snapshot.links:
            fingerprint = await self._send_zip(snapshot, named["name"])
            return await self._send("POST", "/v1/builds", json={**wish, **named, "workspace": fingerprint})
        await self._send_blobs(snapshot)
        files = [
            {"path": file.path, "sha256": file.sha256, "is_executable": file.mode == 0o755}
            for file in snapshot.files
        ]
        return await self._send("POST", "/v1/builds", json={**wish, **named, "files": files})

    async def create_build(self, body: JsonObject) -> JsonObject:
        """Ask for a build; `body` is a `BuildRequest` of the API."""
        return await self._send("POST", "/v1/builds", json=body)

    async def build(self, build_id: str, wait_s: float = 0.0) -> JsonObject:
        """Give a build with runs and artifacts, at once or when it ends within the time."""
        return await self._read(f"/v1/builds/{build_id}", {"wait_s": wait_s} if wait_s else {})

    async def builds(self, **filters: Any) -> JsonObject:
        """Give a page of builds, newest first."""
        return await self._read("/v1/builds", {k: v for k, v in filters.items() if v is not None})

    async def cancel(self, build_id: str) -> JsonObject:
        """Ask for the end of a build."""
        return await self._send("POST", f"/v1/builds/{build_id}/cancel")

    async def digest(self, build_id: str) -> JsonObject:
        """Give the digest of an ended build; raises `Refused` (`no_digest`) where there is none."""
        return await self._read(f"/v1/builds/{build_id}/digest")

    async def events(self, build_id: str) -> JsonObject:
        """Give what Gradle noted of an ended build's tasks; raises `Refused` where it did not."""
        return await self._read(f"/v1/builds/{build_id}/events")

    async def log_lines(self, build_id: str, first: int, count: int) -> JsonObject:
        """Give lines of the log, counted from 0; a negative `first` counts from the end."""
        return await self._read(f"/v1/builds/{build_id}/log/lines", {"first": first, "count": count})

    async def search_log(self, build_id: str, pattern: str, max_hits: int) -> JsonObject:
        """Find lines by a regular expression (RE2)."""
        return await self._read(
            f"/v1/builds/{build_id}/log/search", {"pattern": pattern, "max_hits": max_hits}
        )

    async def phones(self) -> list[JsonObject]:
        """Give all phones."""
        answer = await self._read("/v1/phones")
        found: list[JsonObject] = answer["phones"]
        return found

    async def begin_run(self, body: JsonObject) -> JsonObject:
        """Begin a run of the service's agent; `body` is an `AgentRequest` of the API."""
        return await self._send("POST", "/v1/runs", json=body)

    async def agent_run(
        self, run_id: str, wait_s: float = 0.0, past_question: str | None = None
    ) -> JsonObject:
        """Give a run as it is, at once or when it asks or ends within the time."""
        past = {} if past_question is None else {"past_question": past_question}
        return await self._read(f"/v1/runs/{quote(run_id, safe='')}", {"wait_s": wait_s, **past})

    async def tell_run(self, run_id: str, verb: str, body: JsonObject) -> JsonObject:
        """Answer, cancel or resume a run: the verbs of the API, with the body of each."""
        return await self._send("POST", f"/v1/runs/{quote(run_id, safe='')}/{verb}", json=body)

    async def add_phone(self, address: str, pool: str | None, route: str | None) -> JsonObject:
        """Make a phone known to the service."""
        return await self._send("POST", "/v1/phones", json={"address": address, "pool": pool, "route": route})

    async def remove_phone(self, name: str) -> None:
        """Make the service forget a phone; raises `Refused` where it knows none, or a build holds it."""
        await self._send("DELETE", f"/v1/phones/{quote(name, safe='')}")

    async def status(self) -> JsonObject:
        """Give the state of the service in numbers."""
        return await self._read("/v1/status")

    async def download(self, path: str, destination: Path) -> int:
        """Write what a path of the API gives into a file; give its size in bytes."""
        size = 0
        partial = destination.with_name(destination.name + ".part")
        async with self._http.stream("GET", path) as response:
            await _check(response)
            with partial.open("wb") as file:
                async for chunk in response.aiter_bytes(1 << 18):
                    size += len(chunk)
                    await to_thread.run_sync(file.write, chunk)
        partial.replace(destination)
        return size

    async def follow(self, build_id: str) -> AsyncIterator[FeedEvent]:
        """Give every event of a build's feed until `end`, across broken connections."""
        last_id, tried_s = "", time.monotonic()
        while True:
            headers = {"last-event-id": last_id} if last_id else {}
            try:
                path = f"/v1/builds/{build_id}/log/live"
                async with self._http.stream("GET", path, headers=headers, timeout=_FEED_TIMEOUT) as response:
                    await _check(response)
                    async for event in _events(response.aiter_lines()):
                        last_id, tried_s = event.id or last_id, time.monotonic()
                        yield event
                        if event.name == "end":
                            return
            except httpx.TransportError as fault:
                if time.monotonic() - tried_s > self._patience_s:
                    raise _unreachable(self.url, fault) from fault
            await anyio.sleep(WAIT_PAUSE_S)

    async def _send_blobs(self, snapshot: Snapshot) -> None:
        by_digest = {file.sha256: file for file in snapshot.files}
        answer = await self._send("POST", "/v1/blobs/missing", json={"sha256": sorted(by_digest)})
        waiting = iter([by_digest[sha256] for sha256 in answer["missing"]])

        async def send_some() -> None:
            for file in waiting:  # all senders take from the same files, each file once
                await self._send_blob(snapshot, file)

        async with anyio.create_task_group() as uploads:
            for _ in range(min(UPLOADS_AT_ONCE, len(answer["missing"]))):
                uploads.start_soon(send_some)

    async def _send_blob(self, snapshot: Snapshot, file: SnapshotFile) -> None:
        path = f"/v1/blobs/{file.sha256}"
        if file.content is not None:
            await self._send("PUT", path, content=file.content)
        elif file.size_bytes <= PIECE_BYTES:
            content = await to_thread.run_sync((snapshot.root / file.path).read_bytes)
            await self._send("PUT", path, content=content)
        else:
            async with await anyio.open_file(snapshot.root / file.path, "rb") as source:
                await self._send("PUT", path, content=_pieces(source))

    async def _send_zip(self, snapshot: Snapshot, name: str) -> str:
        async with anyio.TemporaryDirectory() as folder:
            archive = await to_thread.run_sync(write_archive, snapshot, Path(folder) / "workspace.zip")
            async with await anyio.open_file(archive.path, "rb") as source:
                content = _pieces(source)
                answer = await self._send("POST", "/v1/workspaces", params={"name": name}, content=content)
        return str(answer["workspace"])

    async def _read(self, path: str, params: Mapping[str, Any] | None = None) -> JsonObject:
        """Read something; a broken connection is tried again, for reading changes nothing."""
        started_s = time.monotonic()
        while True:
            try:
                return await self._send("GET", path, params=params)
            except ServiceUnreachable:
                if time.monotonic() - started_s >= self._patience_s:
                    raise
            await anyio.sleep(WAIT_PAUSE_S)

    async def _send(self, method: str, path: str, **request: Any) -> JsonObject:
        try:
            response = await self._http.request(method, path, **request)
        except httpx.TransportError as fault:
            raise _unreachable(self.url, fault) from fault
        await _check(response)
        answer: JsonObject = response.json() if response.content else {}
        return answer


_FEED_TIMEOUT = httpx.Timeout(10.0, read=60.0)


@asynccontextmanager
async def open_client(
    url: str, token: str | None = None, patience_s: float = PATIENCE_S
) -> AsyncIterator[ApiClient]:
    """Open a client of the service at a URL for the block; `patience_s` as `ApiClient` says."""
    headers = {"authorization": f"Bearer {token}"} if token else {}
    timeout = httpx.Timeout(30.0, read=330.0)
    # The service is named by its owner, never reached through a proxy of the environment.
    async with httpx.AsyncClient(base_url=url, headers=headers, timeout=timeout, trust_env=False) as http:
        yield ApiClient(http, patience_s)


async def _pieces(source: anyio.AsyncFile[bytes]) -> AsyncIterator[bytes]:
    while piece := await source.read(PIECE_BYTES):
        yield piece


async def _check(response: httpx.Response) -> None:
    if response.is_success:
        return
    await response.aread()
    try:
        body = response.json()
    except json.JSONDecodeError:
        body = {"detail": response.text[:500]}
    raise Refused(response.status_code, body)


async def _events(lines: AsyncIterator[str]) -> AsyncIterator[FeedEvent]:
    """Read server-sent events as this service writes them: JSON data, one line for each field."""
    fields: dict[str, str] = {}
    async for line in lines:
        name, _, value = line.partition(":")
        if name:
            fields[name] = value.removeprefix(" ")
        elif not line:
            if "data" in fields:
                yield FeedEvent(
                    fields.get("event", "message"), json.loads(fields["data"]), fields.get("id", "")
                )
            fields = {}


def _unreachable(url: str, fault: httpx.TransportError) -> ServiceUnreachable:
    what = f"{type(fault).__name__} {fault}".rstrip()
    return ServiceUnreachable(f"the service at {url} does not answer: {what}")


def _name_of(snapshot: Snapshot) -> str:
    kept = "".join(letter if letter.isalnum() or letter in "_.-" else "-" for letter in snapshot.name)
    return kept.lstrip(".-") or "workspace"
