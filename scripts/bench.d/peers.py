"""Read the stream cases with other Python libraries, and count what each gets right.

    scripts/bench peers [--python /path/to/venv/bin/python]

The peers need an environment of their own:

    python3 -m venv /tmp/peers
    /tmp/peers/bin/pip install openai anthropic google-genai litellm "pydantic-ai-slim[openai,anthropic]"
    scripts/bench peers --python /tmp/peers/bin/python

Each case in tests/cases/stream goes as the answer of a mock transport through the library's own
client. `calls` are cases right in text and tool calls, `all` those right in reasoning, finish reason
and usage, too. A call that must not run is right where its arguments cannot be read or its name is
missing; an id that never came is not asked for; an exception is right where the case is an error or
has no content. `wrong` are cases after which a call would run that the model never made.
"""

import argparse
import json
import logging
import subprocess
import sys
import warnings
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

from peers_parts.readers import PEERS, Found, body_of

CASES = ROOT / "tests" / "cases" / "stream"
REASONS = {
    **dict.fromkeys(("stop", "end_turn", "STOP", "completed", "stop_sequence"), "stop"),
    **dict.fromkeys(("tool_calls", "tool_use", "tool_call", "function_call"), "tool_calls"),
    **dict.fromkeys(("length", "max_tokens", "MAX_TOKENS"), "length"),
    **dict.fromkeys(("content_filter", "SAFETY", "refusal"), "content_filter"),
    **dict.fromkeys(("error", "failed"), "error"),
}


def expected_calls(case: dict[str, Any], body: bytes) -> list[tuple[Any, Any, Any]]:
    """Give the calls of a case as (id or None, name, arguments, or None where they must not run)."""
    bad = "invalid_arguments" in case["expect"]["diagnostics_include"]
    calls = []
    for call in case["expect"]["tool_calls"]:
        sent = json.dumps(call["id"]).encode() in body
        refused = bad and call["arguments"] == {}
        calls.append((call["id"] if sent else None, call["name"], None if refused else call["arguments"]))
    return calls


def is_same_call(want: tuple[Any, Any, Any], got: tuple[Any, Any, Any]) -> bool:
    if want[0] is not None and want[0] != got[0]:
        return False
    if want[1] == "__malformed_tool_name__":
        return not got[1] or got[1] == want[1]
    return want[1] == got[1] and (want[2] == got[2] or (want[2] is None and not got[2]))


def judge(case: dict[str, Any], read: Callable[[str, bytes], Found]) -> tuple[bool, bool, bool]:
    """Give whether text and calls are right, whether all is, and whether a wrong call would run."""
    body, expect = body_of(case), case["expect"]
    try:
        got = read(case["dialect"], body)
    except Exception:  # noqa: BLE001 - what a peer raises is its result
        is_right = (
            not expect["text"] and not expect["tool_calls"] and expect["finish_reason"] in ("error", None)
        )
        return is_right, is_right, False
    want = expected_calls(case, body)
    is_right = got["text"] == expect["text"] and len(want) == len(got["calls"])
    is_right = is_right and all(map(is_same_call, want, got["calls"]))
    usage = expect["usage"] and (expect["usage"]["input_tokens"], expect["usage"]["output_tokens"])
    finish = REASONS.get(str(got["finish"] or ""), got["finish"])
    if got["calls"] and finish == "stop" and case["dialect"] in ("gemini", "openai-responses"):
        finish = "tool_calls"
    all_right = (got["reasoning"], finish) == (expect["reasoning"], expect["finish_reason"])
    all_right = all_right and (got["usage"] == usage or not any(usage or got["usage"] or ()))
    real = [(name, args) for _, name, args in want if name != "__malformed_tool_name__"]
    runs = [(name, args) for _, name, args in got["calls"] if name and args is not None]
    is_wrong = any((name, args) not in real and (args or (name, None) not in real) for name, args in runs
                   if name != "__malformed_tool_name__")  # fmt: skip
    return is_right, is_right and all_right, is_wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", help="the Python of an environment that has the peers")
    parser.add_argument("--list", metavar="PEER", help="name the cases that this peer gets wrong")
    args = parser.parse_args()
    if args.python:
        rest = ["--list", args.list] if args.list else []
        sys.exit(subprocess.run([args.python, __file__, *rest], check=False).returncode)
    logging.disable()
    warnings.simplefilter("ignore")
    cases = [json.loads(path.read_text()) for path in sorted(CASES.glob("*.json"))]
    print(f"{'peer':<24}{'dialect':<18}{'cases':>6}{'calls':>7}{'all':>6}{'wrong':>7}")
    for name, (read, package, dialects) in PEERS.items():
        try:
            title = f"{name} {version(package)}" if package else name
        except PackageNotFoundError:
            print(f"{name:<24}not installed here; see the head of {Path(__file__).name}")
            continue
        for dialect in dialects:
            verdicts = [(case["id"], *judge(case, read)) for case in cases if case["dialect"] == dialect]
            counts = [sum(verdict[place] for verdict in verdicts) for place in (1, 2, 3)]
            print(
                f"{title:<24}{dialect:<18}{len(verdicts):>6}{counts[0]:>7}{counts[1]:>6}{counts[2]:>7}",
                flush=True,
            )
            if args.list == name:
                print("\n".join(f"    {case_id}" for case_id, calls_right, *_ in verdicts if not calls_right))


if __name__ == "__main__":
    main()
