"""Fuzz what strangers hand over: the phone's documents, archives to unpack, logs of a death.

    .venv/bin/python scripts/fuzz.d/handoff.py [--seconds 60] [--seed N]

Mutated documents must give a value or a named fault, whichever way they are cut; mutated archives
must be refused by name or unpack to files inside the folder, with no link that leads out; any text
must give a cause of death. Where atheris is installed, coverage leads the second half. A failing
input is written to a file, and the exit code is above 0.
"""

import argparse
import json
import random
import shutil
import sys
import tempfile
import time
import traceback
import zipfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

from guided import coverage

with coverage.watched("builder_bridge"):
    from builder_bridge.build import RunId
    from builder_bridge.death import Evidence, classify
    from builder_bridge.errors import BridgeError, WorkspaceFault
    from builder_bridge.handoff import (
        OpenDocument,
        ResultDocument,
        StateLines,
        StatusDocument,
        judge,
        parse,
    )
    from builder_bridge.outcome import to_result
    from builder_bridge.prefix.contract import Contract
    from builder_bridge.workspace.archive import UnpackLimits, unpack
    from builder_bridge.workspace.preflight import Needs, check_project

A = "a" * 64
STATUS = {
    "pb": 1,
    "run": "r",
    "digest": A,
    "state": {"state": "running"},
    "pid": 7,
    "start_ticks": 9,
    "alive": True,
    "boot_id": "b",
    "boot_now": "b",
    "log_size": "12",
    "content": A,
    "touched": ["a"],
    "folders": ["."],
    "names": ["a"],
}
RESULT = {
    "pb": 1,
    "run": "r",
    "state": "done",
    "exit_code": 0,
    "cause": None,
    "log_size": "5",
    "log_sha256": A,
    "artifacts": [{"index": 0, "path": "app/build/outputs/apk/a.apk", "size": "4", "sha256": A}],
    "times": ["running 1796040000.000000"],
    "facts": {"a": "b"},
}
CONTRACT = {
    "pb": 1,
    "uid": 1,
    "dir": "/x",
    "checks": {"a": True},
    "device": {"cores": 2, "memory_kb": "9"},
    "prefix": {"agp": ["1"], "platforms": [23]},
}
SPICES = [
    *(b'"', b"\\", b"{", b"}", b"[", b"]", b"null", b"-1", b"1e999"),
    *(b'"pb":1', b"\0", b"\xff", b"../", b"\n", b"9" * 30),
]
LOGCAT = b"""I lowmemorykiller: Kill 'java' (7), uid 1
I ActivityManager: Killing PhantomProcessRecord {1 7:6:java/u0a1}: Trimming
"""
SCRIPT = b"""android { compileSdk 36
  externalNativeBuild { cmake { path 'x' } } }
includeBuild('../x') // y
/* z */"""


def mutate(rng: random.Random, data: bytes) -> bytes:
    out = bytearray(data)
    for _ in range(rng.randint(1, 8)):
        at = rng.randint(0, len(out))
        match rng.randint(0, 4):
            case 0:
                out[at:at] = rng.choice(SPICES)
            case 1:
                del out[at : at + rng.randint(1, 20)]
            case 2 if out:
                out[at % len(out)] = rng.randint(0, 255)
            case 3:
                out[at:at] = out[max(0, at - 30) : at]
            case _:
                del out[at:]
    return bytes(out)


def read_documents(rng: random.Random, data: bytes) -> None:
    for kind in (StatusDocument, OpenDocument, ResultDocument, Contract):
        try:
            document = parse(data, kind)
            if isinstance(document, StatusDocument):
                judge(document)
            if isinstance(document, ResultDocument):
                to_result(document, RunId("r"), {})
        except BridgeError:
            continue
    whole, pieces = StateLines(), StateLines()
    cut = rng.randint(0, len(data))
    assert whole.feed(data) == pieces.feed(data[:cut]) + pieces.feed(data[cut:])


def read_archive(rng: random.Random, data: bytes) -> None:
    folder = Path(tempfile.mkdtemp(prefix="pocketbuild-fuzz-"))
    try:
        (folder / "a.zip").write_bytes(data)
        try:
            unpack(folder / "a.zip", folder / "out", UnpackLimits(max_entries=100, max_size_bytes=1 << 20))
        except WorkspaceFault:
            pass
        else:
            for path in (folder / "out").rglob("*"):
                assert path.resolve().is_relative_to(folder / "out"), path
        assert {path.name for path in folder.iterdir()} <= {"a.zip", "out"}
    finally:
        shutil.rmtree(folder)


def read_texts(rng: random.Random, data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    classify(
        Evidence(frozenset({7}), "p", rng.choice([None, 1, 137]), logcat=text, exit_info=text, log_tail=text)
    )
    check_project(
        frozenset({"settings.gradle"}), {"settings.gradle": text, "a/build.gradle": text}, ".", Needs()
    )


def seeds() -> list[tuple[Callable[[random.Random, bytes], None], bytes]]:
    archive = BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as out:
        for name, content, mode in (
            ("d/x", b"hello" * 9, 0o100644),
            ("l", b"d/x", 0o120777),
            ("e/", b"", 0o40755),
        ):
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            out.writestr(info, content)
    documents = [json.dumps(document).encode() for document in (STATUS, RESULT, CONTRACT)]
    texts = [LOGCAT, SCRIPT]
    return [
        *((read_documents, document) for document in documents),
        *((read_texts, text) for text in texts),
        (read_archive, archive.getvalue()),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    options = parser.parse_args()
    rng, tried, until = random.Random(options.seed), 0, time.monotonic() + coverage.share(options.seconds)
    choices = seeds()
    while time.monotonic() < until:
        read, seed = rng.choice(choices)
        data = mutate(rng, seed)
        try:
            read(rng, data)
        except Exception:  # noqa: BLE001 - any fault at all is what is looked for
            traceback.print_exc()
            failed = Path(f"fuzz-handoff-{options.seed}-{tried}.bin")
            failed.write_bytes(data)
            print(f"{read.__name__} failed on {failed}, input {tried} of seed {options.seed}")
            return 1
        tried += 1
    print(f"{tried} inputs of seed {options.seed}: each gave a value or a named fault")

    def check(data: bytes) -> None:
        if data:
            read, _ = choices[data[0] % len(choices)]
            read(random.Random(options.seed), data[1:])

    starts = (bytes([number]) + seed for number, (_, seed) in enumerate(choices))
    return coverage.search(check, starts, coverage.share(options.seconds), options.seed)


if __name__ == "__main__":
    sys.exit(main())
