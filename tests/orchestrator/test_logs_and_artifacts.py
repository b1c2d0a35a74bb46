import json
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from orchestrator.client import open_client
from orchestrator.store import builds as build_store
from tests.orchestrator.conftest import Running, Start
from tests.orchestrator.test_builds import ended, submit, until
from tests.orchestrator.waiting import eventually
from tests.orchestrator.workspaces import make_workspace

pytestmark = pytest.mark.anyio


async def read_feed(
    running: Running, build_id: str, last_id: str | None, at_most: int
) -> list[dict[str, Any]]:
    """Read up to so many events, then hang up."""
    headers = {} if last_id is None else {"last-event-id": last_id}
    events: list[dict[str, Any]] = []
    fields: dict[str, str] = {}
    async with running.http.stream("GET", f"/v1/builds/{build_id}/log/live", headers=headers) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        async for line in response.aiter_lines():
            name, _, value = line.partition(": ")
            if line:
                fields[name] = value
                continue
            if "event" in fields:
                events.append({**fields, "data": json.loads(fields["data"])})
            fields = {}
            if len(events) >= at_most or (events and events[-1]["event"] == "end"):
                break
    return events


async def test_a_follower_that_hangs_up_and_comes_again_gets_every_byte_once(
    start: Start, projects: Path
) -> None:
    lines = [f"line {n} – größer ✓" for n in range(80)]
    workspace = make_workspace(projects / "w", lines=lines, line_s=0.01, held_attempt=1)
    async with start("p1") as running:
        build_id = (await submit(running, workspace))["id"]
        await until(running, build_id, "gradle")
        (running.phones / "p1/runs" / f"{build_id}-1" / "hold").unlink()
        text, last_id = "", None
        while True:
            events = await read_feed(running, build_id, last_id, 4)
            text += "".join(event["data"]["text"] for event in events if event["event"] == "log")
            last_id = events[-1]["id"]
            if events[-1]["event"] == "end":
                break
        assert text == "".join(f"{line}\n" for line in lines)
        assert events[-1]["data"]["outcome"] == "succeeded"


async def test_the_client_follows_across_attempts(start: Start, projects: Path) -> None:
    from tests.orchestrator.fakes import kill_run

    workspace = make_workspace(projects / "w", held_attempt=1)
    async with start("p1") as running:
        build_id = (await submit(running, workspace))["id"]
        names: list[str] = []

        async def follow() -> None:
            async with open_client(running.url) as client:
                async for event in client.follow(build_id):
                    names.append(event.name)  # noqa: PERF401 - another task waits for the first one

        async def follows() -> bool:
            return names != []

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(follow)
            await until(running, build_id, "gradle")
            await eventually(follows)
            kill_run(running.phones, f"{build_id}-1")
        assert names.count("attempt") == 1
        assert names[-1] == "end"


async def test_a_finished_log_is_packed_and_every_way_to_it_gives_the_same(
    start: Start, projects: Path
) -> None:
    lines = [f"line {n} größer ✓ " + "x" * 90 for n in range(15_000)]
    text = "".join(f"{line}\n" for line in lines)
    whole = text.encode()
    async with start("p1") as running:
        build_id = (await submit(running, make_workspace(projects / "w", lines=lines)))["id"]
        made = (await ended(running, build_id))["artifacts"]
        logs = running.service.stores.logs
        run_id = f"{build_id}-1"
        assert not logs.path(run_id).exists()
        assert logs.packed_path(run_id).stat().st_size < len(whole) / 4
        row = await running.service.stores.database.run(lambda c: build_store.must_get(c, build_id))
        assert row.size_bytes == made[0]["size_bytes"] + logs.kept_bytes(run_id) < len(whole) / 4
        url = f"/v1/builds/{build_id}/log"
        assert (await running.http.get(url)).content == whole
        middle = len(whole) // 2
        for header, wanted in (
            (f"bytes={middle}-{middle + 99}", whole[middle : middle + 100]),
            ("bytes=-50", whole[-50:]),
        ):
            answer = await running.http.get(url, headers={"range": header})
            assert (answer.status_code, answer.content) == (206, wanted)
            assert answer.headers["content-range"].endswith(f"/{len(whole)}")
        assert (await running.http.get(url, params={"offset": middle})).content == whole[middle:]
        tail = (await running.http.get(f"{url}/lines", params={"first": -2, "count": 2})).json()
        assert tail == {"first": 14_998, "lines": lines[-2:], "total": 15_000}
        found = (await running.http.get(f"{url}/search", params={"pattern": "^line 14999 "})).json()
        assert found == {"lines": [14_999], "hits": 1, "total": 15_000}
        events = await read_feed(running, build_id, None, 1000)
        assert "".join(event["data"]["text"] for event in events if event["event"] == "log") == text


