import hashlib
import time
from pathlib import Path
from typing import Any

import pytest

from agent.scripted import ScriptedProvider, load_conversation
from orchestrator.access import has_tokens, new_token
from orchestrator.store import tokens
from orchestrator.store.records import TokenRow
from tests.orchestrator.conftest import Running, Start
from tests.orchestrator.workspaces import make_workspace

pytestmark = pytest.mark.anyio
SCRIPT = """
schema = 1
title = "ask"
[[turn]]
text = "I look."
calls = [{ tool = "write_file", arguments = { path = "secret.txt", content = "secret" } }]
"""
READ_WRITE = ["builds:read", "builds:write", "builds:cancel"]


def settings_for(server: ScriptedProvider) -> dict[str, Any]:
    table = {"base_url": server.base_url, "dialect": "openai-chat", "key_optional": True}
    return {"providers": {"scripted": table}, "agent": {"provider": "scripted", "model": "script"}}


async def token_for(running: Running, owner: str, scopes: list[str], **values: Any) -> dict[str, str]:
    secret, digest = new_token()
    row = TokenRow(f"id-{owner}-{len(scopes)}", owner, "", digest, scopes, time.time(), None, None)
    row = TokenRow(**{**{name: getattr(row, name) for name in TokenRow.__slots__}, **values})
    await running.service.stores.database.run(lambda c: tokens.add(c, row))
    return {"authorization": f"Bearer {secret}"}


async def test_a_service_that_wants_a_token_answers_nobody_without_one(start: Start) -> None:
    async with start(require_token=True) as running:
        for path in ("/v1/builds", "/v1/phones", "/openapi.json", "/mcp", "/metrics", "/nowhere"):
            answer = await running.http.get(path)
            assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated"), path
            assert answer.headers["www-authenticate"] == "Bearer"
        assert (await running.http.get("/healthz")).status_code == 200


async def test_wrong_revoked_and_expired_tokens_are_refused_alike(start: Start) -> None:
    async with start() as running:
        database = running.service.stores.database
        expired = await token_for(running, "ann", READ_WRITE, id="e", expires_s=time.time() - 1)
        assert not await database.read(has_tokens)
        revoked = await token_for(running, "ann", READ_WRITE, id="r")
        assert await database.read(has_tokens)
        await database.run(lambda c: tokens.revoke(c, "r", time.time()))
        assert not await database.read(has_tokens)
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


def example_of(document: dict[str, Any], operation: dict[str, Any]) -> dict[str, Any]:
    """Make a body of what must be given, as the document shows it."""
    content = operation["requestBody"]["content"]["application/json"]
    schema = document["components"]["schemas"][content["schema"]["$ref"].rpartition("/")[2]]
    return {name: schema["properties"][name]["examples"][0] for name in schema.get("required", [])}


async def test_what_belongs_to_one_owner_does_not_exist_for_another(
    start: Start, projects: Path, tmp_path: Path
) -> None:
    """Ask every route that takes an id, as the document has them, for another owner's things."""
    (tmp_path / "script.toml").write_text(SCRIPT)
    plan = {"lines": ["secret-line"], "exit_code": 1}
    workspace = make_workspace(projects / "secret-project", **plan)
    async with (
        ScriptedProvider(load_conversation(tmp_path / "script.toml")) as server,
        start("p1", **settings_for(server)) as running,
    ):
        ann = await token_for(running, "ann", [*READ_WRITE, "agent:run"])
        bob = await token_for(running, "bob", [*READ_WRITE, "agent:run"])
        body = {"path": str(workspace)}
        build_id = (await running.http.post("/v1/builds", json=body, headers=ann)).json()["id"]
        await running.http.get(f"/v1/builds/{build_id}", params={"wait_s": 60}, headers=ann)
        wish = {"assignment": "secret-errand", "path": str(workspace), "mode": "ask"}
        run_id = (await running.http.post("/v1/runs", json=wish, headers=ann)).json()["id"]
        ids = {"build_id": build_id, "run_id": run_id, "number": "0", "name": "p1", "sha256": "0" * 64}
        asked = 0
        document = (await running.http.get("/openapi.json")).json()
        for template, operations in document["paths"].items():
            path = template.format(**ids)
            for method, operation in operations.items():
                if path == template or operation["operationId"] == "send_blob":
                    continue  # nothing of another's is named there
                asked += 1
                options: dict[str, Any] = {"params": {"pattern": "secret"}} if "search" in path else {}
                if "requestBody" in operation:
                    options["json"] = example_of(document, operation)
                answer = await running.http.request(method, path, headers=bob, **options)
                assert answer.status_code == (403 if "phones" in path else 404), (method, path, answer.text)
                assert "secret" not in answer.text, path
                assert answer.headers["content-type"] == "application/problem+json", path
                if method == "get" and not path.endswith("/live"):
                    own = await running.http.get(path, headers=ann, **options)
                    is_there = own.status_code == 200 or own.json()["code"] in (
                        "not_found",
                        "artifact_removed",
                    )
                    assert is_there, (path, own.text)
        assert asked > 15
        for path in ("/v1/builds", "/v1/runs", "/v1/builds?owner=ann", "/v1/phones", "/v1/status"):
            shown = (await running.http.get(path, headers=bob)).text
            assert build_id not in shown, path
            assert run_id not in shown, path
            assert "secret" not in shown, path
        twin = await running.http.post("/v1/builds", json=body, headers=bob)
        assert twin.json()["id"] != build_id, "another owner's build was joined"


async def test_a_content_that_another_owner_sent_can_not_be_built_with_by_its_digest(start: Start) -> None:
    digest = hashlib.sha256(b"secret").hexdigest()
    wish = {"files": [{"path": "stolen", "sha256": digest}]}
    async with start() as running:
        ann = await token_for(running, "ann", READ_WRITE)
        bob = await token_for(running, "bob", READ_WRITE)
        await running.http.put(f"/v1/blobs/{digest}", content=b"secret", headers=ann)
        for headers, missing, status in ((bob, [digest], 409), (ann, [], 201)):
            asked = await running.http.post("/v1/blobs/missing", json={"sha256": [digest]}, headers=headers)
            assert asked.json() == {"missing": missing}
            assert (await running.http.post("/v1/builds", json=wish, headers=headers)).status_code == status
        await running.http.put(f"/v1/blobs/{digest}", content=b"secret", headers=bob)
        assert (await running.http.post("/v1/builds", json=wish, headers=bob)).status_code == 201


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
