"""Two hosts on one Postgres, two phones each."""

import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.orchestrator.fakes import starts_of
from tests.orchestrator.postgres import Cluster, binaries, cluster
from tests.orchestrator.processes import kill, start_service
from tests.orchestrator.workspaces import make_workspace
from tests.ports import port_to_listen_on

pytestmark = [
    pytest.mark.skipif(binaries() is None, reason="PostgreSQL is not installed"),
    pytest.mark.slow,
]
PHONES = {"h1": ["p1", "p2"], "h2": ["p3", "p4"]}


@dataclass(slots=True)
class LabOfTwo:
    folder: Path
    database: Cluster
    policy: str
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    urls: dict[str, str] = field(default_factory=dict)
    ports: dict[str, int] = field(default_factory=dict)

    def start(self, host: str) -> None:
        port = self.ports.setdefault(host, port_to_listen_on())
        lab = {"host_id": host, "url": f"http://127.0.0.1:{port}", "lost_host": self.policy}
        self.processes[host], self.urls[host] = start_service(
            self.folder / host,
            self.folder / "phones",
            port=port,
            database_url=self.database.url,
            artifacts_url=f"file://{self.folder}/shared",
            workspace_roots=[str(self.folder)],
            phones=[{"address": phone} for phone in PHONES[host]],
            dispatch_poll_s=0.2,
            # A busy machine keeps a living host silent for seconds; only `reassign` waits for a dead one.
            lab=lab | {"heartbeat_s": 0.3, "lost_after_s": 10.0 if self.policy == "reassign" else 60.0},
            care={"probe_every_s": 0.5},
        )

    def kill(self, host: str) -> None:
        kill(self.processes.pop(host))

    def submit(self, count: int, via: str, **plan: Any) -> list[str]:
        ids = []
        for number in range(count):
            workspace = make_workspace(self.folder / f"w{number}", text=str(number), **plan)
            answer = httpx.post(f"{self.urls[via]}/v1/builds", json={"path": str(workspace)}, timeout=120)
            assert answer.status_code == 201, answer.text
            ids.append(answer.json()["id"])
        return ids

    def build(self, via: str, build_id: str) -> dict[str, Any]:
        body: dict[str, Any] = httpx.get(f"{self.urls[via]}/v1/builds/{build_id}", timeout=60).json()
        return body

    def released(self, host: str, ids: list[str]) -> Counter[str]:
        """Let held builds of a living host go on; give how all builds are."""
        for phone in PHONES[host]:
            for hold in self.folder.glob(f"phones/{phone}/runs/*/hold"):
                hold.unlink()
        return self.outcomes(host, ids)

    def outcomes(self, via: str, ids: list[str]) -> Counter[str]:
        return Counter(self.build(via, each)["outcome"] or self.build(via, each)["state"] for each in ids)


def wait_for(condition: Callable[[], bool], at_most_s: float = 300.0) -> None:
    deadline_s = time.monotonic() + at_most_s
    while not condition():
        assert time.monotonic() < deadline_s, "it did not come to pass"
        time.sleep(0.05)


@contextmanager
def lab(folder: Path, policy: str, hosts: tuple[str, ...] = ("h1", "h2")) -> Iterator[LabOfTwo]:
    for phones in PHONES.values():
        for phone in phones:
            (folder / "phones" / phone).mkdir(parents=True)
    (folder / "shared").mkdir()
    with cluster() as database:
        made = LabOfTwo(folder, database, policy)
        try:
            for host in hosts:
                made.start(host)
            yield made
        finally:
            for host in list(made.processes):
                made.kill(host)


@pytest.mark.parametrize("policy", ["wait", "reassign"])
def test_builds_of_a_killed_host_wait_for_it_or_go_to_another(tmp_path: Path, policy: str) -> None:
    with lab(tmp_path, policy) as lab_of_two:
        ids = lab_of_two.submit(6, "h1", lines=[f"line {n}" for n in range(60)], held_attempt=1)
        on_h2 = [f"{tmp_path}/phones/{phone}" for phone in PHONES["h2"]]
        wait_for(lambda: all(list(Path(phone).glob("runs/*/build.log")) for phone in on_h2))
        lab_of_two.kill("h2")
        if policy == "wait":
            wait_for(lambda: lab_of_two.released("h1", ids)["succeeded"] == 4)
            lab_of_two.start("h2")
            lab_of_two.released("h2", ids)
        wait_for(lambda: lab_of_two.released("h1", ids)["succeeded"] == 6)
        starts = Counter(starts_of(tmp_path / "phones"))
        assert max(starts.values()) == 1, "a run was started twice"
        attempts = Counter(lab_of_two.build("h1", each)["attempt"] for each in ids)
        assert attempts == ({1: 6} if policy == "wait" else {1: 4, 2: 2})
        if policy == "reassign":
            lab_of_two.start("h2")
            fenced = [run for phone in on_h2 for run in Path(phone).glob("runs/*")]
            wait_for(lambda: all((run / "cancel").exists() for run in fenced))
        for host in ("h1", "h2"):
            for each in ids:
                log = httpx.get(f"{lab_of_two.urls[host]}/v1/builds/{each}/log", timeout=120)
                assert log.text.splitlines() == [f"line {n}" for n in range(60)], (host, each)


def test_a_database_that_is_gone_for_seconds_costs_no_build(tmp_path: Path) -> None:
    with lab(tmp_path, "wait") as lab_of_two:
        ids = lab_of_two.submit(4, "h2", lines=[f"line {n}" for n in range(80)], line_s=0.05)
        wait_for(lambda: len(list(tmp_path.glob("phones/*/runs/*/build.log"))) == 4)
        lab_of_two.database.stop()
        time.sleep(5.0)
        lab_of_two.database.start()
        wait_for(lambda: is_up(lab_of_two.urls["h1"]))
        wait_for(lambda: has_answers(lab_of_two, ids) and lab_of_two.outcomes("h1", ids)["succeeded"] == 4)
        assert max(Counter(starts_of(tmp_path / "phones")).values()) == 1


def is_up(url: str, path: str = "/v1/phones") -> bool:
    try:
        return httpx.get(f"{url}{path}", timeout=20).is_success
    except httpx.TimeoutException:
        return False


def has_answers(lab_of_two: LabOfTwo, ids: list[str]) -> bool:
    """Say whether each build can be asked for: the first requests after an outage may still be refused."""
    return all(is_up(lab_of_two.urls["h1"], f"/v1/builds/{each}") for each in ids)


def test_two_processes_are_never_the_same_host(tmp_path: Path) -> None:
    with (
        lab(tmp_path, "wait", ("h1",)) as lab_of_two,
        pytest.raises(RuntimeError, match="is host h1 of this database"),
    ):
        start_service(
            tmp_path / "twin",
            tmp_path / "phones",
            database_url=lab_of_two.database.url,
            lab={"host_id": "h1"},
        )
