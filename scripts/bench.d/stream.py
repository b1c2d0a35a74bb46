"""Read model streams: CPU from bytes to message against the floor, growth and memory, peers beside it.

    scripts/bench stream [--rounds 9] [--piece 16384]

The floor splits the body into lines and reads each payload with `orjson`, keeping nothing. Two
workloads: `chat`, 20,000 deltas of text and 200 fragments of four calls; `write`, one call that
writes a file of 100 kB in 4,000 fragments. Each reader runs in a process of its own, in turn with the
floor, and its text and calls are compared with what was sent. Ratios are medians over the rounds.
The peers are measured where they are installed: pip install openai anthropic httpx-sse. The exit code
is 1 where our reader takes more than twice the floor, grows faster than its input or keeps too much.
"""

import argparse
import gc
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parent)]

from stream_parts.bodies import openai_body
from stream_parts.readers import READERS, floor, ours

BAR = 2.0
SIZES = (100_000, 1_000_000, 10_000_000)
GROWTH_BAR = 1.6
"""How much dearer a byte may be in arguments of 10 MB than in those of 100 kB."""
MEMORY_BAR = 6.0
"""How many bytes may be held for each byte of a body with arguments of 10 MB, the body itself among them."""


def cpu_s(work: Callable[[], object]) -> float:
    gc.collect()
    start = time.process_time()
    work()
    return time.process_time() - start


@cache
def parts_of(body: bytes, piece: int) -> list[bytes]:
    return [body[at : at + piece] for at in range(0, len(body), piece)]


def compare(name: str, workload: str, rounds: int, piece: int) -> dict[str, Any]:
    """Measure one reader in turn with the floor, in this process."""
    make_reader, make_body = READERS[name]
    response, read = make_body(workload), make_reader()
    parts = parts_of(response.body, piece)
    text, calls = read(parts)
    is_right = text == response.text and calls == response.calls
    floor(parts)
    pairs = [(cpu_s(lambda: floor(parts)), cpu_s(lambda: read(parts))) for _ in range(rounds)]
    return {
        "ratio": statistics.median(mine / base for base, mine in pairs),
        "us_per_event": statistics.median(mine for _, mine in pairs) / response.events * 1e6,
        "is_right": is_right,
    }


def grow(size: int, rounds: int, piece: int) -> dict[str, Any]:
    """Measure arguments of one size: CPU for each byte, and the most memory held."""
    response = openai_body("write", size=size, fragments=size // 25)
    parts, read = parts_of(response.body, piece), ours("openai-chat")
    text, calls = read(parts)
    is_right = (text, calls) == (response.text, response.calls)
    taken = [cpu_s(lambda: read(parts)) for _ in range(rounds)]
    return {"ns_per_byte": min(taken) / len(response.body) * 1e9, "is_right": is_right}


def hold(size: int, piece: int) -> dict[str, Any]:
    """Measure what the process holds at most above what it holds with the body alone."""
    body = openai_body("write", size=size, fragments=size // 25).body
    parts, read = parts_of(body, piece), ours("openai-chat")
    read(parts_of(openai_body("write", size=10_000, fragments=40).body, piece))
    gc.collect()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    read(parts)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"bytes_per_byte": 1 + (after - before) * 1024 / len(body)}


def in_child(**task: Any) -> dict[str, Any] | str:
    """Run one measurement in a fresh process; give its result, or why there is none."""
    command = [sys.executable, __file__, "--child", json.dumps(task)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return done.stderr.strip().splitlines()[-1][:100] if done.stderr.strip() else "it died"
    result: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


def run_child(task: dict[str, Any]) -> None:
    kind = task.pop("kind")
    print(json.dumps({"compare": compare, "grow": grow, "hold": hold}[kind](**task)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--piece", type=int, default=16_384, help="bytes in one read")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        run_child(json.loads(args.child))
        return
    failed = False
    for workload in ("chat", "write"):
        print(f"\n{workload}: CPU time in floors, {args.rounds} rounds, reads of {args.piece} bytes")
        for name in READERS:
            row = in_child(kind="compare", name=name, workload=workload, rounds=args.rounds, piece=args.piece)
            if isinstance(row, str):
                print(f"  {name:<32} not measured: {row}")
                failed |= name.startswith("pocketbuild")
                continue
            print(f"  {name:<32}{row['ratio']:>7.2f}   {row['us_per_event']:>7.1f} µs an event"
                  + ("" if row["is_right"] else "   WRONG RESULT"), flush=True)  # fmt: skip
            failed |= name.startswith("pocketbuild") and not (row["is_right"] and row["ratio"] <= BAR)
    print("\nlength of arguments in fragments of 25 characters: CPU time for each byte of the body")
    costs = []
    for size in SIZES:
        row = in_child(kind="grow", size=size, rounds=3, piece=args.piece)
        assert isinstance(row, dict), row
        costs.append(row["ns_per_byte"])
        failed |= not row["is_right"]
        print(f"  {size:>10,} characters {row['ns_per_byte']:>7.1f} ns", flush=True)
    held = in_child(kind="hold", size=SIZES[-1], piece=args.piece)
    assert isinstance(held, dict), held
    print(f"  at most {held['bytes_per_byte']:.1f} bytes held for each byte of the body, the body among them")
    failed |= costs[-1] > costs[0] * GROWTH_BAR or held["bytes_per_byte"] > MEMORY_BAR
    print(f"\nbar: at most {BAR} floors, growth and memory linear: {'missed' if failed else 'held'}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
