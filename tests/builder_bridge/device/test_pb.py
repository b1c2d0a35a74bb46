"""The phone's runner itself, called by adb's shell as a hostile host would call it."""

import hashlib
import json
import shutil
import subprocess
import sys
import zipfile
from collections.abc import AsyncIterator, Callable
from io import BytesIO
from pathlib import Path

import pytest

from builder_bridge.adb import connect, shell
from builder_bridge.box import Box
from builder_bridge.bridge import open_bridge
from builder_bridge.build import RunId
from tests.fake_prefix import files_of, starts_of

pytestmark = pytest.mark.anyio
DEVICE = Path(__file__).parent.parent.parent.parent / "builder_bridge/device"
PB = "/data/local/tmp/pocketbuild/usr/bin/pb"
DIGEST = "d" * 64
Call = Callable[..., "object"]


@pytest.fixture
async def call(fake_box: Box, tmp_path: Path) -> AsyncIterator[Call]:
    async with connect(fake_box.serial) as adb:
        async with open_bridge(adb, ("shell_dir",), memory=tmp_path):
            pass

        async def answer(line: str, stdin: bytes = b"") -> dict[str, object]:
            result = await shell.run(adb, f"{PB} {line}", stdin)
            assert result.stdout.count(b"\n") == 1, result
            return json.loads(result.stdout)

        yield answer


