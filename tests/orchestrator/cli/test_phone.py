"""`pocketbuild phone` against a fake phone, as a user calls it."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import anyio
import anyio.from_thread
import pytest

from builder_bridge.adb.announcements import Service
from tests.box.fixtures import BoxFactory
from tests.fake_prefix import lay_fake_prefix
from tests.fakes_adb import FakePhone, open_phone
from tests.phone_network import PHONE_END, PhoneNetwork, run_on_network
from tests.ports import port_to_listen_on, port_where_nobody_listens

Pocketbuild = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def phone() -> Iterator[FakePhone]:
    with (
        anyio.from_thread.start_blocking_portal() as portal,
        portal.wrap_async_context_manager(open_phone()) as fake,
    ):
        yield fake


@pytest.fixture
def pocketbuild(tmp_path: Path) -> Pocketbuild:
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("ADB", "ANDROID"))
    }
    environment |= {
        "HOME": str(tmp_path),
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "ANDROID_ADB_SERVER_PORT": str(port_to_listen_on()),
        "PATH": "/nonexistent",
    }

    def run(*arguments: str, stdin: str = "", **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "orchestrator", "phone", *arguments],
            input=stdin,
            env=environment | more,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )

    return run


def test_a_connected_phone_is_remembered_by_its_serial_not_its_address(
    phone: FakePhone, pocketbuild: Pocketbuild
) -> None:
    connected = pocketbuild("connect", phone.address, "--json")
    assert json.loads(connected.stdout) == {"serial": "FAKE0001", "model": "Fake", "key": None}
    [seen] = json.loads(pocketbuild("list", "--listen", "0", "--json").stdout)["phones"]
    assert (seen["serial"], seen["state"], seen["address"]) == ("FAKE0001", "device", phone.address)
    by_serial = pocketbuild("shell", "--phone", "FAKE0001", "echo found")
    assert (by_serial.returncode, by_serial.stdout) == (0, "found\n")
    phone.serial = "OTHER"
    other = pocketbuild("shell", "--phone", "FAKE0001", "echo found")
    assert (other.returncode, other.stdout) == (4, "")
    assert "OTHER answers there" in other.stderr


def test_the_only_phone_that_was_reached_before_is_meant_where_none_is_named(
    phone: FakePhone, pocketbuild: Pocketbuild
) -> None:
    assert "No phone was found" in pocketbuild("info").stderr
    assert pocketbuild("connect", phone.address).returncode == 0
    assert json.loads(pocketbuild("info", "--json").stdout)["serial"] == "FAKE0001"
    forgotten = pocketbuild("forget", "FAKE0001")
    assert (forgotten.returncode, forgotten.stdout) == (0, "FAKE0001 is forgotten\n"), forgotten.stderr
    assert pocketbuild("info").returncode == 4


def test_a_remembered_phone_that_is_away_is_listed_with_the_reason(
    phone: FakePhone, pocketbuild: Pocketbuild
) -> None:
    assert pocketbuild("connect", phone.address).returncode == 0
    phone.wants_auth = True
    [seen] = json.loads(pocketbuild("list", "--listen", "0", "--json").stdout)["phones"]
    assert seen["state"] == "device_unauthorized"


def test_a_command_has_its_own_streams_and_exit_code(phone: FakePhone, pocketbuild: Pocketbuild) -> None:
    done = pocketbuild("shell", "--phone", phone.address, "cat; echo err >&2; exit 9", stdin="in")
    assert (done.returncode, done.stdout, done.stderr) == (9, "in", "err\n")


def test_several_words_are_a_program_and_its_arguments(phone: FakePhone, pocketbuild: Pocketbuild) -> None:
    done = pocketbuild("shell", "--phone", phone.address, "printf", "%s|", "a b", "$HOME;", "'")
    assert done.stdout == "a b|$HOME;|'|"


def test_a_command_as_json_is_one_document(phone: FakePhone, pocketbuild: Pocketbuild) -> None:
    done = pocketbuild("shell", "--phone", phone.address, "--json", "echo out; exit 3")
    assert json.loads(done.stdout) == {"exit_code": 3, "stdout": "out\n", "stderr": ""}
    assert done.returncode == 3


def test_info_tells_what_the_phone_is(phone: FakePhone, pocketbuild: Pocketbuild) -> None:
    told = json.loads(pocketbuild("info", phone.address, "--json").stdout)
    assert told["serial"] == "FAKE0001"
    assert told["line_mb_per_s"] > 0
    assert "shell_v2" in told["features"]


def test_a_phone_out_of_reach_is_told_with_the_next_step(pocketbuild: Pocketbuild) -> None:
    with port_where_nobody_listens() as port:
        plain = pocketbuild("info", f"127.0.0.1:{port}")
        told = pocketbuild("info", f"127.0.0.1:{port}", "--json")
    assert plain.returncode == 4
    assert "no adbd listens there" in plain.stderr
    assert "Switch on debugging" in plain.stderr
    document = json.loads(told.stdout)
    assert document["error"]["code"] == "device_refused"


def test_where_there_is_no_phone_the_list_says_how_to_get_one(pocketbuild: Pocketbuild) -> None:
    assert "pocketbuild phone connect HOST:PORT" in pocketbuild("list", "--listen", "0").stdout
    told = json.loads(pocketbuild("list", "--listen", "0", "--json").stdout)
    assert told == {"phones": [], "network": {"listened_s": 0, "trouble": None}}


def make_adb(folder: Path, script: str) -> str:
    program = folder / "adb"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return str(program)


def test_pairing_goes_through_an_adb_that_can(tmp_path: Path, pocketbuild: Pocketbuild) -> None:
    adb = make_adb(
        tmp_path,
        f"""case $1 in
        version) echo "Android Debug Bridge version 1.0.41"; echo "Version 35.0.2-12147458";;
        pair) read code; echo "$2 $code $ANDROID_ADB_SERVER_PORT" > {tmp_path}/seen
            echo "Enter pairing code: Successfully paired to $2 [guid=adb-X]";;
        kill-server) echo $ANDROID_ADB_SERVER_PORT > {tmp_path}/killed;;
        esac""",
    )
    done = pocketbuild("pair", "192.168.1.9:37099", "123456", "--json", ADB=adb)
    assert json.loads(done.stdout)["adb"] == "Successfully paired to 192.168.1.9:37099 [guid=adb-X]"
    address, code, port = (tmp_path / "seen").read_text().split()
    assert (address, code) == ("192.168.1.9:37099", "123456")
    assert (tmp_path / "killed").read_text().split() == [port], "only the server that was started is ended"
    assert port != "5037"


def test_a_refused_pairing_and_an_adb_too_old_are_told_apart(
    tmp_path: Path, pocketbuild: Pocketbuild
) -> None:
    version = 'version) echo "Version {}.0.0";;'
    refusing = make_adb(
        tmp_path, f"case $1 in {version.format(34)} pair) echo 'Failed: Wrong password'; exit 1;; esac"
    )
    refused = pocketbuild("pair", "192.168.1.9:37099", "1", ADB=refusing)
    assert refused.returncode == 4
    assert "Failed: Wrong password" in refused.stderr
    old = make_adb(tmp_path, f"case $1 in {version.format(29)} esac")
    too_old = pocketbuild("pair", "192.168.1.9:37099", "1", ADB=old)
    assert "found: " + old + " (29)" in too_old.stderr


def test_the_phone_that_waits_to_be_paired_is_found_and_of_several_none_is_guessed(
    tmp_path: Path, pocketbuild: Pocketbuild
) -> None:
    adb = make_adb(
        tmp_path,
        """case $1 in
        version) echo "Version 35.0.2";;
        pair) read code; echo "Successfully paired to $2 with $code";;
        esac""",
    )
    pairing = Service.PAIRING.value

    async def pair_when_heard(expected: str, *more: str) -> subprocess.CompletedProcess[str]:
        """Ask again where a busy machine heard too late."""
        for _ in range(10):
            done = await anyio.to_thread.run_sync(lambda: pocketbuild("pair", "123456", *more, ADB=adb))
            if expected in done.stderr:
                return done
        raise AssertionError(done.stderr)

    async def work(network: PhoneNetwork) -> None:
        await network.announce(pairing, "adb-R5CR1-aB3xYz", 41000)
        one = await pair_when_heard("waits for its code", "--json")
        assert json.loads(one.stdout) == {
            "address": f"{PHONE_END}:41000",
            "paired": True,
            "name": "adb-R5CR1-aB3xYz",
            "adb": f"Successfully paired to {PHONE_END}:41000 with 123456",
        }
        assert f"adb-R5CR1-aB3xYz waits for its code at {PHONE_END}:41000." in one.stderr
        await network.announce(pairing, "studio-\u202ex", 41001)
        several = await pair_when_heard("2 phones wait to be paired")
        assert several.returncode == 4
        assert f"{PHONE_END}:41001 (studio-\ufffdx)" in several.stderr
        assert "\u202e" not in several.stdout + several.stderr

    run_on_network(work)


def test_where_nothing_can_be_heard_the_list_and_pairing_say_why(pocketbuild: Pocketbuild) -> None:
    async def work(network: PhoneNetwork) -> None:
        network.cut()
        listed = await anyio.to_thread.run_sync(lambda: pocketbuild("list", "--json"))
        trouble = json.loads(listed.stdout)["network"]["trouble"]
        assert (listed.returncode, "No network interface" in trouble) == (0, True)
        pairing = await anyio.to_thread.run_sync(lambda: pocketbuild("pair", "123456"))
        assert (pairing.returncode, "No network interface" in pairing.stderr) == (4, True)

    run_on_network(work)


@pytest.mark.box
def test_storage_is_freed_on_a_phone_that_was_never_built_on(
    box_factory: BoxFactory, pocketbuild: Pocketbuild
) -> None:
    box = box_factory()
    lay_fake_prefix(box)
    for keep in ("10", "0"):
        freed = json.loads(pocketbuild("gc", box.serial, "--keep", keep, "--json").stdout)
        assert freed == {"serial": box.name, "removed_runs": 0, "kept_runs": 0}
