"""A builder prefix without a toolchain, for tests of the hand-off: a script stands where Gradle is."""

import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from builder_bridge.box import Box
from builder_bridge.box.recipe import BUILDER_PACKAGE, BUILDER_UID

FOLDERS = {
    "run_as": (f"data/data/{BUILDER_PACKAGE}/files", BUILDER_UID),
    "shell_dir": ("data/local/tmp/pocketbuild", 2000),
}
FAKE_GRADLE = Path(__file__).parent / "cases/bridge/gradle"
ENVIRONMENT = "HOME=${PREFIX%/*}/home PATH=$PREFIX/bin:/system/bin\nexport HOME PATH\n"
CONTRACT = (
    '{"contract": 1, "id": "fake", "jdk": "21.0.1", "gradle": "4.4.1", "agp": ["2.2.2"], "platforms": [23]}\n'
)


def lay_fake_prefix(box: Box, routes: Sequence[str] = ("run_as", "shell_dir")) -> None:
    """Put the prefix where the routes expect it; what was there goes."""
    for route in routes:
        folder, uid = FOLDERS[route]
        shutil.rmtree(box.root / folder, ignore_errors=True)
        lay_prefix(box.root / folder, uid)


def lay_prefix(files: Path, uid: int) -> None:
    """Put a prefix `usr` and a `home` into a folder, all of a user."""
    for inside in ("usr/bin", "usr/etc", "usr/tmp", "home"):
        (files / inside).mkdir(parents=True, exist_ok=True)
    shutil.copyfile(FAKE_GRADLE, files / "usr/bin/gradle")
    (files / "usr/bin/gradle").chmod(0o755)
    (files / "usr/etc/env.sh").write_text(ENVIRONMENT)
    (files / "usr/etc/prefix.json").write_text(CONTRACT)
    for folder, folders, names in os.walk(files):
        for path in (Path(folder), *(Path(folder, name) for name in (*folders, *names))):
            with suppress(FileNotFoundError):  # a runner of before may still be tidying up
                os.chown(path, uid, uid, follow_symlinks=False)


def files_of(box: Box, route: str) -> Path:
    """Give the folder that holds the prefix, the home and the runs of a route."""
    return box.root / FOLDERS[route][0]


def starts_of(box: Box, route: str) -> list[str]:
    """Give the runs for which Gradle was started, in order; a run that is there twice was built twice."""
    started = files_of(box, route) / "home/started"
    return [line.strip(":") for line in started.read_text().split()] if started.exists() else []


def make_workspace(root: Path, **conf: object) -> Path:
    """Make a small project for the fake Gradle; `conf` becomes its `fake.conf`."""
    for path, content in {
        "settings.gradle": "include ':app'\n",
        "app/build.gradle": "apply plugin: 'com.android.application'\n",
        "app/src/a.txt": "first\n",
        "app/src/b.txt": "second\n",
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(content)
    set_conf(root, **conf)
    return root


def set_conf(root: Path, **conf: object) -> None:
    """Say how the fake Gradle is to behave in this workspace."""
    (root / "fake.conf").write_text("".join(f"{key}='{value}'\n" for key, value in conf.items()))
