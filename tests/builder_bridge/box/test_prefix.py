"""The builder prefix in the box: the sample workspaces become signed packages on both routes."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from builder_bridge.adb import connect
from builder_bridge.adb.shell import run
from builder_bridge.box import Box
from builder_bridge.box.prefix import RUN_AS_PREFIX, SHELL_DIR_PREFIX
from tests.box.device import said

pytestmark = [pytest.mark.anyio, pytest.mark.box]
WORKSPACES = Path(__file__).parents[2] / "workspaces"
APKS = {
    "hello": {"app-debug": "package: name='org.pocketbuild.hello' versionCode='3' versionName='1.2'"},
    "greeter": {
        "app-free-debug": "package: name='org.pocketbuild.greeter.free' versionCode='12' versionName='2.4'",
        "app-paid-debug": "package: name='org.pocketbuild.greeter.paid' versionCode='12' versionName='2.4'",
    },
}
SIGNERS = {"hello": "CN=Android Debug", "greeter": "CN=Pocketbuild sample key, O=Pocketbuild"}


@dataclass(frozen=True)
class Route:
    """How a test reaches one copy of the prefix, and a folder for its projects."""

    prefix: str
    wrap: str
    projects: str

    async def run(self, box: Box, script: str, stdin: bytes = b"") -> tuple[int, str]:
        command = f"{self.wrap} /system/bin/env -i /system/bin/sh -c '. {self.prefix}/etc/env.sh && {script}'"
        async with connect(box.serial) as adb:
            result = await run(adb, command, stdin)
        return result.exit_code, (result.stdout + result.stderr).decode()


RUN_AS = Route(
    RUN_AS_PREFIX, "run-as org.pocketbuild.builder", "/data/data/org.pocketbuild.builder/files/projects"
)
SHELL_DIR = Route(SHELL_DIR_PREFIX, "", "/data/local/tmp/projects")
ROUTES = [pytest.param(RUN_AS, id="run_as"), pytest.param(SHELL_DIR, id="shell_dir")]


async def put(box: Box, route: Route, workspace: str, fault: bool) -> str:
    """Write a sample workspace into the box, with its planted fault or without; give its folder."""
    folder = f"{route.projects}/{workspace}{'-fault' if fault else ''}"
    planted = json.loads((WORKSPACES / f"{workspace}.fault.json").read_text())
    root = WORKSPACES / workspace
    for file in sorted(path for path in root.rglob("*") if path.is_file()):
        name = file.relative_to(root).as_posix()
        content = file.read_bytes()
        if fault and name == planted["path"]:
            content = content.replace(planted["find"].encode(), planted["replace"].encode())
        code, said = await route.run(
            box, f"mkdir -p {folder}/{Path(name).parent} && cat >{folder}/{name}", content
        )
        assert code == 0, said
    return folder


async def gradle(box: Box, route: Route, folder: str, *arguments: str) -> tuple[int, str]:
    always = f"$(cat {route.prefix}/etc/gradle.args)"
    return await route.run(box, f"cd {folder} && gradle {always} --offline {' '.join(arguments)}")


@pytest.mark.slow
@pytest.mark.parametrize("route", ROUTES)
async def test_sample_workspaces_become_signed_packages(agp_box: Box, route: Route) -> None:
    for workspace, apks in APKS.items():
        folder = await put(agp_box, route, workspace, fault=False)
        code, log = await gradle(agp_box, route, folder, "assembleDebug")
        assert (code, "BUILD SUCCESSFUL" in log) == (0, True), log
        assert "Passing through" not in log
        for apk, badging in apks.items():
            file = f"{folder}/app/build/outputs/apk/{apk}.apk"
            code, verified = await route.run(agp_box, f"apksigner verify --verbose --print-certs {file}")
            assert code == 0, verified
            assert "Verified using v2 scheme (APK Signature Scheme v2): true" in verified
            assert SIGNERS[workspace] in verified
            assert badging in (await route.run(agp_box, f"aapt2 dump badging {file}"))[1]
            assert (await route.run(agp_box, f"zipalign -c 4 {file}"))[0] == 0


@pytest.mark.slow
@pytest.mark.parametrize("workspace", list(APKS))
async def test_a_planted_fault_stops_the_build_in_javac(agp_box: Box, workspace: str) -> None:
    folder = await put(agp_box, RUN_AS, workspace, fault=True)
    code, log = await gradle(agp_box, RUN_AS, folder, "assembleDebug")
    assert (code, "error: cannot find symbol" in log) == (1, True), log


async def test_the_contract_says_what_is_installed(agp_box: Box) -> None:
    text = await said(agp_box, f"cat {SHELL_DIR_PREFIX}/etc/prefix.json")
    contract = json.loads(text)
    assert contract["gradle"] == "4.4.1"
    assert contract["agp"] == ["2.2.2"]
    assert contract["platforms"] == [23]
    run_as = f"run-as org.pocketbuild.builder cat {RUN_AS_PREFIX}/etc/prefix.json"
    assert await said(agp_box, run_as) == text
    tools = "java -version 2>&1; aapt2 version 2>&1; d8 --version; apksigner version"
    found = await said(agp_box, f". {SHELL_DIR_PREFIX}/etc/env.sh; {tools}")
    assert all(contract[tool] in found for tool in ("jdk", "aapt2", "d8"))


@pytest.mark.parametrize("route", ROUTES)
async def test_the_prefix_belongs_to_its_routes_user_and_keeps_what_is_set(
    agp_box: Box, route: Route
) -> None:
    code, environment = await route.run(
        agp_box, "echo $PREFIX $HOME $TMPDIR $GRADLE_USER_HOME; touch $TMPDIR/x $HOME/x"
    )
    home = route.prefix.removesuffix("usr") + "home"
    assert (code, environment.split()) == (0, [route.prefix, home, f"{route.prefix}/tmp", f"{home}/.gradle"])


@pytest.mark.parametrize("workspace", list(APKS))
async def test_a_planted_fault_has_one_place(workspace: str) -> None:
    planted = json.loads((WORKSPACES / f"{workspace}.fault.json").read_text())
    text = (WORKSPACES / workspace / planted["path"]).read_text()
    assert text.count(planted["find"]) == 1
    assert planted["replace"] not in text
