"""Let a real model repair five small faults with real builds; report solved, turns, tokens, builds."""

import argparse
import json
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
COMMAND = ROOT / ".venv/bin/pocketbuild"
SAMPLE = ROOT / "tests/workspaces/hello"
BOX = "live"


@dataclass(frozen=True, slots=True)
class Report:
    name: str
    solved: bool
    reason: str
    turns: int
    tokens: int
    builds: int
    seconds: float


def main() -> int:
    options = parse_options()
    if not has_key(options.provider):
        told = f"live_check: no key for {options.provider} here; set it as `pocketbuild providers` says"
        print(told, file=sys.stderr)
        return 2
    tasks = json.loads(Path(__file__).with_name("tasks.json").read_text())
    chosen = [task for task in tasks if not options.task or task["name"] in options.task]
    device = options.device or box_up()
    try:
        reports = [work_on(task, device, options) for task in chosen]
    finally:
        if not options.device:
            subprocess.run([COMMAND, "box", "down", "--name", BOX], check=False)
    solved = sum(report.solved for report in reports)
    print(f"\n{options.provider}/{options.model}: {solved} of {len(reports)} solved")
    for report in reports:
        mark = "solved" if report.solved else "FAILED"
        cost = f"{report.turns:>3} turns  {report.tokens:>8} tokens  {report.builds:>2} builds"
        print(f"  {mark}  {report.name:<20} {report.reason:<12} {cost}  {report.seconds:>5.0f} s")
    return 0 if solved == len(reports) else 1


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/live_check", description=__doc__)
    parser.add_argument("--provider", required=True, help="a name of `pocketbuild providers`")
    parser.add_argument("--model", required=True)
    parser.add_argument("--device", metavar="SERIAL|HOST:PORT", help="an attached phone, instead of the box")
    parser.add_argument("--task", action="append", help="only this task; may be repeated")
    parser.add_argument("--out", type=Path, default=ROOT / "out/live", help="workspaces and raw exchanges")
    return parser.parse_args()


def has_key(provider: str) -> bool:
    listed = subprocess.run([COMMAND, "providers", "--json"], check=True, capture_output=True, text=True)
    known = [json.loads(line) for line in listed.stdout.splitlines()]
    return any(entry["name"] == provider and entry["has_key"] for entry in known)


def box_up() -> str:
    print("starting the phone in a box …", flush=True)
    up = subprocess.run(
        [COMMAND, "box", "up", "--name", BOX, "--json"], check=True, capture_output=True, text=True
    )
    return str(json.loads(up.stdout)["serial"])


def work_on(task: dict[str, Any], device: str, options: argparse.Namespace) -> Report:
    """Plant the task's faults in a fresh copy, let the agent work, and look at what it left behind."""
    folder = options.out / task["name"]
    shutil.rmtree(folder, ignore_errors=True)
    workspace = folder / "workspace"
    shutil.copytree(SAMPLE, workspace)
    for edit in task["edits"]:
        path = workspace / edit["path"]
        assert path.read_text().count(edit["find"]) == 1, edit
        path.write_text(path.read_text().replace(edit["find"], edit["replace"]))
    print(f"{task['name']}: {task['assignment']}", flush=True)
    started_s = time.monotonic()
    done = subprocess.run(
        [
            *(COMMAND, "agent", "run", task["assignment"], "--workspace", workspace, "--device", device),
            *("--provider", options.provider, "--model", options.model, "--turns", "40", "--builds", "8"),
            *("--verify", "always", "--output", "json", "--record", folder / "exchanges"),
        ],
        check=False,
        stdout=subprocess.PIPE,
        text=True,
    )
    events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    end = next((event for event in reversed(events) if event["event"] == "RunStopped"), None)
    spent = end["spent"] if end else {}
    is_there = all(want["contains"] in (workspace / want["path"]).read_text() for want in task["wants"])
    return Report(
        name=task["name"],
        solved=is_there and end is not None and end["reason"] == "green",
        reason=end["reason"] if end else f"exit {done.returncode}",
        turns=spent.get("turns", 0),
        tokens=spent.get("input_tokens", 0) + spent.get("output_tokens", 0),
        builds=spent.get("builds", 0),
        seconds=time.monotonic() - started_s,
    )


if __name__ == "__main__":
    sys.exit(main())
