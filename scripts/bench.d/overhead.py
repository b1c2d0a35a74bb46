"""Build through the bridge and the service against Gradle typed in the phone's shell: at most 1.03 times.

Three kinds: `cold` and `warm` through the bridge, without and with Gradle's daemon; `service` from the
request to the answer that the build is done, its packages fetched, with the daemon.
"""

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
import httpx
import structlog

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT))

from builder_bridge.adb import AdbConnection, connect, shell
from builder_bridge.box import Kind, remove, start
from builder_bridge.bridge import Bridge, open_bridge
from builder_bridge.build import BuildSpec, RunId
from builder_bridge.prefix.settings import gradle_settings
from builder_bridge.workspace.scan import scan
from tests.orchestrator.processes import kill, start_service

BAR = 1.03
KINDS = ("cold", "warm", "service")
NAME = "bench-overhead"
PREFIX = "/data/local/tmp/pocketbuild/usr"
TYPED = "/data/local/tmp/typed"
INIT_SCRIPTS = ("pocketbuild-workspace", "pocketbuild-events")
STOP = f". {PREFIX}/etc/env.sh; gradle --stop >/dev/null 2>&1; true"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--only", choices=KINDS)
    options = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    box = start(Kind.AGP, NAME, progress=print)
    try:
        return anyio.run(compare, box.serial, options.pairs, options.only)
    finally:
        remove(NAME)


async def compare(address: str, pairs: int, only: str | None) -> int:
    passed = True
    with tempfile.TemporaryDirectory() as scratch:
        workspace = Path(scratch) / "hello"
        await anyio.to_thread.run_sync(shutil.copytree, ROOT / "tests/workspaces/hello", workspace)
        async with connect(address) as adb:
            for kind in KINDS if only is None else (only,):
                way = serving(address, workspace) if kind == "service" else bridging(adb, workspace, kind)
                async with way as build:
                    passed &= await compare_kind(adb, build, workspace, kind, pairs)
    return 0 if passed else 1


Build = Callable[[str], Awaitable[float]]


@asynccontextmanager
async def bridging(adb: AdbConnection, workspace: Path, kind: str) -> AsyncIterator[Build]:
    """Give builds through the bridge, as a library's user has them."""
    memory = workspace.parent / "memory"
    async with open_bridge(adb, ("shell_dir",), has_daemon=kind == "warm", memory=memory) as bridge:
        yield partial(bridged, bridge, workspace)


@asynccontextmanager
async def serving(address: str, workspace: Path) -> AsyncIterator[Build]:
    """Give builds through a service in a process of its own."""
    phone = {"address": address, "route": "shell_dir"}
    start = partial(start_service, workspace.parent / "data", None, phones=[phone])
    process, url = await anyio.to_thread.run_sync(partial(start, workspace_roots=[str(workspace.parent)]))
    try:
        async with httpx.AsyncClient(base_url=url, timeout=120, trust_env=False) as http:
            yield partial(served, http, workspace)
    finally:
        kill(process)


async def compare_kind(adb: AdbConnection, build: Build, workspace: Path, kind: str, pairs: int) -> bool:
    """Alternate which goes first; each build follows a change of one line, so that it has work to do."""
    async with open_bridge(adb, ("shell_dir",)) as bridge:
        args = gradle_settings(await bridge.info(), kind != "cold").args
    await shell.run(adb, f"rm -rf {TYPED}; mkdir {TYPED}")
    files = scan(workspace).files
    for file in files:
        place = f"{TYPED}/{file.path}"
        await shell.run(
            adb, f"mkdir -p {place.rpartition('/')[0]}; cat >{place}", (workspace / file.path).read_bytes()
        )
    await build(f"{kind}-first")
    await typed(adb, args)
    ratios, ours, theirs = [], [], []
    for number in range(pairs):
        for is_ours in (number % 2 == 0, number % 2 != 0):
            source = workspace / "app/src/main/res/values/strings.xml"
            text = source.read_text().partition("<!--")[0] + f"<!-- {kind} {number} -->\n"
            if is_ours:
                source.write_text(text)
                ours.append(await build(f"{kind}-{number}"))
            else:
                await shell.run(adb, f"cat >{TYPED}/app/src/main/res/values/strings.xml", text.encode())
                theirs.append(await typed(adb, args))
        ratios.append(ours[-1] / theirs[-1])
        print(
            f"{kind} {number}: ours {ours[-1]:.2f} s, typed {theirs[-1]:.2f} s, {ratios[-1]:.3f}",
            flush=True,
        )
    ratio = statistics.median(ratios)
    middle = f"ours {statistics.median(ours):.2f} s, typed {statistics.median(theirs):.2f} s"
    print(f"{kind}: {middle}, median of {pairs} paired ratios {ratio:.3f} (bar {BAR})")
    return ratio <= BAR


async def bridged(bridge: Bridge, workspace: Path, name: str) -> float:
    """Hand over, follow the whole log and get the verdict; prints how much of it was Gradle's own time."""
    began_s = time.perf_counter()
    run_id = RunId(f"{name}-{time.time_ns()}")
    await bridge.submit(run_id, BuildSpec(), scan(workspace))
    async for _ in bridge.follow(run_id):
        pass
    result = await bridge.result(run_id)
    assert result.is_success, result
    seconds = time.perf_counter() - began_s
    assert result.artifacts, "a build without an APK is not the same build"
    stages = ", ".join(f"{stage} {spent:.2f}" for stage, spent in result.stage_s.items())
    print(f"  on the phone: {stages}", flush=True)
    return seconds


async def served(http: httpx.AsyncClient, workspace: Path, _: str) -> float:
    """Ask for a build and wait until it is done and its packages are here."""
    began_s = time.perf_counter()
    build = (await http.post("/v1/builds", json={"path": str(workspace)})).raise_for_status().json()
    while build["state"] != "finished":
        answer = await http.get(f"/v1/builds/{build['id']}", params={"wait_s": 60})
        build = answer.raise_for_status().json()
    seconds = time.perf_counter() - began_s
    assert build["outcome"] == "succeeded", build
    stages = ", ".join(f"{stage} {spent:.2f}" for stage, spent in build["runs"][-1]["stage_s"].items())
    print(f"  stages: {stages}", flush=True)
    return seconds


async def typed(adb: AdbConnection, args: tuple[str, ...]) -> float:
    """Run the same Gradle command as a person would, in the phone's shell."""
    quoted = " ".join(f"'{arg}'" for arg in args)
    scripts = " ".join(f"-I {PREFIX}/share/pocketbuild/{name}.gradle" for name in INIT_SCRIPTS)
    own = f"$(cat {PREFIX}/etc/gradle.args) {scripts} -Dpocketbuild.events.file=/dev/null"
    began_s = time.perf_counter()
    result = await shell.run(
        adb, f". {PREFIX}/etc/env.sh; cd {TYPED} && gradle {own} {quoted} assembleDebug >typed.log 2>&1"
    )
    assert result.exit_code == 0, result
    return time.perf_counter() - began_s


if __name__ == "__main__":
    sys.exit(main())
