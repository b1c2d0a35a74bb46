"""Asks a service everything that its OpenAPI document allows, and much that it does not.

    python -m tests.orchestrator.api_fuzz.run [--seed N] [--max-examples N]

Further options are those of `schemathesis run`. Exit code 0 when nothing was found.
"""

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

import httpx

from tests.orchestrator.processes import kill, start_service
from tests.orchestrator.workspaces import make_workspace

HERE = Path(__file__).parent
PATIENT = ["--request-timeout", "120", "--suppress-health-check", "all", "--no-shrink", "--no-color"]
"""A busy machine is no finding."""


def fuzz_api(folder: Path, options: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run the fuzzer against a service with one fake phone; give its verdict and what it says."""
    (folder / "phones/p1").mkdir(parents=True)
    make_workspace(folder / "projects/hello")
    process, url = start_service(
        folder / "data",
        folder / "phones",
        phones=[{"address": "p1"}],
        workspace_roots=[str(folder / "projects")],
        limits={"queued_per_owner": 100_000},
        log_level="warning",
    )
    config = ["--config-file", str(HERE / "schemathesis.toml")]
    program = [sys.executable, "-m", "schemathesis.cli", *config, "run", f"{url}/openapi.json", *PATIENT]
    environment = {**os.environ, "SCHEMATHESIS_HOOKS": "tests.orchestrator.api_fuzz.hooks"}
    is_over = threading.Event()
    canceller = threading.Thread(target=_cancel_what_waits, args=(url, is_over))
    canceller.start()
    try:
        return subprocess.run(
            [*program, *options],
            cwd=folder,
            env={**environment, "PYTHONPATH": str(HERE.parents[2])},
            text=True,
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
    finally:
        is_over.set()
        canceller.join()
        kill(process)


def _cancel_what_waits(url: str, is_over: threading.Event) -> None:
    """Let every build end, also one for which there is no phone: who follows it would follow for ever."""
    with httpx.Client(base_url=url, timeout=120, trust_env=False) as http:
        while not is_over.wait(0.2):
            waiting = http.get("/v1/builds", params={"state": "queued", "limit": 200}).json()["builds"]
            for build in waiting:
                http.post(f"/v1/builds/{build['id']}/cancel")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="pocketbuild-api-fuzz-") as scratch:
        done = fuzz_api(Path(scratch), sys.argv[1:])
    print(done.stdout)
    sys.exit(done.returncode)
