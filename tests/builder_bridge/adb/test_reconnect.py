"""Coming back to the same phone."""

from functools import partial

import anyio
import pytest

from builder_bridge.adb import connect, shell
from builder_bridge.adb.reconnect import PhoneIdentity, connect_again, identity_of
from builder_bridge.errors import PhoneChanged, PhoneLost, PhoneUnauthorized, PhoneUnavailable
from tests.chaos import open_chaos
from tests.fakes_adb import FakePhone, open_phone

pytestmark = pytest.mark.anyio
FAKE = PhoneIdentity("FAKE0001", None)


async def test_after_a_cut_the_same_phone_is_found_again() -> None:
    async with open_phone() as phone, open_chaos("127.0.0.1", phone.port) as chaos:
        again = partial(connect, chaos.address, keys=())
        async with again() as adb:
            identity = identity_of(adb)
            chaos.cut()
            with pytest.raises(PhoneLost):
                await shell.run(adb, "true")
        async with connect_again(again, identity) as adb:
            assert (await shell.run(adb, "echo back")).stdout == b"back\n"


async def test_it_keeps_trying_while_nobody_listens() -> None:
    async with open_phone() as phone, open_chaos("127.0.0.1", phone.port) as chaos:
        chaos.is_refusing = True

        async def let_in_later() -> None:
            await anyio.sleep(0.15)
            chaos.is_refusing = False

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(let_in_later)
            async with connect_again(
                partial(connect, chaos.address, keys=()), FAKE, first_pause_s=0.01
            ) as adb:
                assert adb.serial == "FAKE0001"
        assert phone.connections == 1


async def test_it_gives_up_at_its_deadline_and_names_the_last_reason() -> None:
    async with open_phone() as phone, open_chaos("127.0.0.1", phone.port) as chaos:
        chaos.is_refusing = True
        again = partial(connect, chaos.address, keys=())
        with pytest.raises(PhoneUnavailable, match=r"within 0\.1 s\. Last: .*127\.0\.0\.1"):
            async with connect_again(again, FAKE, deadline_s=0.1, first_pause_s=0.01):
                pass


async def test_another_phone_at_the_same_address_is_not_taken_for_it() -> None:
    async with open_phone(FakePhone(serial="OTHER")) as phone:
        with pytest.raises(PhoneChanged, match="OTHER instead of FAKE0001") as fault:
            async with connect_again(partial(connect, phone.address, keys=()), FAKE):
                pass
    assert not fault.value.may_have_run


async def test_a_phone_that_no_longer_asks_for_our_key_is_another() -> None:
    async with open_phone() as phone:
        with pytest.raises(PhoneChanged):
            async with connect_again(
                partial(connect, phone.address, keys=()), PhoneIdentity("FAKE0001", "its key")
            ):
                pass


async def test_a_phone_that_forgot_us_is_told_at_once() -> None:
    async with open_phone(FakePhone(wants_auth=True)) as phone:
        with pytest.raises(PhoneUnauthorized):
            async with connect_again(partial(connect, phone.address, keys=()), FAKE):
                pass


async def test_a_fault_of_the_caller_is_not_taken_for_one_of_connecting() -> None:
    async with open_phone() as phone:
        with pytest.raises(PhoneLost, match="the caller's"):
            async with connect_again(partial(connect, phone.address, keys=()), FAKE):
                raise PhoneLost("the caller's own")
    assert phone.connections == 1
