import base64
import hashlib
import hmac
import json
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from fastapi import FastAPI, Request, Response

from orchestrator.engine import retention
from orchestrator.engine.hooks import AT_ONCE, PrivateAddress, check_address, sign
from orchestrator.engine.retention import DAY_S, EndedBuild, choose_expired
from orchestrator.serving import serving
from orchestrator.settings import Retention
from tests.orchestrator.conftest import Start
from tests.orchestrator.test_builds import ended, submit, until
from tests.orchestrator.waiting import eventually
from tests.orchestrator.workspaces import make_workspace

pytestmark = pytest.mark.anyio
SECRET = "whsec_" + base64.b64encode(b"0123456789abcdef0123456789abcdef").decode()


@pytest.mark.parametrize(
    ("keep", "expired"),
    [
        (Retention(max_age_days=None, max_bytes=None), []),
        (Retention(max_age_days=2, max_bytes=None), ["a"]),
        (Retention(max_age_days=None, max_bytes=25), ["b", "a"]),
        (Retention(max_age_days=None, max_bytes=1), ["d", "c", "b", "a"]),
    ],
)
def test_the_old_and_what_is_too_much_goes_oldest_first(keep: Retention, expired: list[str]) -> None:
    now_s = 10 * DAY_S
    ages = (("c", 1), ("a", 3), ("d", 0.5), ("b", 1.5))
    found = [EndedBuild(name, now_s - age * DAY_S, 10) for name, age in ages]
    assert choose_expired(found, keep.max_age_days, keep.max_bytes, now_s) == expired


def kept_in(data: Path) -> set[Path]:
    """Give the files that retention is about."""
    return {path for name in ("logs", "artifacts", "workspaces") for path in (data / name).rglob("*")}


async def test_retention_says_what_would_go_removes_it_and_spares_what_runs(
    start: Start, projects: Path
) -> None:
    async with start("p1", "p2") as running:
        old = (await submit(running, make_workspace(projects / "old", text="old")))["id"]
        await ended(running, old)
        slow = make_workspace(projects / "slow", held_attempt=1)
        live = (await submit(running, slow))["id"]
        await until(running, live, "gradle")
        engine, stores = running.service.engine, running.service.stores
        far_s = time.time() + 100 * DAY_S
        before = kept_in(running.settings.data_dir)
        assert len(before) > 2
        dry = await retention.sweep(engine, dry_run=True, now_s=far_s)
        assert (dry.builds, len(dry.artifacts)) == ((old,), 1)
        assert before <= kept_in(running.settings.data_dir)
        real = await retention.sweep(engine, dry_run=False, now_s=far_s)
        assert (real.builds, real.artifacts) == (dry.builds, dry.artifacts)
        assert (await running.http.get(f"/v1/builds/{old}")).status_code == 404
        assert stores.logs.size_bytes(f"{old}-1") == 0
        assert await stores.artifacts.size_bytes(dry.artifacts[0]) is None
        held = next(running.phones.glob(f"*/runs/{live}-1/hold"))
        held.unlink()
        assert (await ended(running, live))["outcome"] == "succeeded"
        by_hand = (await running.http.post("/v1/retention")).json()
        assert by_hand == {
            "builds": [],
            "artifacts": [],
            "workspaces": [],
            "blob_bytes": 0,
            "agent_runs": [],
            "is_dry_run": True,
        }


async def test_status_metrics_and_health_tell_of_the_builds(start: Start, projects: Path) -> None:
    async with start("p1") as running:
        await ended(running, (await submit(running, make_workspace(projects / "w")))["id"])
        assert (await running.http.get("/readyz")).json() == {"status": "ready", "host": "local"}
        status = (await running.http.get("/v1/status")).json()
        assert (status["builds"], status["phones"]) == ({"succeeded": 1}, {"online": 1})
        (host,) = status["hosts"]
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", host["heartbeat"])
        figures = (await running.http.get("/metrics")).text
        assert 'pocketbuild_builds{outcome="succeeded",state="finished"} 1.0' in figures
        assert 'pocketbuild_phones{state="online"} 1.0' in figures
        assert 'pocketbuild_http_requests_total{method="POST",status="201"} 1.0' in figures
        assert "pocketbuild_stage_seconds_mean" in figures
        at_once: list[str] = []

        async def scrape() -> None:
            at_once.append((await running.http.get("/metrics")).text)

        async with anyio.create_task_group() as scrapes:
            for _ in range(12):
                scrapes.start_soon(scrape)
        for seen in at_once:
            assert 'pocketbuild_builds{outcome="succeeded",state="finished"} 1.0' in seen
            assert 'pocketbuild_phones{state="online"} 1.0' in seen
            assert 'pocketbuild_stage_seconds_mean{stage="' in seen


