"""`pocketbuild box` as a person or a script uses it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from builder_bridge.box import Box, find, remove
from orchestrator.cli.box import box
from tests.box.fixtures import require_box


def test_a_fault_is_one_message_with_the_next_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POCKETBUILD_BOX_CACHE", str(tmp_path))
    result = CliRunner().invoke(box, ["shell", "--name", "nobody"])
    assert result.exit_code == 1
    assert "Box nobody does not run." in result.output
    assert "pocketbuild box up --name nobody" in result.output


def test_where_there_are_no_boxes_status_says_how_to_start_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POCKETBUILD_BOX_CACHE", str(tmp_path))
    assert "pocketbuild box up" in CliRunner().invoke(box, ["status"]).output
    assert json.loads(CliRunner().invoke(box, ["status", "--json"]).output) == []


def running(name: str) -> Box:
    found = find(name)
    assert found is not None
    return found


@pytest.mark.box
def test_a_box_goes_up_runs_commands_goes_down_and_away(tmp_path: Path) -> None:
    require_box()
    name = f"cli-{Path('/proc/self').resolve().name}"
    command = [sys.executable, "-m", "orchestrator", "box"]

    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)

    try:
        up = json.loads(call("up", "--kind", "tiny", "--name", name, "--json").stdout)
        assert (up["name"], up["running"], up["serial"].split(":")[0]) == (name, True, "127.0.0.1")
        assert name in [one["name"] for one in json.loads(call("status", "--json").stdout)]
        in_box = call("shell", "--name", name, "echo $USER; exit 3")
        assert (in_box.returncode, in_box.stdout) == (3, "shell\n")
        key = "QUFBQQ== someone@somewhere"
        (tmp_path / "adbkey.pub").write_text(key)
        assert (
            call("allow", "--name", name, str(tmp_path / "adbkey.pub")).stdout
            == f"Box {name} knows 1 more key\n"
        )
        assert (running(name).root / "data/misc/adb/adb_keys").read_text() == f"{key}\n"
        assert call("shell", "--name", name, "echo", "two  words").stdout == "two  words\n"
        assert json.loads(call("down", "--name", name, "--json").stdout) == {
            "name": name,
            "was_running": True,
        }
        assert f"{name}: tiny in plain mode, is stopped" in call("status").stdout
        assert json.loads(call("rm", "--name", name, "--json").stdout) == {"name": name, "existed": True}
        assert call("rm", "--name", name).stdout == f"There is no box {name}\n"
    finally:
        remove(name)
