"""The service: ready, idle, enqueue, load on four phones, a hundred followers, kill -9 at every stage."""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import httpx

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.orchestrator.fakes import starts_of
from tests.orchestrator.processes import kill, start_service
from tests.orchestrator.workspaces import make_workspace

PHONES = ("p1", "p2", "p3", "p4")
BUILDS = 50
FOLLOWERS = 100
LINES_PER_S = 200
IDLE_S = 20.0
STAMP = re.compile(rb"1\d{9}\.\d+(?=\\n)")
LIMITS = {"ready_s": 3.0, "idle_percent": 3.0, "enqueue_ms": 10.0, "load_ratio": 1.15, "delay_ms": 50.0}


class Bench:
    """One service over fake phones, in a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for phone in PHONES:
            (folder / "phones" / phone).mkdir(parents=True)
        self.url = ""
        self.process: subprocess.Popen[bytes] | None = None
        self.http = httpx.Client(timeout=60, trust_env=False)

    def start(self) -> float:
        began_s = time.monotonic()
        self.process, self.url = start_service(
            self.folder / "data",
            self.folder / "phones",
            phones=[{"address": phone} for phone in PHONES],
            workspace_roots=[str(self.folder)],
            log_level="warning",
        )
        while not self.http.get(f"{self.url}/readyz").is_success:
            time.sleep(0.01)
        return time.monotonic() - began_s

    def kill(self) -> None:
        assert self.process is not None
        kill(self.process)

    def cpu_s(self) -> float:
        assert self.process is not None
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def submit(self, workspace: Path, **wish: Any) -> str:
        answer = self.http.post(f"{self.url}/v1/builds", json={"path": str(workspace), **wish})
        answer.raise_for_status()
        return str(answer.json()["id"])

    def build(self, build_id: str) -> dict[str, Any]:
        body: dict[str, Any] = self.http.get(f"{self.url}/v1/builds/{build_id}").json()
        return body


def wait_for(condition: Callable[[], bool], at_most_s: float) -> None:
    deadline_s = time.monotonic() + at_most_s
    while not condition():
        if time.monotonic() > deadline_s:
            raise SystemExit("the bench waited too long; the service's log is in its data folder")
        time.sleep(0.05)


def measure_idle(bench: Bench) -> float:
    time.sleep(3.0)
    before = bench.cpu_s()
    time.sleep(IDLE_S)
    return 100 * (bench.cpu_s() - before) / IDLE_S


def measure_enqueue(bench: Bench) -> float:
    """Ask for the same workspace with other arguments, so that only the queueing is measured."""
    workspace = make_workspace(bench.folder / "enqueue")
    spent: list[float] = []
    for number in range(60):
        body = {"path": str(workspace), "args": [f"-Pn={number}"], "pool": "none"}
        began_s = time.perf_counter()
        answer = bench.http.post(f"{bench.url}/v1/builds", json=body)
        spent.append(1000 * (time.perf_counter() - began_s))
        answer.raise_for_status()
        bench.http.post(f"{bench.url}/v1/builds/{answer.json()['id']}/cancel").raise_for_status()
    return statistics.median(spent)


def measure_load(bench: Bench, build_s: float) -> float:
    lines = 20
    workspaces = [
        make_workspace(bench.folder / f"load{n}", text=str(n), lines=["x"] * lines, line_s=build_s / lines)
        for n in range(BUILDS)
    ]
    began_s = time.monotonic()
    ids = [bench.submit(workspace) for workspace in workspaces]
    wait_for(lambda: count_of(bench, "succeeded", ids) == BUILDS, 60 + BUILDS * build_s)
    spent_s = time.monotonic() - began_s
    return spent_s / (-(-BUILDS // len(PHONES)) * build_s)


def count_of(bench: Bench, outcome: str, ids: list[str]) -> int:
    page = bench.http.get(f"{bench.url}/v1/builds", params={"limit": 200, "outcome": outcome}).json()
    return len({build["id"] for build in page["builds"]} & set(ids))


async def measure_followers(bench: Bench, seconds: float) -> tuple[float, float]:
    count = int(seconds * LINES_PER_S)
    # It is held until everybody listens: a line cannot be late for who was not there yet.
    plan = {"lines": ["x"] * count, "line_s": 1 / LINES_PER_S, "is_stamped": True, "held_attempt": 1}
    build_id = bench.submit(make_workspace(bench.folder / "followed", **plan))
    delays: list[float] = []
    received = Counter[int]()
    listening: set[int] = set()

    async def follow(number: int) -> None:
        host, _, port = bench.url.removeprefix("http://").partition(":")
        request = f"GET /v1/builds/{build_id}/log/live HTTP/1.1\r\nhost: {host}:{port}\r\n\r\n"
        async with await anyio.connect_tcp(host, int(port)) as stream:
            await stream.send(request.encode())
            rest = b""
            while b"event: end" not in rest:
                rest += await stream.receive(1 << 20)
                listening.add(number)
                now_s = time.time()
                cut = rest.rfind(b"\\n") + 2
                stamps = STAMP.findall(rest[:cut]) if cut > 1 else []
                rest = rest[cut:] if cut > 1 else rest
                received[number] += len(stamps)
                delays.extend(1000 * (now_s - float(stamp)) for stamp in stamps)

    async with anyio.create_task_group() as tasks:
        for number in range(FOLLOWERS):
            tasks.start_soon(follow, number)
        holds = list((bench.folder / "phones").glob(f"*/runs/{build_id}-1/hold"))
        while len(listening) < FOLLOWERS or not holds:
            await anyio.sleep(0.05)
            holds = list((bench.folder / "phones").glob(f"*/runs/{build_id}-1/hold"))
        holds[0].unlink()
    if set(received.values()) != {count}:
        raise SystemExit(
            f"followers got {min(received.values())} to {max(received.values())} of {count} lines"
        )
    delays.sort()
    return statistics.median(delays), delays[int(len(delays) * 0.95)]


def measure_kills(bench: Bench) -> dict[str, str]:
    stages: dict[str, dict[str, Any]] = {
        "upload": {"upload_s": 3.0},
        "unpack": {"unpack_s": 3.0},
        "gradle": {"lines": ["x"] * 200, "line_s": 0.03},
        "collect": {"collect_s": 3.0},
        "fetch": {"fetch_s": 3.0},
    }
    verdicts = {}
    for stage, plan in stages.items():
        workspace = make_workspace(bench.folder / f"kill-{stage}", text=stage, **plan)
        build_id = bench.submit(workspace)
        wait_for(lambda build_id=build_id, stage=stage: bench.build(build_id)["stage"] == stage, 60)  # type: ignore[misc]
        bench.kill()
        bench.start()
        wait_for(lambda build_id=build_id: bench.build(build_id)["state"] == "finished", 60)  # type: ignore[misc]
        build = bench.build(build_id)
        (run,) = (bench.folder / "phones").glob(f"*/runs/{build_id}-1")
        log = bench.http.get(f"{bench.url}/v1/builds/{build_id}/log").content
        is_right = (
            build["outcome"] == "succeeded"
            and log == (run / "build.log").read_bytes()
            and starts_of(bench.folder / "phones").count(f"{build_id}-1") == 1
        )
        verdicts[stage] = "once, byte-exact" if is_right else f"WRONG: {build['outcome']}"
    return verdicts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build-s", type=float, default=5.0, help="length of each of the fifty builds")
    parser.add_argument("--follow-s", type=float, default=10.0, help="how long the followed build runs")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="pocketbuild-bench-") as folder:
        bench = Bench(Path(folder))
        figures: dict[str, Any] = {"ready_s": bench.start()}
        try:
            figures["idle_percent"] = measure_idle(bench)
            figures["enqueue_ms"] = measure_enqueue(bench)
            figures["load_ratio"] = measure_load(bench, options.build_s)
            figures["delay_ms"], figures["delay_p95_ms"] = anyio.run(
                measure_followers, bench, options.follow_s
            )
            figures["killed_at"] = measure_kills(bench)
        finally:
            bench.kill()
    figures = {
        name: round(value, 2) if isinstance(value, float) else value for name, value in figures.items()
    }
    if options.json:
        print(json.dumps(figures))
    else:
        for name, value in figures.items():
            limit = f"  (limit {LIMITS[name]})" if name in LIMITS else ""
            print(f"{name:<14} {value}{limit}")
    missed = [name for name, limit in LIMITS.items() if figures[name] > limit]
    wrong = [stage for stage, verdict in figures["killed_at"].items() if verdict.startswith("WRONG")]
    return 1 if missed or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