async def test_lines_tail_and_search_agree_with_the_log(start: Start, projects: Path) -> None:
    lines = [f"w: warning {n}" if n % 7 == 0 else f"plain {n}" for n in range(500)]
    async with start("p1") as running:
        build_id = (await submit(running, make_workspace(projects / "w", lines=lines)))["id"]
        await ended(running, build_id)
        base = f"/v1/builds/{build_id}/log"
        tail = (await running.http.get(f"{base}/lines", params={"first": -3, "count": 10})).json()
        assert tail == {"first": 497, "lines": lines[-3:], "total": 500}
        some = (await running.http.get(f"{base}/lines", params={"first": 490, "count": 4})).json()
        assert some["lines"] == lines[490:494]
        found = (await running.http.get(f"{base}/search", params={"pattern": "^w: ", "max_hits": 5})).json()
        assert found == {"lines": [0, 7, 14, 21, 28], "hits": 72, "total": 500}
        bad = await running.http.get(f"{base}/search", params={"pattern": "(a"})
        assert (bad.status_code, bad.json()["code"]) == (400, "bad_pattern")
        assert bad.json()["detail"] == "the pattern is not a regular expression of RE2: missing ): (a"


async def test_an_artifact_over_the_limit_is_refused_by_name_and_not_fetched(
    start: Start, projects: Path
) -> None:
    async with start("p1", limits={"artifact_bytes": 10}) as running:
        build = await ended(running, (await submit(running, make_workspace(projects / "w")))["id"])
        assert (build["outcome"], build["artifacts"]) == ("refused", [])
        assert build["cause"].startswith("the artifact ")
        assert build["cause"].endswith("bytes, 10 are allowed")
        assert "limits.artifact_bytes" in build["reason"]


RANGES: list[tuple[str, int, slice | None]] = [
    ("bytes=0-3", 206, slice(0, 4)),
    ("bytes=10-", 206, slice(10, None)),
    ("bytes=-5", 206, slice(-5, None)),
    ("bytes=0-999999", 206, slice(None)),
    ("bytes=9-3", 200, slice(None)),
    ("bytes=0-1,4-5", 200, slice(None)),
    ("lines=1-2", 200, slice(None)),
    ("bytes=-", 200, slice(None)),
    ("bytes=999999-", 416, None),
]


async def test_an_artifact_answers_ranges_as_they_are_asked(finished: "Finished") -> None:
    for header, status, expected in RANGES:
        answer = await finished.http.get(finished.artifact, headers={"range": header})
        assert answer.status_code == status, header
        if expected is not None:
            assert answer.content == finished.content[expected], header
        if status == 206:
            assert answer.headers["content-range"].endswith(f"/{len(finished.content)}"), header


async def test_an_artifact_that_the_caller_has_is_not_sent_again(finished: "Finished") -> None:
    etag = (await finished.http.get(finished.artifact)).headers["etag"]
    for header in (etag, f'"other", W/{etag}', "*"):
        answer = await finished.http.get(finished.artifact, headers={"if-none-match": header})
        assert (answer.status_code, answer.content) == (304, b"")
    stale = {"range": "bytes=0-3", "if-range": '"another"'}
    assert (await finished.http.get(finished.artifact, headers=stale)).content == finished.content


async def test_a_head_of_an_artifact_tells_what_a_get_would_without_the_content(finished: "Finished") -> None:
    got = await finished.http.get(finished.artifact)
    head = await finished.http.head(finished.artifact, headers={"range": "bytes=0-3"})
    assert (head.status_code, head.content) == (200, b"")
    for name in ("content-length", "content-type", "content-disposition", "etag", "accept-ranges"):
        assert head.headers[name] == got.headers[name], name
    assert head.headers["content-length"] == str(len(finished.content))
    known = await finished.http.head(finished.artifact, headers={"if-none-match": head.headers["etag"]})
    assert known.status_code == 304
    gone = await finished.http.head(finished.artifact.removesuffix("0") + "99")
    assert (gone.status_code, gone.content) == (404, b"")


class Finished:
    def __init__(self, http: httpx.AsyncClient, artifact: str, content: bytes) -> None:
        self.http, self.artifact, self.content = http, artifact, content


@pytest.fixture
async def finished(start: Start, projects: Path) -> Any:
    async with start("p1") as running:
        build_id = (await submit(running, make_workspace(projects / "w")))["id"]
        await ended(running, build_id)
        path = f"/v1/builds/{build_id}/artifacts/0"
        yield Finished(running.http, path, (await running.http.get(path)).content)