@asynccontextmanager
async def receiver(answers: list[int]) -> AsyncIterator[tuple[str, list[tuple[dict[str, str], bytes]]]]:
    heard: list[tuple[dict[str, str], bytes]] = []
    app = FastAPI()

    @app.post("/hook")
    async def hook(request: Request) -> Response:
        heard.append((dict(request.headers), await request.body()))
        return Response(status_code=answers.pop(0) if answers else 200)

    async with serving(app, "127.0.0.1", 0) as url:
        yield f"{url}/hook", heard


async def test_the_end_of_a_build_is_told_signed_and_again_until_it_is_heard(
    start: Start, projects: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with receiver([500]) as (url, heard):
        hooks = {"urls": [url], "secret": SECRET, "allow_private": True}
        async with start("p1", webhooks=hooks) as running:
            build_id = (await submit(running, make_workspace(projects / "w")))["id"]
            await ended(running, build_id)

            async def is_told() -> bool:
                running.service.stores.bells.ring("builds")
                return len(heard) >= 1

            await eventually(is_told)
            await make_due(running.service)
            running.service.stores.bells.ring("builds")

            async def is_told_again() -> bool:
                await make_due(running.service)
                running.service.stores.bells.ring("builds")
                return len(heard) >= 2

            await eventually(is_told_again)
        (headers, body), (again, _) = heard[:2]
        assert headers["webhook-id"] == again["webhook-id"]
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
        digest = hmac.new(b"0123456789abcdef0123456789abcdef", signed, hashlib.sha256).digest()
        assert headers["webhook-signature"] == "v1," + base64.b64encode(digest).decode()
        told = json.loads(body)
        assert (told["type"], told["data"]["id"], told["data"]["outcome"]) == (
            "build.finished", build_id, "succeeded",
        )  # fmt: skip


async def test_a_receiver_that_does_not_answer_holds_up_no_other(
    start: Start, projects: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.engine.hooks.ANSWER_S", 3600.0)
    async with (
        await anyio.create_tcp_listener(local_host="127.0.0.1") as silent,
        receiver([]) as (url, heard),
        anyio.create_task_group() as tasks,
    ):
        is_asked, is_over = anyio.Event(), anyio.Event()

        async def say_nothing(stream: anyio.abc.SocketStream) -> None:
            async with stream:
                is_asked.set()
                await is_over.wait()

        tasks.start_soon(silent.serve, say_nothing)
        port = silent.extra(anyio.abc.SocketAttribute.local_port)
        hooks = {"urls": [f"http://127.0.0.1:{port}/", url], "secret": SECRET, "allow_private": True}
        async with start("p1", webhooks=hooks) as running:
            made = []
            for number in range(2 * AT_ONCE):
                workspace = make_workspace(projects / f"w{number}", lines=[str(number)])
                made.append((await submit(running, workspace))["id"])
            for build_id in made:
                await ended(running, build_id)

            async def all_are_told() -> bool:
                return {json.loads(body)["data"]["id"] for _, body in heard} == set(made)

            await eventually(all_are_told)
            with anyio.fail_after(60):
                await is_asked.wait()
        is_over.set()
        tasks.cancel_scope.cancel()


async def make_due(service: Any) -> None:
    from orchestrator.store.tables import webhooks

    await service.stores.database.run(lambda c: c.execute(webhooks.update().values(due_s=0.0)))


def test_a_receiver_inside_is_refused_unless_that_is_allowed() -> None:
    private = ("127.0.0.1", "10.1.2.3", "[::1]", "169.254.169.254", "0.0.0.0", "224.0.0.1", "[ff02::1]",
               "[fd00::1]", "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]")  # fmt: skip
    for url in (f"http://{host}/x" for host in private):
        with pytest.raises(PrivateAddress):
            check_address(url, allow_private=False)
    assert check_address("http://127.0.0.1/x", allow_private=True) == "127.0.0.1"
    with pytest.raises(ValueError, match="no http address"):
        check_address("file:///etc/passwd", allow_private=True)


def test_a_signature_is_that_of_standard_webhooks() -> None:
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    signature = sign(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", b'{"test": 2432232314}')
    assert signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


async def test_a_service_that_stops_ends_its_feeds_and_leaves_builds_running(
    start: Start, projects: Path
) -> None:
    workspace = make_workspace(projects / "w", lines=["x"] * 100, held_attempt=1)
    async with start("p1") as running:
        build_id = (await submit(running, workspace))["id"]
        await until(running, build_id, "gradle")
    (running.phones / "p1/runs" / f"{build_id}-1" / "hold").unlink()
    async with start("p1") as running:
        assert (await ended(running, build_id))["outcome"] == "succeeded"
        log = (await running.http.get(f"/v1/builds/{build_id}/log")).text
        assert log == "x\n" * 100
