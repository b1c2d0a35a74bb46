"""run-as of the box: a phone's rules, words and exit codes."""

import pytest

from builder_bridge.box import Box
from tests.box.device import said, shell
from tests.box.fixtures import BoxFactory

pytestmark = [pytest.mark.anyio, pytest.mark.box]
BUILDER = "org.pocketbuild.builder"


async def test_a_debuggable_packages_user_works_in_its_data_folder(tiny_box: Box) -> None:
    command = (
        f"run-as {BUILDER} sh -c 'id -u; id -g; pwd; echo $HOME $USER $SHELL; touch files/x && rm files/x'"
    )
    lines = (await said(tiny_box, command)).splitlines()
    folder = f"/data/user/0/{BUILDER}"
    assert lines == ["10123", "10123", folder, f"{folder} u0_a123 /system/bin/sh"]


async def test_the_prefix_is_the_same_by_both_names_of_the_data_folder(tiny_box: Box) -> None:
    command = f"run-as {BUILDER} sh -c 'stat -c %i /data/data/{BUILDER} /data/user/0/{BUILDER}'"
    first, second = (await said(tiny_box, command)).splitlines()
    assert first == second


async def test_the_rest_of_the_environment_is_inherited_with_its_trap(tiny_box: Box) -> None:
    command = f"export MARK=here IFS=x; run-as {BUILDER} env"
    environment = dict(line.split("=", 1) for line in (await said(tiny_box, command)).splitlines())
    assert environment["MARK"] == "here"
    assert environment["TMPDIR"] == "/data/local/tmp"
    assert "IFS" not in environment
    assert (await shell(tiny_box, f"run-as {BUILDER} touch /data/local/tmp/x")).exit_code == 1


@pytest.mark.parametrize(
    ("arguments", "stderr"),
    [
        ("org.nobody id", "run-as: unknown package: org.nobody\n"),
        ("org.pocketbuild.release id", "run-as: package not debuggable: org.pocketbuild.release\n"),
        (f"{BUILDER} no-such-tool", "run-as: exec failed for no-such-tool: No such file or directory\n"),
        (f"{BUILDER} --user 10 id", "run-as: couldn't stat /data/user/10: No such file or directory\n"),
        (f"{BUILDER} --user -1 id", "run-as: negative user id: -1\n"),
        ("", "run-as: usage: run-as <package-name> [--user <uid>] <command> [<args>]\n\n"),
    ],
)
async def test_a_refusal_uses_a_phones_words(tiny_box: Box, arguments: str, stderr: str) -> None:
    for program in ("run-as", "/system/bin/run-as"):
        result = await shell(tiny_box, f"{program} {arguments}")
        assert (result.exit_code, result.stdout, result.stderr.decode()) == (1, b"", stderr)


async def test_the_commands_exit_code_and_streams_pass_through(tiny_box: Box) -> None:
    result = await shell(tiny_box, f"run-as {BUILDER} sh -c 'cat; echo no >&2; exit 42'", b"\x00\r\n\xff")
    assert (result.exit_code, result.stdout, result.stderr) == (42, b"\x00\r\n\xff", b"no\n")


async def test_an_apps_user_may_not_become_another(tiny_box: Box) -> None:
    result = await shell(tiny_box, f"run-as {BUILDER} run-as {BUILDER} id")
    assert result.exit_code == 1
    assert b"only 'shell' or 'root' users can run this program" in result.stderr or b"denied" in result.stderr


async def test_a_phone_may_have_run_as_switched_off(box_factory: BoxFactory) -> None:
    box = box_factory()
    box.set_property("ro.boot.disable_runas", "true")
    result = await shell(box, f"run-as {BUILDER} id")
    assert (result.exit_code, result.stderr) == (
        1,
        b"run-as: run-as is disabled from the kernel commandline\n",
    )


async def test_a_data_folder_open_to_others_is_refused(box_factory: BoxFactory) -> None:
    box = box_factory()
    await said(box, f"run-as {BUILDER} chmod 755 .")
    result = await shell(box, f"run-as {BUILDER} id")
    assert result.exit_code == 1
    assert b"readable or writable by others: 40755" in result.stderr