@pytest.mark.parametrize("name", ["pb", "pb-work", "pb-info", "pb-seed"])
def test_the_runner_is_plain_posix_shell(name: str) -> None:
    beside = Path(sys.executable).parent
    program = shutil.which("shellcheck", path=beside) or shutil.which("shellcheck")
    assert program is not None
    checked = subprocess.run([program, "--shell=sh", DEVICE / name], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout


@pytest.mark.box
@pytest.mark.parametrize(
    "run", ["../x", "'a b'", "-rf", "A", "'$(id)'", "a.b", "a/b", "''", "x" * 41, "'*'", "'a;b'"]
)
async def test_run_ids_that_are_none_are_refused(call: Call, fake_box: Box, run: str) -> None:
    for line in (
        f"open {run} p {DIGEST}",
        f"status {run}",
        f"cancel {run} now",
        f"start {run}",
        f"have {run}",
    ):
        assert (await call(line))["error"] == "bad_run_id"


@pytest.mark.box
@pytest.mark.parametrize(
    "line",
    ["", "nonsense", "open r p", "open r ../p " + DIGEST, "open r p abc", "open r p " + "D" * 64, "gc x",
     "recv r 1 2 3", "status", "work"],
)  # fmt: skip
async def test_calls_that_are_none_are_refused_with_a_code(call: Call, line: str) -> None:
    assert str((await call(line))["error"]).startswith(("bad_", "unknown_run"))


def archive(*entries: tuple[str, bytes, int]) -> bytes:
    out = BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as target:
        for name, content, mode in entries:
            info = zipfile.ZipInfo("placeholder")
            info.filename = info.orig_filename = name
            info.create_system, info.compress_type = 3, zipfile.ZIP_DEFLATED
            info.external_attr = mode << 16
            target.writestr(info, content)
    return out.getvalue()


FILE, LINK = 0o100644, 0o120777
HOSTILE = {
    "dot dot": ([("../../../outside", b"x", FILE)], {}),
    "absolute": ([("/data/local/tmp/outside", b"x", FILE)], {}),
    "link outside": ([("l", b"../../../../home", LINK)], {}),
    "link absolute": ([("l", b"/data/local/tmp", LINK)], {}),
    "through a link": ([("l", b"/data/local/tmp", LINK), ("l/outside", b"x", FILE)], {}),
    "more entries": ([("a", b"x", FILE), ("b", b"x", FILE)], {"count": 1}),
    "more bytes": ([("a", b"\0" * 5_000_000, FILE)], {"size_kb": 1000}),
    "no archive": (None, {}),
}


@pytest.mark.box
@pytest.mark.parametrize("name", HOSTILE)
async def test_a_hostile_archive_never_gets_to_gradle_or_outside(
    call: Call, fake_box: Box, new_run: Callable[[], RunId], name: str
) -> None:
    entries, claims = HOSTILE[name]
    pack = archive(*entries) if entries is not None else b"PK\3\4 not really"
    claims = {"count": len(entries or [()]), "size_kb": 9000} | claims
    run, digest = new_run(), hashlib.sha256(pack).hexdigest()
    await call(f"open {run} hostile {DIGEST}")
    assert (await call(f"recv {run} {len(pack)} {digest} 0", pack))["complete"] is True
    plan = f"place hostile\ncontent {DIGEST}\nmode archive\n"
    plan += f"count {claims['count']}\nsize_kb {claims['size_kb']}\n"
    await call(f"start {run}", f"{plan}name =w\ndir =.\nend\n".encode())
    state = await finished(call, run)
    assert state["state"] == {"state": "failed", "log_size": "0"}
    assert run not in starts_of(fake_box, "shell_dir")
    assert not list((fake_box.root / "data/local/tmp").rglob("outside"))


@pytest.mark.box
@pytest.mark.parametrize(
    "edit",
    [
        "file =../../../outside {d} 644 -",
        "file =/data/local/tmp/outside {d} 644 -",
        "file =\\0056\\0056/\\0056\\0056/outside {d} 644 -",
        "link =l =../../outside",
        "link =l =/data",
        "drop =../../../usr/bin/gradle -",
    ],
)
async def test_hostile_edits_are_refused(
    call: Call, fake_box: Box, new_run: Callable[[], RunId], edit: str
) -> None:
    content = b"x"
    digest = hashlib.sha256(content).hexdigest()
    blobs = files_of(fake_box, "shell_dir") / "pocketbuild"
    run, pack = new_run(), archive((digest, content, FILE))
    await call(f"open {run} edited {DIGEST}")
    tree = blobs / "trees/edited"
    tree.mkdir(exist_ok=True)
    shutil.chown(tree, 2000, 2000)
    (blobs / "trees/edited.content").write_text(DIGEST + "\n")
    shutil.chown(blobs / "trees/edited.content", 2000, 2000)
    await call(f"recv {run} {len(pack)} {hashlib.sha256(pack).hexdigest()} 0", pack)
    plan = f"place edited\ncontent {DIGEST}\nmode delta\nname =w\ndir =.\n{edit.format(d=digest)}\nend\n"
    await call(f"start {run}", plan.encode())
    assert (await finished(call, run))["state"] == {"state": "failed", "log_size": "0"}
    assert (files_of(fake_box, "shell_dir") / "usr/bin/gradle").exists()
    assert run not in starts_of(fake_box, "shell_dir")


@pytest.mark.box
@pytest.mark.parametrize(
    "plan", [b"", b"end\n", b"\0\1\2", b"place p\ncontent x\nend\n", b"place ../x\nend\n"]
)
async def test_a_plan_that_is_none_ends_in_a_verdict(
    call: Call, new_run: Callable[[], RunId], plan: bytes
) -> None:
    run = new_run()
    await call(f"open {run} p {DIGEST}")
    await call(f"start {run}", plan)
    assert (await finished(call, run))["state"] == {"state": "failed", "log_size": "0"}


@pytest.mark.box
async def test_an_upload_goes_on_where_it_was_cut_and_a_damaged_one_is_thrown_away(
    call: Call, new_run: Callable[[], RunId]
) -> None:
    run, pack = new_run(), bytes(range(256)) * 100
    digest = hashlib.sha256(pack).hexdigest()
    await call(f"open {run} p {DIGEST}")
    line = f"recv {run} {len(pack)} {digest}"
    assert (await call(f"{line} 0", pack[:1000]))["received"] == "1000"
    assert (await call(f"{line} 500", pack[500:]))["received"] == "1000"
    assert (await call(f"{line} 1000", b"?" * (len(pack) - 1000)))["error"] == "transfer_digest"
    assert (await call(f"{line} 0", pack[:2000]))["received"] == "2000"
    assert (await call(f"{line} 2000", pack[2000:]))["complete"] is True
    assert (await call(f"{line} 0", pack))["complete"] is True


HOSTILE_SEEDS = {
    "dot dot": [("../../outside", b"x", FILE)],
    "dot dot inside": [("org/../../../outside", b"x", FILE)],
    "absolute": [("/data/local/tmp/outside", b"x", FILE)],
    "hidden": [("org/.hidden/outside", b"x", FILE)],
    "an option": [("-rf/outside", b"x", FILE)],
    "shell": [("org/$(id)/outside", b"x", FILE)],
    "line": [("org/a\n/outside", b"x", FILE)],
    "link": [("org/l", b"/data/local/tmp", LINK)],
    "through a link": [("org/l", b"/data/local/tmp", LINK), ("org/l/outside", b"x", FILE)],
    "bomb": [("org/a", b"\0" * 5_000_000, FILE)],
    "none": None,
}


@pytest.mark.box
@pytest.mark.parametrize("name", HOSTILE_SEEDS)
async def test_hostile_artifacts_never_get_into_the_offline_repository(
    call: Call, fake_box: Box, name: str
) -> None:
    entries = HOSTILE_SEEDS[name]
    pack = archive(*entries) if entries is not None else b"PK\3\4 not really"
    line = f"seed {len(pack)} {hashlib.sha256(pack).hexdigest()} {len(entries or [()])} 1000"
    assert str((await call(line, pack))["error"]).startswith(("bad_argument", "transfer_digest"))
    assert not list((fake_box.root / "data/local/tmp").rglob("outside"))
    seeds = files_of(fake_box, "shell_dir") / "usr/share/maven"
    assert not (seeds / "org/l").is_symlink()
    assert not (seeds / "org/a").exists()
    assert not list((files_of(fake_box, "shell_dir") / "usr/tmp").glob("seed.*"))


@pytest.mark.box
@pytest.mark.parametrize("line", ["../x", "/etc/passwd", "-c", "a/../b", "a//b", "a b", "$(id)", "a/"])
async def test_places_that_are_none_are_not_looked_at(call: Call, line: str) -> None:
    assert (await call("seeded", f"{DIGEST} {line}\n".encode()))["error"] == "bad_argument"


@pytest.mark.box
async def test_artifacts_that_arrive_short_are_thrown_away(call: Call) -> None:
    pack = archive(("org/short/a", b"x" * 1000, FILE))
    line = f"seed {len(pack)} {hashlib.sha256(pack).hexdigest()} 1 10"
    assert (await call(line, pack[:-1]))["error"] == "transfer_digest"
    wanted = f"{hashlib.sha256(b'x' * 1000).hexdigest()} org/short/a\n".encode()
    assert (await call("seeded", wanted))["present"] == []
    assert (await call(line, pack))["ok"] is True
    assert (await call("seeded", wanted))["present"] == ["org/short/a"]
    assert (await call("seeded", f"{DIGEST} org/short/a\n".encode()))["present"] == []


async def finished(call: Call, run: str) -> dict[str, object]:
    """Give the run's last status; the runner of a refused plan takes moments."""
    for _ in range(200):
        status = await call(f"status {run}")
        if not status["alive"]:
            return status
    raise AssertionError(f"run {run} does not end: {status}")
