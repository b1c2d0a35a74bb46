"""A running adb server as the way to a phone; a small one is played here, adb 34's own in the box."""

from collections.abc import Sequence

import anyio
import pytest
from anyio.abc import ByteStream
from anyio.streams.buffered import BufferedByteReceiveStream

from builder_bridge.adb import connect, shell
from builder_bridge.adb.server import ServedPhone, parse_phones, refusal, server_address
from builder_bridge.errors import (
    PhoneLost,
    PhoneOffline,
    PhoneUnauthorized,
    PhoneUnavailable,
    ServiceRefused,
)
from tests.fakes_adb import open_peer
from tests.ports import port_where_nobody_listens

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("environment", "address"),
    [
        ({}, "tcp:127.0.0.1:5037"),
        ({"ANDROID_ADB_SERVER_PORT": "5137"}, "tcp:127.0.0.1:5137"),
        ({"ANDROID_ADB_SERVER_ADDRESS": "lab", "ANDROID_ADB_SERVER_PORT": "5137"}, "tcp:lab:5137"),
        ({"ADB_SERVER_SOCKET": "tcp:5138", "ANDROID_ADB_SERVER_PORT": "1"}, "tcp:127.0.0.1:5138"),
        ({"ADB_SERVER_SOCKET": "tcp:lab:5138"}, "tcp:lab:5138"),
        ({"ADB_SERVER_SOCKET": "localfilesystem:/run/adb"}, "localfilesystem:/run/adb"),
    ],
)
def test_the_servers_place_is_where_adb_looks_for_it(environment: dict[str, str], address: str) -> None:
    assert server_address(environment) == address


def test_a_listing_is_read_with_all_its_noise() -> None:
    listing = (
        "* daemon not running; starting now at tcp:5037\n"
        "R58M123ABC             device usb:1-1 product:beyond1 model:SM_G973F device:beyond1 transport_id:3\n"
        "192.168.1.20:5555      unauthorized transport_id:4\n"
        "0123456789             no permissions (missing udev rules?); see [http://developer.android.com]\n"
        "emulator-5554          offline\n\n"
    )
    phones = {phone.serial: phone for phone in parse_phones(listing)}
    assert phones["R58M123ABC"] == ServedPhone(
        "R58M123ABC",
        "device",
        {"usb": "1-1", "product": "beyond1", "model": "SM_G973F", "device": "beyond1", "transport_id": "3"},
    )
    assert phones["192.168.1.20:5555"].state == "unauthorized"
    assert phones["0123456789"].state.startswith("no permissions")
    assert phones["emulator-5554"].state == "offline"


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("device unauthorized.\nThis adb server's $ADB_VENDOR_KEYS is not set", PhoneUnauthorized),
        ("device still authorizing", PhoneUnauthorized),
        ("device offline", PhoneOffline),
        ("device 'X' not found", PhoneUnavailable),
        ("more than one device/emulator", PhoneUnavailable),
    ],
)
def test_the_servers_refusals_are_told_apart(reason: str, kind: type[PhoneUnavailable]) -> None:
    assert type(refusal("X", reason)) is kind


class FakeServer:
    """A server with one phone, `S1`, that offers `shell,v2,raw:` and answers every command alike."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.has_phone = True

    async def serve(self, stream: ByteStream) -> None:
        reader = BufferedByteReceiveStream(stream)
        while True:
            try:
                size_bytes = int(await reader.receive_exactly(4), 16)
            except anyio.IncompleteRead:
                return None
            request = (await reader.receive_exactly(size_bytes)).decode()
            self.asked.append(request)
            match request:
                case "host:devices-l":
                    return await self.tell(stream, "S1   device model:Fake\n" if self.has_phone else "")
                case "host-serial:S1:features" if self.has_phone:
                    return await self.tell(stream, "shell_v2,stat_v2,delayed_ack,made_up")
                case "host:transport:S1" if self.has_phone:
                    await stream.send(b"OKAY")
                case "shell,v2,raw:whoami":
                    return await stream.send(b"OKAY" + b"\x01\x06\0\0\0shell\n" + b"\x03\x01\0\0\0\x05")
                case "shell,v2,raw:vanish":
                    return await stream.send(b"OKAY" + b"\x01\x06\0\0\0she")
                case _:
                    reason = b"closed" if self.has_phone else b"device 'S1' not found"
                    return await stream.send(b"FAIL%04x" % len(reason) + reason)

    async def tell(self, stream: ByteStream, text: str) -> None:
        await stream.send(b"OKAY%04x" % len(text) + text.encode())


@pytest.mark.parametrize("address", ["server:S1", "server", "S1", None])
async def test_a_served_phone_is_found_and_used(address: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANDROID_SERIAL", raising=False)
    server = FakeServer()
    async with open_peer(server.serve) as port:
        monkeypatch.setenv("ADB_SERVER_SOCKET", f"tcp:127.0.0.1:{port}")
        async with connect(address) as adb:
            assert adb.serial == "S1"
            assert adb.banner.properties == {"model": "Fake"}
            assert "made_up" not in adb.features
            assert await shell.run(adb, "whoami") == shell.ShellResult(5, b"shell\n", b"")
    assert not any("kill" in request for request in server.asked)


async def test_the_serial_in_the_environment_is_honoured(monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_peer(FakeServer().serve) as port:
        monkeypatch.setenv("ANDROID_ADB_SERVER_PORT", str(port))
        monkeypatch.setenv("ANDROID_SERIAL", "S1")
        async with connect() as adb:
            assert adb.serial == "S1"
        monkeypatch.setenv("ANDROID_SERIAL", "S2")
        with pytest.raises(PhoneUnavailable, match=r"No phone S2 was found.*There: server:S1"):
            async with connect(find=nowhere):
                pass


async def nowhere(serial: str) -> Sequence[str]:
    """Find no phone on the network, without listening."""
    del serial
    return ()


async def test_a_phone_that_the_server_loses_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    server = FakeServer()
    async with open_peer(server.serve) as port:
        monkeypatch.setenv("ADB_SERVER_SOCKET", f"tcp:{port}")
        async with connect("server:S1") as adb:
            with pytest.raises(PhoneLost, match="without an exit code"):
                await shell.run(adb, "vanish")
            with pytest.raises(ServiceRefused, match="framebuffer"):
                await adb.open("framebuffer:")
            server.has_phone = False
            with pytest.raises(PhoneLost, match="not found"):
                await shell.run(adb, "whoami")


async def test_where_no_server_runs_none_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    with port_where_nobody_listens() as port:
        monkeypatch.setenv("ADB_SERVER_SOCKET", f"tcp:127.0.0.1:{port}")
        with pytest.raises(PhoneUnavailable, match=f"No adb server answers on tcp:127.0.0.1:{port}"):
            async with connect("server:S1"):
                pass


async def test_a_socket_that_cannot_be_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADB_SERVER_SOCKET", "carrier-pigeon:7")
    with pytest.raises(PhoneUnavailable, match="carrier-pigeon"):
        async with connect("server:S1"):
            pass
