"""Secrets at the service: they reach the phone, survive the service's death, and are gone after the build."""

import base64
import hashlib
import json
import os
import secrets as randomness
import stat
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from builder_bridge.secret import Secret
from orchestrator.access import new_token
from orchestrator.secret_intake import names_for_agents
from orchestrator.store import tokens
from orchestrator.store.records import TokenRow
from orchestrator.store.secrets import ORPHAN_S, SecretStore
from tests.orchestrator.conftest import Running, Start
from tests.orchestrator.processes import kill, start_service
from tests.orchestrator.test_builds import ended, submit, until
from tests.orchestrator.waiting import eventually
from tests.orchestrator.workspaces import make_workspace
from tests.walking import files_below

STORE = b"\xfe\xed\0keystore\n" * 40


def wish_of(password: str, store: bytes = STORE) -> dict[str, Any]:
    return {
        "secrets": {"storePassword": password},
        "secret_files": {"releaseStore": base64.b64encode(store).decode()},
    }


def new_password() -> str:
    return f"pw-{randomness.token_hex(12)}"


def holders(folder: Path, *needles: bytes) -> list[str]:
    """Give the files below a folder that hold one of some texts."""
    found = []
    for path in files_below(folder):
        with suppress(OSError):  # what is a socket, or goes away meanwhile
            if path.is_file() and any(needle in path.read_bytes() for needle in needles):
                found.append(path.name)
    return found


def given_to(phones: Path, run_id: str) -> Any:
    (noted,) = phones.glob(f"*/runs/{run_id}/secrets.json")
    return json.loads(noted.read_text())


def as_given(password: str, store: bytes = STORE) -> dict[str, Any]:
    return {
        "releaseStore": [True, hashlib.sha256(store).hexdigest()],
        "storePassword": [False, hashlib.sha256(password.encode()).hexdigest()],
    }


@pytest.mark.anyio
async def test_secrets_wait_in_one_file_of_this_user_go_to_the_phone_and_are_gone(
    start: Start, projects: Path
) -> None:
    password = new_password()
    workspace = make_workspace(projects / "hello")
    needles = (password.encode(), base64.b64encode(password.encode()), base64.b64encode(STORE)[:60], STORE)
    async with start("p1") as running:
        (running.phones / "p1/hold-upload").touch()
        accepted = await submit(running, workspace, **wish_of(password))
        build_id, data = accepted["id"], running.settings.data_dir
        assert accepted["secrets"] == ["releaseStore", "storePassword"]
        assert holders(data, *needles) == [f"{build_id}.secret"]
        kept = data / "secrets" / f"{build_id}.secret"
        assert (stat.S_IMODE(kept.stat().st_mode), stat.S_IMODE(kept.parent.stat().st_mode)) == (0o600, 0o700)
        (running.phones / "p1/hold-upload").unlink()
        assert (await ended(running, build_id))["outcome"] == "succeeded"
        assert given_to(running.phones, f"{build_id}-1") == as_given(password)
        await eventually(lambda: _is_gone(kept))
        assert holders(data, *needles) == []
        again = await running.http.post(f"/v1/builds/{build_id}/retry")
        assert (again.status_code, again.json()["code"]) == (409, "secrets_gone")


async def _is_gone(path: Path) -> bool:
    return not path.exists()  # noqa: ASYNC240 - a test's own folder


@pytest.mark.anyio
async def test_another_password_is_another_build_and_the_same_one_joins(start: Start, projects: Path) -> None:
    workspace, password = make_workspace(projects / "hello"), new_password()
    async with start("p1") as running:
        plain = await submit(running, workspace)
        first = await submit(running, workspace, **wish_of(password))
        same = await submit(running, workspace, **wish_of(password))
        other = await submit(running, workspace, **wish_of(new_password()))
        other_file = await submit(running, workspace, **wish_of(password, b"other keystore"))
        assert (same["id"], same["is_joined"]) == (first["id"], True)
        assert len({plain["id"], first["id"], other["id"], other_file["id"]}) == 4
        assert plain["secrets"] == []
        for each in (plain, first, other, other_file):
            assert (await ended(running, each["id"]))["outcome"] == "succeeded"
        assert (await submit(running, workspace, **wish_of(password)))["id"] == first["id"]


