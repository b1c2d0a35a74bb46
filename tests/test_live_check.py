"""`scripts/live_check` from end to end, over real HTTP, with a script where the model would be."""

import json
import os
import sys
from pathlib import Path

import anyio
import pytest

from agent.scripted import Call, Conversation, Expected, ScriptedProvider, Turn
from builder_bridge.box import Box

ROOT = Path(__file__).parent.parent
PAGE = "app/src/main/java/org/pocketbuild/hello/MainActivity.java"
SCRIPT = Conversation(
    title="live check",
    turns=(
        Turn(
            expects=Expected(user_contains=("does not build",)),
            calls=(Call(tool="edit_file", arguments={"path": PAGE, "old": "of(hours)", "new": "of(hour)"}),),
        ),
        Turn(text="It was a misspelt name."),
    ),
)

pytestmark = [pytest.mark.box, pytest.mark.slow, pytest.mark.xdist_group("agp"), pytest.mark.anyio]


async def test_a_task_is_planted_worked_on_judged_and_reported(agp_box: Box, tmp_path: Path) -> None:
    async with ScriptedProvider(SCRIPT) as server:
        mine = {"base_url": server.base_url, "dialect": "anthropic", "key_env": ["MINE_KEY"]}
        environment = {
            **os.environ,
            "POCKETBUILD_DATA_DIR": str(tmp_path / "data"),
            "POCKETBUILD_PROVIDERS": json.dumps({"mine": mine}),
            "MINE_KEY": "no-such-key",
        }
        command = [sys.executable, str(ROOT / "scripts/live/live_check.py"), "--task", "undefined-variable"]
        command += ["--provider", "mine", "--model", "m", "--device", agp_box.serial]
        command += ["--out", str(tmp_path / "live")]
        done = await anyio.run_process(command, env=environment, check=False)
    printed = done.stdout.decode()
    assert server.mismatches == [], printed
    assert "mine/m: 1 of 1 solved" in printed, printed + done.stderr.decode()
    assert printed.split("undefined-variable")[-1].split()[:2] == ["green", "2"]
    assert " 1 builds" in printed
    assert done.returncode == 0
    kept = list((tmp_path / "live/undefined-variable/exchanges").glob("*.body"))
    assert len(kept) == 2


async def test_without_a_key_it_says_what_is_missing(tmp_path: Path) -> None:
    environment = {**os.environ, "POCKETBUILD_DATA_DIR": str(tmp_path), "ANTHROPIC_API_KEY": ""}
    command = [sys.executable, str(ROOT / "scripts/live/live_check.py")]
    done = await anyio.run_process(
        [*command, "--provider", "anthropic", "--model", "m"], env=environment, check=False
    )
    assert (done.returncode, b"no key for anthropic" in done.stderr) == (2, True)
