"""Let an agent repair a broken project and have a phone build it; print each step and what came of it."""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
import zlib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "tests" / "workspaces"
SCRIPTS = ROOT / "scripts" / "demo"
COMMAND = ROOT / ".venv" / "bin" / "pocketbuild"
BOX = f"demo-{zlib.crc32(str(ROOT).encode()):08x}"
"""A box of this checkout alone: a run of another one ends its own, not this."""
ASSIGNMENT = "The app in this workspace does not build. Find out why, repair it, and build it."

started_s = time.monotonic()


def main() -> int:
    options = parse_options()
    plant_fault(options.sample, options.out / "workspace")
    device, is_ours = (options.device, False) if options.device else box_up(options)
    try:
        repair(device, options)
        report(device, options)
    finally:
        if is_ours and not options.keep:
            pocketbuild(options, "box", "down", "--name", BOX, "--json", quiet=True)
    say_what_next(options)
    return 0


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/run", description=__doc__)
    parser.add_argument("--device", metavar="SERIAL|HOST:PORT", help="an attached phone, instead of the box")
    parser.add_argument(
        "--route", metavar="NAME", help="how its builder prefix is reached: run_as, shell_dir …"
    )
    parser.add_argument("--provider", metavar="NAME", help="a model provider, instead of the recorded script")
    parser.add_argument("--model", metavar="ID", help="which of the provider's models")
    parser.add_argument(
        "--sample", choices=["hello", "greeter"], default="hello", help="which project to break"
    )
    parser.add_argument("--keep", action="store_true", help="leave the box up")
    parser.add_argument(
        "--out", type=Path, default=ROOT / "out" / "demo", help="where everything goes; emptied first"
    )
    options = parser.parse_args()
    if bool(options.provider) != bool(options.model):
        parser.error("--provider and --model go together")
    return options


def plant_fault(sample: str, workspace: Path) -> None:
    """Copy the sample and break it as its fault file says."""
    step(f"Copying the sample project {sample} and planting a compile error in it")
    shutil.rmtree(workspace.parent, ignore_errors=True)
    shutil.copytree(SAMPLES / sample, workspace)
    fault = json.loads((SAMPLES / f"{sample}.fault.json").read_text())
    broken = workspace / fault["path"]
    text = broken.read_text()
    assert text.count(fault["find"]) == 1
    broken.write_text(text.replace(fault["find"], fault["replace"]))
    print(f"  {shown(broken)}: {fault['about']}")


def box_up(options: argparse.Namespace) -> tuple[str, bool]:
    """Start the box; gives its serial, and whether it was not running before."""
    step("Starting the phone in a box (made once, in about a minute; kept in a cache)")
    running = {
        box["name"]: box for box in json.loads(pocketbuild(options, "box", "status", "--json", quiet=True))
    }
    if BOX in running and running[BOX]["running"]:
        return str(running[BOX]["serial"]), False
    started = json.loads(pocketbuild(options, "box", "up", "--name", BOX, "--json", quiet=True))
    return str(started["serial"]), True


def repair(device: str, options: argparse.Namespace) -> None:
    if options.provider:
        step(f"Letting {options.provider} work on it; builds run on {device}")
        brain = ["--provider", options.provider, "--model", options.model]
    else:
        step(f"Letting a recorded script play the model (no model is asked); builds run on {device}")
        brain = ["--script", str(SCRIPTS / f"{options.sample}.script.toml")]
    workspace = ["--workspace", str(options.out / "workspace")]
    pocketbuild(options, "agent", "run", ASSIGNMENT, *workspace, *brain, *phone(device, options))


def report(device: str, options: argparse.Namespace) -> None:
    """Ask for the same build by hand: the content is unchanged, so the finished build answers."""
    step("Fetching what the phone built")
    built_at = options.out / "built"
    arguments = ["--json", "--quiet", "--output", str(built_at), *phone(device, options)]
    built = json.loads(pocketbuild(options, "build", str(options.out / "workspace"), *arguments, quiet=True))
    for apk in sorted(built_at.rglob("*.apk")):
        print(f"  {shown(apk)}", flush=True)
        pocketbuild(options, "apk", str(apk))
    stages = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in built["runs"][-1]["stage_s"].items())
    print(f"  stages of the last build: {stages}")
    print(
        f"  log: {shown(built_at / 'build.log')}; transcript and service data: {shown(options.out / 'data')}"
    )


def phone(device: str, options: argparse.Namespace) -> list[str]:
    return ["--device", device, *(["--route", options.route] if options.route else [])]


def pocketbuild(options: argparse.Namespace, *arguments: str, quiet: bool = False) -> str:
    """Run the command as anyone would; `quiet` hands its standard output back instead of showing it."""
    environment = os.environ | {"POCKETBUILD_DATA_DIR": str(options.out / "data"), "PYTHONUNBUFFERED": "1"}
    done = subprocess.run(
        [str(COMMAND), *arguments],
        env=environment,
        text=True,
        stdout=subprocess.PIPE if quiet else None,
        check=False,
    )
    if done.returncode:
        print(f"\nThis step failed: pocketbuild {' '.join(arguments)}", file=sys.stderr)
        raise SystemExit(done.returncode)
    return done.stdout or ""


def say_what_next(options: argparse.Namespace) -> None:
    step("Done")
    print(f"  the repaired project: {shown(options.out / 'workspace')}")
    if not options.device:
        print("  on a phone:   scripts/run --device SERIAL     (see `.venv/bin/pocketbuild phone list`)")
    if not options.provider:
        print("  with a model: ANTHROPIC_API_KEY=… scripts/run --provider anthropic --model MODEL")
    print("  your project: .venv/bin/pocketbuild build DIR --device SERIAL")


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)


def step(text: str) -> None:
    print(f"\n[{time.monotonic() - started_s:5.1f} s] {text}", flush=True)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("\ninterrupted; run it again to begin anew", file=sys.stderr)
        sys.exit(130)
