"""Phones that announce themselves, over real multicast between two network namespaces."""

from collections.abc import Callable

import anyio

from builder_bridge.adb.announcements import MAX_ANNOUNCEMENTS, Service
from builder_bridge.adb.discovery import browse, find_once, why_not
from builder_bridge.adb.phones import find_pairing, look_for_phones
from tests.phone_network import PHONE_END, PhoneNetwork, run_on_network

CONNECT, PAIRING, PLAIN = (service.value for service in (Service.CONNECT, Service.PAIRING, Service.PLAIN))


async def until(is_so: Callable[[], bool]) -> None:
    with anyio.fail_after(180):
        while not is_so():  # noqa: ASYNC110  what is waited for is heard from another process
            await anyio.sleep(0.02)


def test_phones_are_heard_with_their_serials_and_where_they_are() -> None:
    async def work(network: PhoneNetwork) -> None:
        await network.announce(CONNECT, "adb-R5CR1-aB3xYz", 37099)
        await network.announce(PLAIN, "adb-emu-1", 5555)
        await network.announce(PAIRING, "adb-R5CR1-aB3xYz", 41000)
        async with browse() as browser:
            assert await browser.find("R5CR1", 180) == (f"{PHONE_END}:37099",)
            assert await browser.find("emu-1", 180) == (f"{PHONE_END}:5555",)
            await until(lambda: len(browser.heard) == 3)
        found = {(each.service, each.serial, each.addresses) for each in browser.heard}
        assert found == {
            (Service.CONNECT, "R5CR1", (f"{PHONE_END}:37099",)),
            (Service.PLAIN, "emu-1", (f"{PHONE_END}:5555",)),
            (Service.PAIRING, "R5CR1", (f"{PHONE_END}:41000",)),
        }

    run_on_network(work)


def test_a_lasting_browser_follows_a_phone_to_its_next_port_and_knows_when_it_is_gone() -> None:
    async def work(network: PhoneNetwork) -> None:
        async with browse() as browser:
            await network.announce(CONNECT, "adb-R5CR1-aB3xYz", 37099)
            assert await browser.find("R5CR1", 180) == (f"{PHONE_END}:37099",)
            await network.announce(CONNECT, "adb-R5CR1-aB3xYz", 40123, "update")
            await until(lambda: browser.addresses_of("R5CR1") == (f"{PHONE_END}:40123",))
            await network.announce(CONNECT, "adb-R5CR1-aB3xYz", 40123, "withdraw")
            await until(lambda: not browser.addresses_of("R5CR1"))

    run_on_network(work)


def test_a_phone_that_is_wanted_is_heard_through_thousands_of_hostile_names() -> None:
    async def work(network: PhoneNetwork) -> None:
        async with browse() as browser:
            finding: list[object] = []

            async def look() -> None:
                finding.extend(await browser.find("R5CR1", 180))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(look)
                await anyio.to_thread.run_sync(lambda: network.tell(flood=3000))
                await network.announce(CONNECT, "adb-R5CR1-aB3xYz", 37099)
            assert finding == [f"{PHONE_END}:37099"]
            assert len(browser.heard) <= MAX_ANNOUNCEMENTS + 1
        assert all(each.name.isprintable() for each in browser.heard)

    run_on_network(work)


def test_what_points_at_this_host_itself_or_nowhere_is_not_believed() -> None:
    async def work(network: PhoneNetwork) -> None:
        await network.announce(CONNECT, "adb-EVIL-aaaaaa", 5037, "new", "127.0.0.1")
        await network.announce(CONNECT, "adb-ZERO-aaaaaa", 0)
        await network.announce(CONNECT, "adb-GOOD-aaaaaa", 37099)
        async with browse() as browser:
            assert await browser.find("GOOD", 180)
            assert await browser.find("EVIL", 0) == ()
            assert await browser.find("ZERO", 0) == ()

    run_on_network(work)


def test_without_an_interface_for_multicast_nobody_waits_and_the_reason_is_told() -> None:
    async def work(network: PhoneNetwork) -> None:
        network.cut()
        assert "No network interface" in why_not()
        with anyio.fail_after(180):
            async with browse() as browser:
                assert await browser.find("R5CR1", 3600) == ()
            assert "No network interface" in (await look_for_phones(3600)).trouble
            assert (await find_pairing(3600))[0] == []

    run_on_network(work)


def test_a_lasting_browser_hears_of_a_network_that_comes_later() -> None:
    async def work(network: PhoneNetwork) -> None:
        await network.announce(CONNECT, "adb-R5CR1-aB3xYz", 37099)
        network.cut()
        async with browse(rescan_s=0.05) as browser:
            await until(lambda: bool(browser.trouble))
            network.mend()
            await until(lambda: bool(browser.addresses_of("R5CR1")))
            assert not browser.trouble
            network.cut()
            await until(lambda: not browser.addresses_of("R5CR1"))

    run_on_network(work)


def test_a_phone_that_is_nowhere_is_not_waited_for_long() -> None:
    async def work(network: PhoneNetwork) -> None:
        del network
        with anyio.fail_after(120):
            assert await find_once("nobody") == ()

    run_on_network(work)
