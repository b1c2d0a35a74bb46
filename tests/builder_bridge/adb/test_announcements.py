"""What announcements mean, and what strangers may not do with them."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder_bridge.adb.announcements import (
    MAX_ADDRESSES,
    MAX_ANNOUNCEMENTS,
    MAX_OF_ONE_SERIAL,
    Announcement,
    Announcements,
    Service,
    read_announcement,
    to_printable,
)

CONNECT, PAIRING, PLAIN = Service.CONNECT, Service.PAIRING, Service.PLAIN
HOSTS = ["192.168.1.20"]


def read(service: Service, name: str, *hosts: str, port: int = 37099) -> Announcement | None:
    return read_announcement(service, f"{name}.{service.value}", hosts or HOSTS, port)


@pytest.mark.parametrize(
    ("service", "name", "serial"),
    [
        (CONNECT, "adb-R5CR10ABCDE-x7Yz01", "R5CR10ABCDE"),
        (CONNECT, "adb-R5CR10ABCDE-x7Yz01 (2)", "R5CR10ABCDE"),
        (CONNECT, "adb-test-12-0-x7Yz01", "test-12-0"),
        (CONNECT, "adb-R5CR10ABCDE", "R5CR10ABCDE"),
        (PLAIN, "adb-R5CR10ABCDE", "R5CR10ABCDE"),
        (PLAIN, "adb-box-abcdef", "box-abcdef"),
        (PAIRING, "adb-R5CR10ABCDE-x7Yz01", "R5CR10ABCDE"),
        (PAIRING, "studio-Ab3$x!", ""),
    ],
)
def test_a_serial_number_is_read_from_a_name(service: Service, name: str, serial: str) -> None:
    found = read(service, name)
    assert found is not None
    assert (found.serial, found.addresses) == (serial, ("192.168.1.20:37099",))


@pytest.mark.parametrize(
    ("name", "hosts", "port"),
    [
        ("adb-X-aaaaaa", HOSTS, 0),
        ("adb-X-aaaaaa", HOSTS, 65536),
        (
            "adb-X-aaaaaa",
            ["127.0.0.1", "::1", "0.0.0.0", "224.0.0.1", "255.255.255.255", "fe80::1", "x"],
            5555,
        ),
        ("adb-X-aaaaaa", ["fe80::1%$(reboot)"], 5555),
        ("adb-X-aaaaaa", [], 5555),
        ("adb-" + "X" * 60, HOSTS, 5555),
        ("adb-\x1b[2J-aaaaaa", HOSTS, 5555),
        ("adb--aaaaaa", HOSTS, 5555),
        ("printer", HOSTS, 5555),
        ("", HOSTS, 5555),
    ],
)
def test_what_no_phone_announces_is_not_taken(name: str, hosts: list[str], port: int) -> None:
    assert read_announcement(CONNECT, f"{name}.{CONNECT.value}", hosts, port) is None


def test_addresses_come_in_the_order_in_which_they_are_worth_a_try() -> None:
    found = read(CONNECT, "adb-X-aaaaaa", "fe80::1%eth0", "fd00::2", "169.254.3.4", "192.168.1.20", port=5555)
    assert found is not None
    assert found.addresses == (
        "192.168.1.20:5555", "[fd00::2]:5555", "169.254.3.4:5555", "[fe80::1%eth0]:5555",
    )  # fmt: skip


@given(
    service=st.sampled_from(Service),
    name=st.text(max_size=80),
    hosts=st.lists(st.ip_addresses().map(str) | st.text(max_size=20), max_size=10),
    port=st.integers(-10, 1 << 17),
)
def test_whatever_is_announced_what_is_taken_is_harmless(
    service: Service, name: str, hosts: list[str], port: int
) -> None:
    found = read_announcement(service, f"{name}.{service.value}", hosts, port)
    if found is None:
        return
    assert (found.name + found.serial).isprintable()
    assert 0 < len(found.addresses) <= MAX_ADDRESSES
    for address in found.addresses:
        host, _, number = address.rpartition(":")
        assert 0 < int(number) < 1 << 16
        assert not ipaddress.ip_address(host.strip("[]")).is_loopback


def test_a_phone_that_moved_is_found_at_its_latest_address_and_inside_tls_first() -> None:
    heard = Announcements()
    for name, service, port in [("a", PLAIN, 1), ("b", CONNECT, 2), ("c", CONNECT, 3), ("d", PAIRING, 4)]:
        heard.hear(name, Announcement(service, "X", name, (f"10.0.0.1:{port}",)))
    assert heard.addresses_of("X") == ("10.0.0.1:3", "10.0.0.1:2", "10.0.0.1:1")
    heard.hear("b", Announcement(CONNECT, "X", "b", ("10.0.0.1:9",)))
    assert heard.addresses_of("X")[0] == "10.0.0.1:9"
    heard.forget(CONNECT, "b")
    assert heard.addresses_of("X")[0] == "10.0.0.1:3"
    assert heard.addresses_of("Y") == ()


def test_a_flood_leaves_room_for_those_that_are_looked_for_and_for_no_more() -> None:
    heard = Announcements()
    heard.want("X")
    for number in range(5000):
        heard.hear(f"f{number}", Announcement(CONNECT, f"F{number}", "f", ("10.0.0.1:1",)))
    for number in range(100):
        name = f"adb-X-{number:06}.{CONNECT.value}"
        heard.hear(name, Announcement(CONNECT, "X", name, (f"10.0.0.2:{number + 1}",)))
    assert len(list(heard)) == MAX_ANNOUNCEMENTS + MAX_OF_ONE_SERIAL
    assert len(heard.addresses_of("X")) == MAX_OF_ONE_SERIAL
    assert heard.left_out == 5000 - MAX_ANNOUNCEMENTS + 100 - MAX_OF_ONE_SERIAL


def test_a_strangers_text_does_nothing_to_a_terminal() -> None:
    assert to_printable("Pixel\x1b[2J\u202e\n7") == "Pixel\ufffd[2J\ufffd\ufffd7"
    assert to_printable("x" * 300) == "x" * 200 + "…"
