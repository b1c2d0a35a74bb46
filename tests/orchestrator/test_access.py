import time
from typing import Any

import pytest

from orchestrator.access import new_token
from orchestrator.store import tokens
from orchestrator.store.records import TokenRow
from tests.orchestrator.conftest import Running, Start
from tests.orchestrator.workspaces import make_workspace

pytestmark = pytest.mark.anyio
READ_WRITE = ["builds:read", "builds:write", "builds:cancel"]


async def token_for(running: Running, owner: str, scopes: list[str], **values: Any) -> dict[str, str]:
    secret, digest = new_token()
    row = TokenRow(f"id-{owner}-{len(scopes)}", owner, "", digest, scopes, time.time(), None, None)
    row = TokenRow(**{**{name: getattr(row, name) for name in TokenRow.__slots__}, **values})
    await running.service.stores.database.run(lambda c: tokens.add(c, row))
    return {"authorization": f"Bearer {secret}"}


async def test_a_service_that_wants_a_token_answers_nobody_without_one(start: Start) -> None:
    async with start(require_token=True) as running:
        for path in ("/v1/builds", "/v1/phones", "/openapi.json", "/docs", "/mcp", "/metrics", "/nowhere"):
            answer = await running.http.get(path)
            assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated"), path
            assert answer.headers["www-authenticate"] == "Bearer"
        assert (await running.http.get("/healthz")).status_code == 200


async def test_wrong_revoked_and_expired_tokens_are_refused_alike(start: Start) -> None:
    async with start() as running:
        expired = await token_for(running, "ann", READ_WRITE, id="e", expires_s=time.time() - 1)
        revoked = await token_for(running, "ann", READ_WRITE, id="r")
        await running.service.stores.database.run(lambda c: tokens.revoke(c, "r", time.time()))
        for headers in (expired, revoked, {"authorization": "Bearer no"}, {"authorization": "Basic YTpi"}):
            assert (await running.http.get("/v1/builds", headers=headers)).status_code == 401


async def test_a_scope_that_is_lacking_is_named(start: Start, projects: Any) -> None:
    async with start() as running:
        headers = await token_for(running, "ann", ["builds:read"])
        body = {"path": str(make_workspace(projects / "w"))}
        answer = await running.http.post("/v1/builds", json=body, headers=headers)
        assert answer.status_code == 403
        assert "builds:write" in answer.json()["detail"]
        answer = await running.http.post("/v1/phones", json={"address": "p9"}, headers=headers)
        assert answer.status_code == 403


async def test_what_belongs_to_one_owner_does_not_exist_for_another(start: Start, projects: Any) -> None:
    async with start("p1") as running:
        ann = await token_for(running, "ann", READ_WRITE)
        bob = await token_for(running, "bob", READ_WRITE)
        body = {"path": str(make_workspace(projects / "w"))}
        build_id = (await running.http.post("/v1/builds", json=body, headers=ann)).json()["id"]
        await running.http.get(f"/v1/builds/{build_id}", params={"wait_s": 20}, headers=ann)
        base = f"/v1/builds/{build_id}"
        for path in ("", "/log", "/log/lines", "/log/search?pattern=x", "/digest", "/problems", "/events",
                     "/artifacts", "/artifacts/0"):  # fmt: skip
            assert (await running.http.get(base + path, headers=ann)).status_code == 200, path
            assert (await running.http.get(base + path, headers=bob)).status_code == 404, path
        assert (await running.http.get(f"{base}/log/live", headers=bob)).status_code == 404
        assert (await running.http.post(f"{base}/cancel", headers=bob)).status_code == 404
        assert (await running.http.post(f"{base}/retry", headers=bob)).status_code == 404
        assert (await running.http.get("/v1/builds", headers=bob)).json()["builds"] == []
        twin = await running.http.post("/v1/builds", json=body, headers=bob)
        assert twin.json()["id"] != build_id, "another owner's build was joined"


async def test_a_workspace_sent_by_one_owner_can_not_be_built_by_another(start: Start) -> None:
    import io
    import zipfile

    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("build.gradle", "// secret")
    async with start() as running:
        ann = await token_for(running, "ann", READ_WRITE)
        bob = await token_for(running, "bob", READ_WRITE)
        sent = await running.http.post("/v1/workspaces", content=data.getvalue(), headers=ann)
        wish = {"workspace": sent.json()["workspace"]}
        assert (await running.http.post("/v1/builds", json=wish, headers=bob)).status_code == 404
        assert (await running.http.post("/v1/builds", json=wish, headers=ann)).status_code == 201


async def test_a_page_that_points_its_own_name_here_is_refused(start: Start) -> None:
    async with start(host_names=["lab.example"]) as running:
        for host, status in (("evil.example", 400), ("127.0.0.1:99", 200), ("lab.example", 200), ("", 400)):
            answer = await running.http.get("/v1/builds", headers={"host": host})
            assert answer.status_code == status, host
        assert "access-control-allow-origin" not in answer.headers
