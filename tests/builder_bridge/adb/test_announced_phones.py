"""A phone with wireless debugging (real adbd, real multicast) is found by its serial number alone."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

import anyio
import pytest

from builder_bridge.adb import connect, shell
from builder_bridge.adb.announcements import Service
from builder_bridge.adb.keys import AdbKey, make_key
from builder_bridge.adb.known_phones import KnownPhone, load_known_phones, remember_phone
from builder_bridge.adb.phones import look_for_phones
from builder_bridge.box import Box, Mode
from builder_bridge.box.network import free_loopback_port
from builder_bridge.box.owner import allow_key, forget_keys
from builder_bridge.errors import PhoneChanged, PhoneUnavailable
from orchestrator.engine.bridges import opening_phones
from tests.box.fixtures import BoxFactory
from tests.fake_prefix import lay_fake_prefix
from tests.phone_network import PHONE_END, PhoneNetwork, run_on_network

pytestmark = pytest.mark.box
CONNECT = Service.CONNECT.value
NOBODY_LISTENS = 9
ATTEMPTS = 20
"""A busy machine may hear a phone later than a person would like to wait."""
T = TypeVar("T")


@pytest.fixture
def key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AdbKey:
    """A key of this host, whose remembered phones are the test's own, too."""
    monkeypatch.setenv("ADB_VENDOR_KEYS", str(tmp_path / "adbkey"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("ANDROID_ADB_SERVER_PORT", str(free_loopback_port()))
    for name in ("ADB_SERVER_SOCKET", "ANDROID_SERIAL"):
        monkeypatch.delenv(name, raising=False)
    return make_key(tmp_path / "adbkey")


def test_wireless_debugging_is_found_paired_and_found_again(box_factory: BoxFactory, key: AdbKey) -> None:
    box = box_factory(mode=Mode.TLS, mtu_1500=True)
    lay_fake_prefix(box, ["shell_dir"])
    forget_keys(box)
    address = f"{PHONE_END}:{box.port}"

    async def work(network: PhoneNetwork) -> None:
        await network.announce(CONNECT, f"adb-{box.name}-aB3xYz", box.port)
        await is_seen(box.name, "mdns", address, "device_not_paired")
        allow_key(box, key.public_key.decode())
        await is_seen(box.name, "mdns", address, "device")
        await finds_it_where_it_is(box, key, address)
        await a_service_finds_it(box, address)
        await no_other_phone_is_taken_for_it(network, box)

    run_on_network(work, box)


async def is_seen(serial: str, *expected: str) -> None:
    """Look around until the phone is there as expected: its way, its address, its state."""
    for _ in range(ATTEMPTS):
        phones = (await look_for_phones()).phones
        seen = [(phone.way, phone.address, phone.state) for phone in phones if phone.serial == serial]
        if seen == [expected]:
            return
    raise AssertionError(f"{serial} is not {expected} but {seen}")


@asynccontextmanager
async def found(open_phone: Callable[[], AbstractAsyncContextManager[T]]) -> AsyncIterator[T]:
    """Reach a phone that announces itself, which may take more than one attempt."""
    async with AsyncExitStack() as stack:
        for left in reversed(range(ATTEMPTS)):
            try:
                phone = await stack.enter_async_context(open_phone())
                break
            except PhoneChanged:
                raise
            except PhoneUnavailable:
                if left == 0:
                    raise
        yield phone


async def finds_it_where_it_is(box: Box, key: AdbKey, address: str) -> None:
    """By its serial number, never reached before; then where it was before nobody listens any more."""
    async with found(partial(connect, box.name)) as adb:
        assert (adb.serial, adb.key_fingerprint) == (box.name, key.fingerprint)
    assert load_known_phones()[box.name].address == address
    move(box)
    async with found(partial(connect, box.name)) as adb:
        assert (await shell.run(adb, "echo found")).stdout == b"found\n"
    assert load_known_phones()[box.name].address == address
    move(box)
    await is_seen(box.name, "mdns", address, "device")
    assert load_known_phones()[box.name].address == address


async def a_service_finds_it(box: Box, address: str) -> None:
    move(box)
    async with opening_phones() as open_phone, found(partial(open_phone, box.name, "shell_dir")) as phone:
        assert phone.serial == box.name
    assert load_known_phones()[box.name].address == address


async def no_other_phone_is_taken_for_it(network: PhoneNetwork, box: Box) -> None:
    await network.announce(CONNECT, "adb-OTHER-aB3xYz", box.port)
    with pytest.raises(PhoneChanged, match=f"was OTHER; now {box.name} answers"):
        async with found(partial(connect, "OTHER")):
            pass
    await is_seen("OTHER", "mdns", f"{PHONE_END}:{box.port}", "device_changed")
    with anyio.fail_after(60), pytest.raises(PhoneUnavailable, match="No phone NOBODY was found at an adb"):
        async with connect("NOBODY"):
            pass


def move(box: Box) -> None:
    """Let this host remember the phone at a port that it has left."""
    known = load_known_phones()[box.name]
    remember_phone(KnownPhone(**known.model_dump() | {"address": f"{PHONE_END}:{NOBODY_LISTENS}"}))