@pytest.mark.anyio
async def test_an_idempotency_key_with_another_password_is_a_conflict(start: Start, projects: Path) -> None:
    workspace, password = make_workspace(projects / "hello"), new_password()
    async with start("p1") as running:

        async def ask(value: str) -> httpx.Response:
            body = {"path": str(workspace), **wish_of(value)}
            return await running.http.post("/v1/builds", json=body, headers={"idempotency-key": "one"})

        first = await ask(password)
        assert (first.status_code, (await ask(password)).status_code) == (201, 200)
        assert (await ask(new_password())).json()["code"] == "idempotency_conflict"
        await ended(running, first.json()["id"])


@pytest.mark.anyio
async def test_what_cannot_be_kept_secret_is_refused_without_repeating_it(
    start: Start, projects: Path
) -> None:
    workspace, password = make_workspace(projects / "hello"), new_password()
    file = base64.b64encode(b"x").decode()
    refused: list[dict[str, Any]] = [
        {"secrets": {"pin": "137"}},
        {"secrets": {"no name": password}},
        {"secrets": {"key": {"value": password}}},
        {"secret_files": {"store": password}},
        {"secret_files": {"store": ""}},
        {"secrets": {"store": password}, "secret_files": {"store": file}},
        {"secrets": {"long": password * 1000}},
        {"use_secrets": ["unheardOf"]},
    ]
    async with start("p1") as running:
        for wish in refused:
            answer = await running.http.post("/v1/builds", json={"path": str(workspace), **wish})
            assert answer.status_code in (400, 404, 409, 422), wish
            assert password not in answer.text
            assert "137" not in answer.json()["detail"]
        assert (await running.http.get("/v1/builds")).json()["builds"] == []
        assert holders(running.settings.data_dir, password.encode()) == []


@pytest.mark.anyio
async def test_a_build_cancelled_while_it_waits_leaves_no_secret(start: Start, projects: Path) -> None:
    workspace, password = make_workspace(projects / "hello"), new_password()
    async with start() as running:
        build_id = (await submit(running, workspace, **wish_of(password)))["id"]
        await running.http.post(f"/v1/builds/{build_id}/cancel")
        assert (await ended(running, build_id))["outcome"] == "cancelled"

        async def is_gone() -> bool:
            needles = (password.encode(), base64.b64encode(password.encode()))
            return not holders(running.settings.data_dir, *needles)

        await eventually(is_gone)


async def token_for(running: Running, owner: str) -> dict[str, str]:
    secret, digest = new_token()
    scopes = ["builds:read", "builds:write"]
    row = TokenRow(owner, owner, "", digest, scopes, time.time(), None, None)
    await running.service.stores.database.run(lambda c: tokens.add(c, row))
    return {"authorization": f"Bearer {secret}"}


