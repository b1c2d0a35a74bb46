"""The agent's own CPU time per turn and its memory over 1,000 turns, without model or phone."""

import argparse
import json
import logging
import resource
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parents[2]))

import anyio
import structlog

from agent.budget import Budget
from agent.equipment import Equipment
from agent.progress import Progress, TurnSpent
from agent.redact import Redactor
from agent.runner import run
from agent.scripted import Call, Turn
from agent.scripted.conversation import TokenCounts
from agent.transcript import Transcript
from tests.fakes_provider import FolderBuilder, MemoryLine, make_workspace

SOURCE = "app/src/main/java/Long.java"
LIMIT_MS = 5.0
LIMIT_GROWTH_MIB = 16.0


def turn_of(asked: int, turns: int, size_bytes: int) -> Turn:
    """Read, list or write something in each turn; the last one answers."""
    usage = TokenCounts(input=size_bytes // 4, output=100)
    if asked == turns:
        return Turn(text="Done.", usage=usage)
    calls = [
        Call(tool="read_file", arguments={"path": SOURCE, "first_line": 1 + asked % 50}),
        Call(tool="list_files", arguments={"pattern": f"*{asked}"}),
    ]
    if asked % 4 == 0:
        calls.append(Call(tool="write_file", arguments={"path": "notes.txt", "content": f"{asked}\n" * 40}))
    return Turn(text="I go on with the next step of the work. " * 4, calls=tuple(calls), usage=usage)


@dataclass(frozen=True, slots=True)
class Figures:
    turns: int
    own_ms_per_turn: float
    second_ms: float
    last_ms: float
    growth_mib: float


async def measure(turns: int, folder: Path) -> Figures:
    workspace = make_workspace(folder / "w", broken=False)
    source = "".join(
        f"    int value{n} = compute({n}); // line {n} of an ordinary file\n" for n in range(200)
    )
    (workspace / SOURCE).write_text(f"class Long {{\n{source}}}\n")
    marks: list[tuple[float, float]] = []
    line = MemoryLine(lambda asked, body: turn_of(asked, turns, len(json.dumps(body))))

    async def watch(progress: Progress) -> None:
        if isinstance(progress, TurnSpent):
            marks.append(
                (
                    time.process_time() - line.making_s,
                    resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
                )
            )

    with Transcript(folder / "run", Redactor()) as transcript:
        equipment = Equipment(
            line=line, builder=FolderBuilder(folder / "b"), transcript=transcript, on_progress=watch
        )
        started_s = time.process_time()
        await run("work", workspace, equipment, run_id="bench", budget=Budget(turns=turns + 1))
        own_s = time.process_time() - started_s - line.making_s
    await line.__aexit__(None, None, None)
    tenth = len(marks) // 10
    return Figures(
        turns=turns,
        own_ms_per_turn=own_s * 1000 / turns,
        second_ms=(marks[2 * tenth][0] - marks[tenth][0]) * 1000 / tenth,
        last_ms=(marks[-1][0] - marks[-1 - tenth][0]) * 1000 / tenth,
        growth_mib=marks[-1][1] - marks[len(marks) // 2][1],
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=1000)
    options = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    with TemporaryDirectory() as folder:
        figures = anyio.run(measure, options.turns, Path(folder))
    print(f"{figures.turns} turns with 2.25 tool calls each, conversation folded as it grows")
    print(f"own CPU time per turn  {figures.own_ms_per_turn:6.2f} ms   (limit {LIMIT_MS} ms)")
    print(f"  in the second tenth  {figures.second_ms:6.2f} ms   (in the first the conversation still grows)")
    print(f"  in the last tenth    {figures.last_ms:6.2f} ms")
    print(f"memory, second half    {figures.growth_mib:+6.1f} MiB  (limit {LIMIT_GROWTH_MIB} MiB)")
    is_good = figures.own_ms_per_turn < LIMIT_MS and figures.growth_mib < LIMIT_GROWTH_MIB
    print("within the limits" if is_good else "OVER THE LIMITS")
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
