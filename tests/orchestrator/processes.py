"""Services as processes of their own, to be killed."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
START_S = 180.0


def start_service(
    data_dir: Path, phones_at: Path | None, **settings: Any
) -> tuple[subprocess.Popen[bytes], str]:
    """Start a service over the fake phones in a folder, or over real ones; give its process and its URL.

    Settings whose values are no text are written as JSON, the way variables carry them.
    """
    data_dir.mkdir(parents=True, exist_ok=True)
    (data_dir / "url").unlink(missing_ok=True)
    variables = {
        f"POCKETBUILD_{name.upper()}": value if isinstance(value, str) else json.dumps(value)
        for name, value in settings.items()
    }
    with (data_dir / "service.log").open("ab") as log:
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "tests.orchestrator.service_process",
                str(data_dir),
                *map(str, filter(None, [phones_at])),
            ],
            cwd=ROOT,
            env={**os.environ, **variables},
            stdout=subprocess.DEVNULL,
            stderr=log,
            start_new_session=True,
        )
    deadline_s = time.monotonic() + START_S
    while not (data_dir / "url").exists():
        if process.poll() is not None or time.monotonic() > deadline_s:
            raise RuntimeError((data_dir / "service.log").read_text()[-4000:])
        time.sleep(0.02)
    return process, (data_dir / "url").read_text()


def kill(process: subprocess.Popen[bytes]) -> None:
    """End a process as a power cut does."""
    process.kill()
    process.wait()