@pytest.mark.anyio
async def test_a_secret_of_the_settings_is_used_by_name_by_those_it_is_for(
    start: Start, projects: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace, password = make_workspace(projects / "hello"), new_password()
    monkeypatch.setenv("TEST_RELEASE_PASSWORD", password)
    store = tmp_path / "release.p12"
    store.write_bytes(STORE)
    store.chmod(0o644)
    named = {
        "storePassword": {"env": "TEST_RELEASE_PASSWORD", "owners": ["ann"]},
        "releaseStore": {"file": str(store), "as_file": True, "owners": ["ann"]},
        "ownersOnly": {"env": "TEST_RELEASE_PASSWORD"},
    }
    async with start("p1", secrets=named, require_token=True) as running:
        ann, bob = await token_for(running, "ann"), await token_for(running, "bob")

        async def ask(headers: dict[str, str], *names: str) -> httpx.Response:
            body = {"path": str(workspace), "use_secrets": list(names)}
            return await running.http.post("/v1/builds", json=body, headers=headers)

        assert (await ask(bob, "storePassword")).json()["code"] == "secret_not_yours"
        assert (await ask(ann, "ownersOnly")).json()["code"] == "secret_not_yours"
        unreadable = await ask(ann, "storePassword", "releaseStore")
        assert unreadable.status_code == 422
        assert "chmod 600" in unreadable.json()["detail"]
        store.chmod(0o600)
        accepted = (await ask(ann, "storePassword", "releaseStore")).json()

        async def is_over() -> bool:
            answer = await running.http.get(f"/v1/builds/{accepted['id']}", headers=ann)
            return bool(answer.json()["state"] == "finished")

        await eventually(is_over)
        assert given_to(running.phones, f"{accepted['id']}-1") == as_given(password)
        hidden = await running.http.get(f"/v1/builds/{accepted['id']}", headers=bob)
        assert hidden.status_code == 404


@pytest.mark.anyio
async def test_equal_secrets_of_two_owners_never_meet(start: Start, projects: Path) -> None:
    workspace, password = make_workspace(projects / "hello"), new_password()
    async with start("p1", require_token=True) as running:
        ids = []
        for owner in ("ann", "bob"):
            headers = await token_for(running, owner)
            body = {"path": str(workspace), **wish_of(password)}
            answer = await running.http.post("/v1/builds", json=body, headers=headers)
            assert answer.status_code == 201, answer.text
            ids.append(answer.json()["id"])
        assert len(set(ids)) == 2


@pytest.mark.anyio
async def test_the_api_says_that_secrets_are_only_written(start: Start) -> None:
    async with start() as running:
        schemas = (await running.http.get("/openapi.json")).json()["components"]["schemas"]
    fields = schemas["BuildRequest"]["properties"]
    for name in ("secrets", "secret_files"):
        (value,) = fields[name]["patternProperties"].values()
        assert (value["format"], value["writeOnly"]) == ("password", True)
    assert "secret_files" not in schemas["BuildReply"]["properties"]


@pytest.mark.parametrize("stage", ["queue", "upload", "gradle", "collect"])
def test_a_service_killed_at_any_stage_gives_the_phone_its_secrets_and_forgets_them(
    tmp_path: Path, stage: str
) -> None:
    phones, data, password = tmp_path / "phones", tmp_path / "data", new_password()
    (phones / "p1").mkdir(parents=True)
    (phones / "p1" / ("offline" if stage == "queue" else f"hold-{stage}")).touch()
    settings: dict[str, Any] = {
        "phones": [{"address": "p1"}],
        "workspace_roots": [str(tmp_path)],
        "dispatch_poll_s": 0.1,
        "care": {"probe_every_s": 0.2},
        "lab": {"heartbeat_s": 0.1},
    }
    workspace = make_workspace(tmp_path / "w")
    needles = (password.encode(), base64.b64encode(password.encode()), base64.b64encode(STORE)[:60])
    process, url = start_service(data, phones, **settings)
    try:
        body = {"path": str(workspace), **wish_of(password)}
        build_id = httpx.post(f"{url}/v1/builds", json=body, timeout=60).json()["id"]
        deadline_s = time.monotonic() + 300
        while httpx.get(f"{url}/v1/builds/{build_id}", timeout=60).json()["stage"] != stage:
            assert time.monotonic() < deadline_s
            time.sleep(0.03)
    finally:
        kill(process)
    assert holders(data, *needles) == [f"{build_id}.secret"]
    for gate in (phones / "p1").glob("hold-*"):
        gate.unlink()
    (phones / "p1/offline").unlink(missing_ok=True)
    process, url = start_service(data, phones, **settings)
    try:
        deadline_s = time.monotonic() + 300
        while (build := httpx.get(f"{url}/v1/builds/{build_id}", timeout=60).json())["state"] != "finished":
            assert time.monotonic() < deadline_s, build
            time.sleep(0.03)
        assert (build["outcome"], len(build["runs"])) == ("succeeded", 1)
        assert given_to(phones, f"{build_id}-1") == as_given(password)
        while holders(data, *needles):
            assert time.monotonic() < deadline_s, holders(data, *needles)
            time.sleep(0.03)
    finally:
        kill(process)
    assert holders(data, *needles) == []


@pytest.mark.anyio
async def test_what_a_killed_service_left_is_removed_and_what_is_needed_stays(
    start: Start, projects: Path
) -> None:
    workspace, password = make_workspace(projects / "hello"), new_password()
    async with start("p1", lab={"heartbeat_s": 0.05}) as running:
        (running.phones / "p1/hold-gradle").touch()
        accepted = await submit(running, workspace, **wish_of(password))
        store = running.service.stores.secrets
        sealed = store.seal("local", (Secret("storePassword", password.encode()),))
        folder = running.settings.data_dir / "secrets"
        old_s = time.time() - ORPHAN_S - 5
        for build_id in ("never-told-1", "just-now-1"):
            store.put(build_id, sealed)
        for name in ("never-told-1.secret", "half.1234.part"):
            (folder / name).touch()
            os.utime(folder / name, (old_s, old_s))
        await eventually(lambda: _is_gone(folder / "never-told-1.secret"))
        await eventually(lambda: _is_gone(folder / "half.1234.part"))
        assert sorted(store.kept()) == sorted([accepted["id"], "just-now-1"])
        await until(running, accepted["id"], "gradle")
        (running.phones / "p1/hold-gradle").unlink()
        await ended(running, accepted["id"])


@pytest.mark.anyio
async def test_a_build_whose_secrets_are_lost_is_refused_by_name(start: Start, projects: Path) -> None:
    workspace, password = make_workspace(projects / "hello"), new_password()
    async with start() as running:
        accepted = await submit(running, workspace, **wish_of(password))
        running.service.stores.secrets.remove(accepted["id"])
        (running.phones / "p1").mkdir(parents=True)
        await running.http.post("/v1/phones", json={"address": "p1"})
        build = await ended(running, accepted["id"])
        assert (build["outcome"], build["cause"].split(":")[0]) == ("refused", "secrets_gone")


def test_a_seal_is_of_this_folder_owner_name_and_content(tmp_path: Path) -> None:
    store, elsewhere = SecretStore(tmp_path / "one"), SecretStore(tmp_path / "two")
    text, file = Secret("a", b"password"), Secret("a", b"password", is_file=True)
    seals = {
        store.seal("ann", (text,)).seal,
        store.seal("bob", (text,)).seal,
        store.seal("ann", (file,)).seal,
        store.seal("ann", (Secret("b", b"password"),)).seal,
        store.seal("ann", (Secret("a", b"Password"),)).seal,
        elsewhere.seal("ann", (text,)).seal,
    }
    assert len(seals) == 6
    assert SecretStore(tmp_path / "one").seal("ann", (text,)).seal in seals
    assert stat.S_IMODE((tmp_path / "one/seal.key").stat().st_mode) == 0o600
    assert (store.seal("ann", ()).seal, store.get("unknown-1")) == ("", None)


@pytest.mark.anyio
async def test_builds_of_the_services_own_agent_get_what_is_set_for_agents(
    start: Start,
) -> None:
    named = {
        "mine": {"env": "TEST_A", "for_agents": True},
        "anns": {"env": "TEST_A", "for_agents": True, "owners": ["ann"]},
        "notForAgents": {"env": "TEST_A"},
    }
    async with start(secrets=named) as running:
        stores = running.service.stores
        assert names_for_agents(stores, "local") == ["mine"]
        assert names_for_agents(stores, "ann") == ["anns"]
