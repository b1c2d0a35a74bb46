"""The phone's runner itself, called by adb's shell as a hostile host would call it."""

import hashlib
import json
import os
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
from tests.orchestrator.waiting import eventually

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


@pytest.mark.parametrize("name", ["pb", "pb-work", "pb-info", "pb-seed", "pb-secrets"])
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
        f"start {run} p none {DIGEST}",
        f"begin {run} p {DIGEST} {DIGEST} {DIGEST}",
        f"have {run}",
    ):
        assert (await call(line))["error"] == "bad_run_id"


@pytest.mark.box
@pytest.mark.parametrize(
    "line",
    ["", "nonsense", "open r p", "open r ../p " + DIGEST, "open r p abc", "open r p " + "D" * 64, "gc x",
     "recv r 1 2 3", "status", "work", "start r", "start r p none x",
     f"begin r ../p {DIGEST} {DIGEST} {DIGEST}", f"begin r p {DIGEST} {DIGEST} {DIGEST[1:]}",
     f"begin r p {DIGEST} none {DIGEST}"],
)  # fmt: skip
async def test_calls_that_are_none_are_refused_with_a_code(call: Call, line: str) -> None:
    assert str((await call(line))["error"]).startswith(("bad_", "unknown_run"))


async def start(call: Call, run: str, place: str, plan: bytes, content: str = "none") -> dict[str, object]:
    return await call(f"start {run} {place} {content} {hashlib.sha256(plan).hexdigest()}", plan)


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


def has_outside(box: Box) -> bool:
    """Say whether anything is called `outside`; what the phone removes meanwhile is passed over."""
    places = os.walk(box.root / "data/local/tmp")
    return any("outside" in (*folders, *files) for _, folders, files in places)


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
    await start(call, run, "hostile", f"{plan}name =w\ndir =.\nend\n".encode())
    state = await finished(call, run)
    assert state["state"] == {"state": "failed", "log_size": "0"}
    assert run not in starts_of(fake_box, "shell_dir")
    assert not has_outside(fake_box)


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
    run, pack = new_run(), archive((digest, content, FILE))
    await call(f"open {run} edited {DIGEST}")
    lay_tree(fake_box, "edited")
    await call(f"recv {run} {len(pack)} {hashlib.sha256(pack).hexdigest()} 0", pack)
    edits = edit.format(d=digest)
    plan = f"place edited\ncontent {DIGEST}\nmode delta\npack yes\nname =w\ndir =.\n{edits}\nend\n"
    await start(call, run, "edited", plan.encode(), DIGEST)
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
    await start(call, run, "p", plan)
    assert (await finished(call, run))["state"] == {"state": "failed", "log_size": "0"}


@pytest.mark.box
@pytest.mark.parametrize("verb", ["start", "begin"])
async def test_a_plan_that_was_cut_is_never_carried_out(
    call: Call, fake_box: Box, new_run: Callable[[], RunId], verb: str
) -> None:
    run, place = new_run(), f"cut-{verb}"
    lay_tree(fake_box, place)
    plan = f"place {place}\ncontent {DIGEST}\nmode same\nname =w\ndir =.\nend\n".encode()
    asked = f"open {run} {place} {DIGEST}"
    assert (await call(asked))["content"] == DIGEST
    given = f"{DIGEST} {hashlib.sha256(plan).hexdigest()}"
    line = f"start {run} {place} {given}" if verb == "start" else f"begin {run} {place} {DIGEST} {given}"
    for size in (0, 10, len(plan) - 1):
        assert (await call(line, plan[:size]))["error"] == "transfer_digest"
        assert (await call(asked))["pid"] == 0
    assert (await call(line, plan))["pid"] != 0
    await finished(call, run)
    assert starts_of(fake_box, "shell_dir").count(run) == 1


@pytest.mark.box
async def test_a_plan_for_another_content_than_lies_there_starts_nothing(
    call: Call, fake_box: Box, new_run: Callable[[], RunId]
) -> None:
    run, other = new_run(), "e" * 64
    lay_tree(fake_box, "stale")
    plan = f"place stale\ncontent {DIGEST}\nmode same\nname =w\ndir =.\nend\n".encode()
    given = f"{other} {hashlib.sha256(plan).hexdigest()}"
    began = await call(f"begin {run} stale {DIGEST} {given}", plan)
    assert (began["pid"], began["content"]) == (0, DIGEST)
    assert (await start(call, run, "stale", plan, other))["error"] == "stale_content"
    assert (await call(f"status {run}"))["pid"] == 0


