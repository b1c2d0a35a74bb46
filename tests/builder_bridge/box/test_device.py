"""The box seen through adb: what a phone shows, and what it keeps from adb's user."""

import anyio
import pytest

from builder_bridge.box import Box
from tests.box.device import said, shell
from tests.box.fixtures import BoxFactory

pytestmark = [pytest.mark.anyio, pytest.mark.box]


async def test_adb_is_the_user_shell_with_the_phones_groups(tiny_box: Box) -> None:
    identity = await said(tiny_box, "id")
    assert identity.startswith("uid=2000(shell) gid=2000(shell) groups=2000(shell),")
    assert "3003(inet)" in identity


async def test_the_shell_is_mksh_and_the_tools_are_toybox(tiny_box: Box) -> None:
    assert "MIRBSD KSH" in await said(tiny_box, "echo $KSH_VERSION")
    assert await said(tiny_box, "readlink /system/bin/stat") == "/usr/bin/toybox"
    assert await said(tiny_box, "echo $((1 << 33))") == "2"  # mksh counts in 32 bits


async def test_only_a_phones_tools_are_on_the_path(tiny_box: Box) -> None:
    path = (await said(tiny_box, "echo $PATH")).split(":")
    assert "/system/bin" in path
    assert not any(folder.startswith("/usr") for folder in path)
    assert (await shell(tiny_box, "bash -c true")).exit_code == 127
    assert (await shell(tiny_box, "wget --help")).exit_code == 127


async def test_the_tools_that_debians_toybox_lacks_are_there(tiny_box: Box) -> None:
    command = "expr 1 + 1; echo a | tr a b; echo x | dd 2>/dev/null; echo 1 2 | awk '{print $2}'"
    assert await said(tiny_box, command) == "2\nb\nx\n2"
    assert await said(tiny_box, "diff /etc/group /etc/group") == ""


async def test_adbds_environment_is_a_phones(tiny_box: Box) -> None:
    environment = dict(line.split("=", 1) for line in (await said(tiny_box, "env")).splitlines())
    assert environment["TMPDIR"] == "/data/local/tmp"
    assert environment["ANDROID_DATA"] == "/data"
    assert environment["HOSTNAME"] == "box"
    assert "LD_PRELOAD" not in environment


async def test_the_shells_own_folder_is_writable_and_programs_run_from_it(tiny_box: Box) -> None:
    command = (
        "cd /data/local/tmp && cp /system/bin/toybox toyboxprobe && ./toyboxprobe echo runs; rm toyboxprobe"
    )
    assert await said(tiny_box, command) == "runs"


@pytest.mark.parametrize(
    "folder", ["/", "/data", "/data/local", "/data/data", "/data/app", "/system", "/tmp", "/usr"]
)
async def test_elsewhere_the_shell_may_not_write(tiny_box: Box, folder: str) -> None:
    assert (await shell(tiny_box, f"touch {folder}/x")).exit_code != 0


async def test_apps_data_is_closed_to_the_shell(tiny_box: Box) -> None:
    assert (await shell(tiny_box, "ls /data/data/org.pocketbuild.builder")).exit_code == 1
    assert (await shell(tiny_box, "ls /data/data")).exit_code == 1


async def test_nothing_runs_from_shared_storage(tiny_box: Box) -> None:
    result = await shell(
        tiny_box, "cd /sdcard && cp /system/bin/toybox t && ./t true; code=$?; rm t; exit $code"
    )
    assert result.exit_code == 126


async def test_properties_are_shown_as_a_phone_shows_them(tiny_box: Box) -> None:
    assert await said(tiny_box, "getprop ro.build.version.sdk") == "34"
    assert await said(tiny_box, "getprop ro.serialno") == tiny_box.name
    assert await said(tiny_box, "getprop no.such.property") == ""
    assert await said(tiny_box, "getprop no.such.property spare") == "spare"
    assert "[sys.boot_completed]: [1]" in (await said(tiny_box, "getprop")).splitlines()


async def test_packages_are_listed_with_their_flags(tiny_box: Box) -> None:
    assert (
        await said(tiny_box, "pm path org.pocketbuild.builder")
        == "package:/data/app/org.pocketbuild.builder/base.apk"
    )
    assert (await shell(tiny_box, "pm path org.nobody")).exit_code == 1
    assert "DEBUGGABLE" in await said(tiny_box, "dumpsys package org.pocketbuild.builder")
    assert "DEBUGGABLE" not in await said(tiny_box, "dumpsys package org.pocketbuild.release")
    assert await said(tiny_box, "dumpsys package org.nobody") == "Unable to find package: org.nobody"


async def test_tests_can_set_what_sensors_and_settings_show(box_factory: BoxFactory) -> None:
    box = box_factory()
    assert "  level: 87" in (await said(box, "dumpsys battery")).splitlines()
    box.set_value("battery.level", 12)
    box.set_value("battery.temperature", 455)
    box.set_value("thermal.status", 3)
    box.set_value("user.current", 10)
    box.set_value("page_size", 16384)
    box.set_value("settings.global.stay_on_while_plugged_in", 3)
    battery = (await said(box, "dumpsys battery")).splitlines()
    assert {"  level: 12", "  temperature: 455"} <= set(battery)
    assert "Thermal Status: 3" in await said(box, "dumpsys thermalservice")
    assert await said(box, "am get-current-user") == "10"
    assert await said(box, "getconf PAGE_SIZE") == "16384"
    assert await said(box, "settings get global stay_on_while_plugged_in") == "3"
    assert await said(box, "settings get global adb_enabled") == "null"
    box.set_report("logcat", "11-30 12:00:00.000  1000  1000 I lowmemorykiller: Kill 'java' (4711)\n")
    assert "lowmemorykiller" in await said(box, "logcat -d -b main,events -t 100")
    box.set_report("exit-info", "reason=9 (LOW_MEMORY)\n")
    assert "LOW_MEMORY" in await said(box, "dumpsys activity exit-info org.pocketbuild.builder")
    box.set_property("ro.boot.disable_runas", "true")
    assert await said(box, "getprop ro.boot.disable_runas") == "true"


async def test_bytes_pass_unchanged_in_both_directions(tiny_box: Box) -> None:
    every_byte = bytes(range(256)) * 1000
    result = await shell(tiny_box, "cat", every_byte)
    assert result.stdout == every_byte


async def test_orphans_leave_no_zombies(tiny_box: Box) -> None:
    await said(tiny_box, "(true &) ; (setsid sleep 0 &) ; sleep 0.2")
    zombies = ["unseen"]
    with anyio.move_on_after(60):  # whoever has just ended is a zombie for a moment
        while zombies:
            states = await said(tiny_box, "ps -A -o STAT,NAME")
            zombies = [line for line in states.splitlines() if line.startswith("Z")]
    assert zombies == []
