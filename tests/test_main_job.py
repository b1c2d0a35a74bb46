"""The main job, run as a newcomer runs it, and its APK held against Android's own tools."""

import hashlib
import json
import struct
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pytest

from builder_bridge.box import Box
from builder_bridge.box.shell import shell_command

ROOT = Path(__file__).parent.parent
PHONE_FILES = PurePosixPath("data/data/org.pocketbuild.builder/files")
SHARED = PurePosixPath("/data/local/tmp")

pytestmark = [pytest.mark.box, pytest.mark.slow, pytest.mark.xdist_group("agp")]


@dataclass(frozen=True, slots=True)
class MainJob:
    """What `scripts/run` left behind: its folder, what it printed, and the phone it built on."""

    out: Path
    printed: str
    box: Box

    @property
    def apk(self) -> Path:
        (apk,) = (self.out / "built").glob("*.apk")
        return apk

    def tool(self, command: str) -> subprocess.CompletedProcess[str]:
        """Run one of the device's Android tools on the APK that came back."""
        place = SHARED / "main-job.apk"
        on_device = self.box.root / place.relative_to("/")
        on_device.write_bytes(self.apk.read_bytes())
        on_device.chmod(0o644)
        line = "cd /; " + command.format(bin=SHARED / "pocketbuild/usr/bin", apk=place)
        return subprocess.run(shell_command(self.box, line), capture_output=True, text=True, check=False)


def run_main_job(box: Box, out: Path, sample: str) -> MainJob:
    where = ["--device", box.serial, "--out", out / "demo"]
    done = subprocess.run(
        [sys.executable, ROOT / "scripts/demo/demo.py", "--sample", sample, *where],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return MainJob(out / "demo", done.stdout, box)


@pytest.fixture(scope="module")
def main_job(agp_box: Box, tmp_path_factory: pytest.TempPathFactory) -> MainJob:
    return run_main_job(agp_box, tmp_path_factory.mktemp("main-job"), "hello")


def test_the_run_says_that_a_script_answered(main_job: MainJob) -> None:
    assert "recorded script" in main_job.printed


def test_the_agent_repairs_the_line_and_ends_green(main_job: MainJob) -> None:
    assert files_of(main_job.out / "workspace") == files_of(ROOT / "tests/workspaces/hello")
    assert "green" in main_job.printed


def test_the_agent_repairs_a_library_and_both_flavors_build(agp_box: Box, tmp_path: Path) -> None:
    job = run_main_job(agp_box, tmp_path, "greeter")
    assert files_of(job.out / "workspace") == files_of(ROOT / "tests/workspaces/greeter")
    made = {apk.name for apk in (job.out / "built").glob("*.apk")}
    assert made == {"app-free-debug.apk", "app-paid-debug.apk"}


def test_apksigner_accepts_the_apk(main_job: MainJob) -> None:
    assert "Verified using v2 scheme" in main_job.tool("{bin}/apksigner verify --verbose {apk}").stdout


def test_aapt2_names_the_package(main_job: MainJob) -> None:
    badging = main_job.tool("{bin}/aapt2 dump badging {apk}").stdout
    assert badging.startswith("package: name='org.pocketbuild.hello' versionCode='3' versionName='1.2'")


def test_zipalign_is_content(main_job: MainJob) -> None:
    assert main_job.tool("{bin}/zipalign -c 4 {apk}").returncode == 0


def test_the_dex_holds_the_repaired_class(main_job: MainJob) -> None:
    with zipfile.ZipFile(main_job.apk) as apk:
        dex = apk.read("classes.dex")
    package = "Lorg/pocketbuild/hello"
    assert {(f"{package}/MainActivity;", "onCreate"), (f"{package}/Daytime;", "of")} <= methods_of(dex)


def test_the_log_and_the_digests_agree_on_both_sides(main_job: MainJob) -> None:
    runs = main_job.box.root / PHONE_FILES / "pocketbuild/runs"
    log = (main_job.out / "built/build.log").read_bytes()
    # Other tests build the same sample on this phone, and may have made the same APK.
    made = [run for run in runs.iterdir() if (run / "artifacts").is_dir() and _has(run, main_job.apk)]
    (run,) = [run for run in made if (run / "build.log").read_bytes() == log]
    told = {entry["sha256"] for entry in json.loads((run / "result.json").read_text())["artifacts"]}
    assert _sha256(main_job.apk) in told


def methods_of(dex: bytes) -> set[tuple[str, str]]:
    """Read a dex file's own tables for (class descriptor, name) of each method it defines or calls."""

    def numbers(kind: str, header_offset: int, entry_bytes: int) -> list[tuple[int, ...]]:
        count, start = struct.unpack_from("<II", dex, header_offset)
        return [struct.unpack_from(kind, dex, start + entry_bytes * index) for index in range(count)]

    def string(start: int) -> str:
        while dex[start] & 0x80:
            start += 1
        return dex[start + 1 : dex.index(0, start + 1)].decode()

    strings = [string(start) for (start,) in numbers("<I", 0x38, 4)]
    types = [strings[index] for (index,) in numbers("<I", 0x40, 4)]
    return {(types[owner], strings[name]) for owner, _, name in numbers("<HHI", 0x58, 8)}


def files_of(folder: Path) -> dict[Path, bytes]:
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _has(run: Path, apk: Path) -> bool:
    return any(_sha256(made) == _sha256(apk) for made in (run / "artifacts").iterdir())


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
