"""Runs of an agent are listed by pages and filters, from their folders alone."""

import os
from pathlib import Path
from typing import Any

import pytest

from agent.budget import Budget, Spent
from agent.entries import Added, Began, Entry, Resumed, Stopped
from agent.message import UserMessage
from agent.redact import Redactor
from agent.transcript import FILE_NAME, Transcript, held, is_at_work
from orchestrator.agent_list import RunFilter, RunList, read_run
from tests.orchestrator.conftest import Running, Start
from tests.orchestrator.test_access import token_for

pytestmark = pytest.mark.anyio
AT = "2026-01-02T03:04:05+00:00"


def run_id_of(number: int) -> str:
    return f"20260102-{number:06d}-abcd"


def keep(data: Path, number: int, *entries: Entry, owner: str | None = None, workspace: str = "/w") -> str:
    """Keep a run that was begun and went as the entries say."""
    run_id = run_id_of(number)
    began = Began(run_id, AT, f"assignment {number}", workspace, "p", "m", "openai-chat", Budget())
    with Transcript(data / "agents" / run_id, Redactor()) as transcript:
        for entry in (began, Added(UserMessage("mend it")), *entries):
            transcript.append(entry)
    if owner is not None:
        (data / "agents" / run_id / "owner").write_text(owner)
    return run_id


def stopped(reason: str) -> Stopped:
    return Stopped(AT, reason, "why", "The last word.", Spent(turns=3))


def ids(data: Path, **wanted: Any) -> list[str]:
    return [run.id for run, _ in RunList(data).page(RunFilter(**wanted), {})]


async def pages(running: Running, **query: Any) -> list[list[str]]:
    """Follow the cursors to the last page; give the ids of each."""
    found: list[list[str]] = []
    while True:
        answer = await running.http.get("/v1/runs", params=query)
        assert answer.status_code == 200, answer.text
        found.append([run["id"] for run in answer.json()["runs"]])
        if answer.json()["next"] is None:
            return found
        query["cursor"] = answer.json()["next"]


async def test_pages_hold_every_run_once_newest_first_whatever_comes_meanwhile(start: Start) -> None:
    async with start() as running:
        data = running.settings.data_dir
        kept = [keep(data, number, stopped("green")) for number in range(7)]
        newest_first = kept[::-1]
        assert await pages(running, limit=3) == [newest_first[:3], newest_first[3:6], newest_first[6:]]
        assert await pages(running, limit=7) == [newest_first]
        first = (await running.http.get("/v1/runs", params={"limit": 3})).json()
        keep(data, 9)
        rest = (await running.http.get("/v1/runs", params={"cursor": first["next"]})).json()
        assert [run["id"] for run in rest["runs"]] == newest_first[3:]


async def test_filters_choose_by_state_reason_folder_and_owner(start: Start) -> None:
    async with start() as running:
        data = running.settings.data_dir
        green = keep(data, 1, stopped("green"), owner="ann", workspace="/a")
        budget = keep(data, 2, stopped("budget"), owner="ann")
        put_down = keep(data, 3, stopped("interrupted"), owner="bob", workspace="/a")
        again = keep(data, 4, stopped("green"), Resumed(AT, Budget(), "p", "m"), owner="bob")
        for query, expected in (
            ({"state": "stopped"}, [budget, green]),
            ({"state": "interrupted"}, [again, put_down]),
            ({"reason": "budget"}, [budget]),
            ({"workspace": "/a"}, [put_down, green]),
            ({"workspace": "/a", "state": "stopped"}, [green]),
            ({"owner": "bob"}, [again, put_down]),
            ({"owner": "nobody"}, []),
        ):
            assert await pages(running, **query) == [expected], query
            assert await pages(running, **query) == [expected], "what is remembered is the same"
        ann = await token_for(running, "ann", ["builds:read"])
        seen = (await running.http.get("/v1/runs", params={"owner": "bob"}, headers=ann)).json()
        assert [(run["id"], run["owner"]) for run in seen["runs"]] == [(budget, "ann"), (green, "ann")]
        assert seen["runs"][0]["detail"] == "why"
        assert seen["runs"][0]["created"] == seen["runs"][0]["finished"] == "2026-01-02T03:04:05Z"


def test_a_run_that_another_process_works_on_is_running(tmp_path: Path) -> None:
    run_id = keep(tmp_path, 1)
    folder = tmp_path / "agents" / run_id
    listed = RunList(tmp_path)
    assert [state for _, state in listed.page(RunFilter(), {})] == ["interrupted"]
    with Transcript(folder, Redactor()):
        assert is_at_work(folder)
        assert [state for _, state in listed.page(RunFilter(state="running"), {})] == ["running"]
        with held(folder) as is_held:
            assert not is_held
    assert not is_at_work(folder)


def test_what_filters_remember_is_forgotten_with_the_next_entry_and_with_the_run(tmp_path: Path) -> None:
    run_id = keep(tmp_path, 1, stopped("budget"))
    listed = RunList(tmp_path)
    assert len(listed.page(RunFilter(reason="budget"), {})) == 1
    with Transcript(tmp_path / "agents" / run_id, Redactor()) as transcript:
        transcript.append(stopped("green"))
    assert listed.page(RunFilter(reason="budget"), {}) == []
    assert len(listed.page(RunFilter(reason="green"), {})) == 1
    (tmp_path / "agents" / run_id).rename(tmp_path / "elsewhere")
    assert listed.page(RunFilter(reason="green"), {}) == []


async def test_a_damaged_transcript_is_told_and_spoils_no_page(start: Start) -> None:
    async with start() as running:
        data = running.settings.data_dir
        good, bad, empty = keep(data, 1), keep(data, 2), run_id_of(3)
        (data / "agents" / bad / FILE_NAME).write_text("no JSON\n")
        (data / "agents" / empty).mkdir()
        (data / "agents" / "a stray folder").mkdir()
        listed = (await running.http.get("/v1/runs")).json()["runs"]
        assert [(run["id"], run["state"]) for run in listed] == [
            (empty, "interrupted"),
            (bad, "damaged"),
            (good, "interrupted"),
        ]
        assert FILE_NAME in listed[1]["detail"]
        for path in (bad, f"{bad}/transcript"):
            answer = await running.http.get(f"/v1/runs/{path}")
            told = (answer.status_code, answer.json().get("code"), answer.json().get("state"))
            assert told in ((200, None, "damaged"), (500, "transcript_damaged", None)), answer.text


def test_a_run_is_opened_once_for_a_filter_and_only_on_its_page_without_one(tmp_path: Path) -> None:
    # One transcript under many names stands for as many runs.
    keep(tmp_path, 0, stopped("green"))
    source = tmp_path / "agents" / run_id_of(0) / FILE_NAME
    for number in range(1, 300):
        (tmp_path / "agents" / run_id_of(number)).mkdir()
        os.link(source, tmp_path / "agents" / run_id_of(number) / FILE_NAME)
    listed = RunList(tmp_path)
    assert len(listed.page(RunFilter(limit=50), {})) == 50
    assert listed._marks == {}
    assert listed.page(RunFilter(reason="budget"), {}) == []
    remembered = dict(listed._marks)
    assert len(remembered) == 300
    assert listed.page(RunFilter(reason="budget"), {}) == []
    assert all(listed._marks[run_id] is marks for run_id, marks in remembered.items())
    assert read_run(tmp_path, run_id_of(7)).reason == "green"
    assert ids(tmp_path, before=run_id_of(2)) == [run_id_of(1), run_id_of(0)]
