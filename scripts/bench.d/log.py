"""Explain a build log of 100 MB: CPU time, memory and growth, against splitting its lines alone."""

import argparse
import json
import random
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

CHUNK_BYTES = 1 << 18
LIMIT_S = 2.0
LIMIT_MIB = 64.0
MODULES = [
    f":{group}:{name}" for group in ("core", "feature") for name in ("crane", "reef", "ferry", "pier", "dune")
]
TASKS = [
    "compileDebugKotlin",
    "mergeDebugShaders",
    "processDebugJavaRes",
    "dexBuilderDebug",
    "javaPreCompileDebug",
]
SOURCES = "file:///home/user/work/harbor/app/src/main/java/net/acme/harbor"
ENDS = ["", " UP-TO-DATE", " FROM-CACHE", " NO-SOURCE"]
FREE_TEXT = [
    "Note: Some input files use or override a deprecated API.",
    "Unable to strip the following libraries, packaging them as they are: liberror.so, libfailed_handler.so.",
    "[CXX5304] This app only has 32-bit [armeabi-v7a] native libraries; stores ask for 64-bit versions too.",
    "\tat org.gradle.internal.operations.BuildOperationRunner$2.execute(BuildOperationRunner.java:66)",
    (
        "Execution optimizations have been disabled for task ':app:mergeDebugShaders' to ensure correctness "
        "due to the following reasons: Gradle detected a problem with the location of an output of another."
    ),
]
FAILURE = """
FAILURE: Build failed with an exception.

* What went wrong:
Execution failed for task ':core:crane:compileDebugKotlin'.
> A failure occurred while executing org.jetbrains.kotlin.compilerRunner.GradleCompilerRunnerWithWorkers
   > Compilation error. See log for more details

* Try:
> Run with --stacktrace option to get the stack trace.

BUILD FAILED in 7m 40s
"""


def lines_of_a_build(chance: random.Random) -> Iterator[str]:
    """Lines of about 84 bytes as builds print them: tasks, free text, repeated and new warnings."""
    count = 0
    while True:
        count += 1
        dice = chance.random()
        if dice < 0.40:
            yield f"> Task {chance.choice(MODULES)}:{chance.choice(TASKS)}{chance.choice(ENDS)}"
        elif dice < 0.96:
            yield chance.choice(FREE_TEXT)
        elif dice < 0.995:
            place = f"{chance.randrange(1, 60)}:7"
            yield f"w: {SOURCES}/Fleet.kt:{place} 'val old' is deprecated."
        else:
            place = f"{count}:{chance.randrange(1, 80)}"
            yield f"w: {SOURCES}/Dock.kt:{place} Variable 'x' is never used."


def write_log(path: Path, size_mb: int) -> int:
    """Write a log of a size; give its count of lines."""
    chance = random.Random(7)
    lines = lines_of_a_build(chance)
    written = count = 0
    with path.open("w") as file:
        while written < size_mb * 1_000_000:
            batch = [next(lines) for _ in range(10_000)]
            count += len(batch)
            text = "\n".join(batch) + "\n"
            file.write(text)
            written += len(text)
        file.write(f"e: {SOURCES}/Ship.kt:18:33 Unresolved reference 'x'.\n")
        file.write(FAILURE)
    return count


def explain(path: Path) -> dict[str, object]:
    from builder_bridge.log.digest import make_digest, render_text
    from builder_bridge.log.reader import LogReader

    start = time.process_time()
    reader = LogReader()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            reader.feed(chunk)
    report = reader.close()
    text = render_text(make_digest(report))
    return {
        "s": time.process_time() - start,
        "digest": text,
        "lines": report.line_count,
        "problems": len(report.problems),
    }


def split_only(path: Path) -> dict[str, object]:
    """The floor: cut the same chunks into lines and look at each line once."""
    start = time.process_time()
    count = 0
    rest = b""
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            lines = (rest + chunk).split(b"\n")
            rest = lines.pop()
            for line in lines:
                count += line.startswith(b"e: ")
    return {"s": time.process_time() - start, "errors": count}


def bare(path: Path) -> dict[str, object]:
    return {"s": 0.0}


WAYS = {"explain": explain, "split": split_only, "bare": bare}


def measure(way: str, path: Path) -> dict[str, float]:
    """Run one way in a process of its own; give seconds and its largest resident size."""
    done = subprocess.run(
        [sys.executable, __file__, "--way", way, "--file", str(path)], capture_output=True, check=True
    )
    result: dict[str, float] = json.loads(done.stdout)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--sizes-mb", default="1,10,100", help="sizes to measure; the last but all is judged at 100"
    )
    parser.add_argument("--way", choices=sorted(WAYS))
    parser.add_argument("--file", type=Path)
    options = parser.parse_args()
    if options.way:
        result = WAYS[options.way](options.file)
        result["mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps(result))
        return
    is_good = True
    with TemporaryDirectory() as folder:
        path = Path(folder) / "build.log"
        print("   MB      lines  CPU s      ratio to split  s per GB  MiB above bare")
        for size_mb in map(int, options.sizes_mb.split(",")):
            lines = write_log(path, size_mb)
            bare_mib = measure("bare", path)["mib"]
            ours = min((measure("explain", path) for _ in range(3)), key=lambda run: run["s"])
            floor = min(measure("split", path)["s"] for _ in range(3))
            above = ours["mib"] - bare_mib
            print(
                f"{size_mb:>5} {lines:>10,} {ours['s']:>10.3f} {ours['s'] / floor:>15.2f}"
                f" {1000 * ours['s'] / size_mb:>9.2f} {above:>15.1f}"
            )
            if size_mb == 100:
                is_good = ours["s"] < LIMIT_S and above < LIMIT_MIB
                print(
                    f"  limits at 100 MB: {LIMIT_S} s and {LIMIT_MIB} MiB: {'kept' if is_good else 'BROKEN'}"
                )
    sys.exit(0 if is_good else 1)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))
    main()