@pytest.mark.box
async def test_what_a_build_did_to_a_workspace_is_told_before_the_next_begins(
    call: Call, fake_box: Box, new_run: Callable[[], RunId]
) -> None:
    run = new_run()
    tree = lay_tree(fake_box, "told")
    for path in ("a/b/one", "a/build/made", 'a/od"d \\ name', "c/two"):
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_text("x")
    now = (tree.parent / "told.content").stat().st_mtime
    for path in (tree, *tree.rglob("*")):
        os.utime(path, (now - 9, now - 9))
    given = f"{DIGEST} {hashlib.sha256(b'').hexdigest()}"
    assert (await call(f"open {run} told {DIGEST}")).get("touched") is None
    (tree / "a/b/one").unlink()
    (tree / "a/build/more").write_text("x")
    (tree / 'a/od"d \\ name').write_text("y")
    (tree / "c/link").symlink_to("two")
    for path in ("a/b", "c"):
        os.utime(tree / path, (now + 9, now + 9))
    os.utime(tree / 'a/od"d \\ name', (now + 9, now + 9))
    os.utime(tree / "c/link", (now + 9, now + 9), follow_symlinks=False)
    told = await call(f"begin {run} told {DIGEST} {given}", b"")
    assert told["pid"] == 0
    assert sorted(told["touched"]) == ['a/od"d \\ name', "c/link"]  # type: ignore[call-overload]
    assert sorted(told["folders"]) == ["a/b", "c"]  # type: ignore[call-overload]
    assert sorted(told["names"]) == ["c/link", "c/two"]  # type: ignore[call-overload]
    assert told["is_known"] is True


def lay_tree(box: Box, place: str) -> Path:
    """Put an empty workspace where the phone keeps them, as if it had been handed over."""
    trees = files_of(box, "shell_dir") / "pocketbuild/trees"
    shutil.rmtree(trees / place, ignore_errors=True)
    (trees / place).mkdir(parents=True)
    (trees / f"{place}.content").write_text(DIGEST + "\n")
    for path in (trees.parent, trees, trees / place, trees / f"{place}.content"):
        shutil.chown(path, 2000, 2000)
    return trees / place


@pytest.mark.box
async def test_runs_that_were_never_started_go_after_a_day(
    call: Call, fake_box: Box, new_run: Callable[[], RunId]
) -> None:
    old, fresh, later = new_run(), new_run(), new_run()
    runs = files_of(fake_box, "shell_dir") / "pocketbuild/runs"
    for run in (old, fresh):
        await call(f"open {run} p {DIGEST}")
        await call(f"recv {run} 1000 {DIGEST} 0", b"a part")
    for path in (runs / old, *(runs / old).rglob("*")):
        os.utime(path, (1_700_000_000, 1_700_000_000))
    await call(f"open {later} p {DIGEST}")
    assert not (runs / old).exists()
    assert (runs / fresh / "upload.part").exists()


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


@pytest.mark.box
async def test_an_upload_whose_connection_went_silent_gives_way_to_the_next_one(
    call: Call, fake_box: Box, new_run: Callable[[], RunId]
) -> None:
    run, pack = new_run(), bytes(range(256)) * 100
    digest = hashlib.sha256(pack).hexdigest()
    await call(f"open {run} p {DIGEST}")
    line = f"recv {run} {len(pack)} {digest}"
    async with connect(fake_box.serial) as silent, shell.spawn(silent, f"exec {PB} {line} 0") as held:
        await held.send_stdin(pack[:1000])

        async def has_arrived() -> bool:
            return (await call(f"open {run} p {DIGEST}"))["received"] == "1000"

        await eventually(has_arrived)
        assert (await call(f"{line} 0", pack))["received"] == "1000"
        assert (await call(f"{line} 1000", pack[1000:]))["complete"] is True


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
    assert not has_outside(fake_box)
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
