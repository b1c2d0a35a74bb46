"""Keys, the dialog and its owner, in the modes that ask for them."""

from pathlib import Path

import anyio
import pytest

from builder_bridge.adb import connect
from builder_bridge.adb.keys import AdbKey, make_key
from builder_bridge.adb.shell import run
from builder_bridge.box import Box, Mode, restart_adbd
from builder_bridge.box.owner import Answer, allow_key, answer_dialogs, forget_keys
from builder_bridge.errors import PhoneUnauthorized, PhoneUnavailable
from tests.box.fixtures import BoxFactory

pytestmark = [pytest.mark.anyio, pytest.mark.box]


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> AdbKey:
    return make_key(tmp_path_factory.mktemp("keys") / "adbkey")


async def who(box: Box, key: AdbKey, dialog_timeout_s: float = 120.0) -> str:
    async with connect(box.serial, keys=[key], dialog_timeout_s=dialog_timeout_s) as adb:
        return (await run(adb, "id -un")).stdout.decode().strip()


async def test_the_owner_allows_once_then_always(box_factory: BoxFactory, key: AdbKey) -> None:
    box = box_factory(mode=Mode.AUTH)
    async with answer_dialogs(box, Answer.ALLOW) as owner:
        assert await who(box, key) == "shell"
        assert owner.asked == [key.public_key.decode().strip()]
        owner.answer = Answer.ALWAYS
        assert await who(box, key) == "shell"
        assert len(owner.asked) == 2
    assert await who(box, key) == "shell"  # known for good, so nobody is asked
    forget_keys(box)
    with pytest.raises(PhoneUnauthorized):
        await who(box, key, dialog_timeout_s=0.3)


@pytest.mark.parametrize("answer", [Answer.DENY, Answer.IGNORE])
async def test_without_the_owners_leave_nobody_comes_in(
    box_factory: BoxFactory, key: AdbKey, answer: Answer
) -> None:
    box = box_factory(mode=Mode.AUTH)
    async with answer_dialogs(box, answer) as owner:
        with pytest.raises(PhoneUnauthorized):
            await who(box, key, dialog_timeout_s=0.5)
        with anyio.fail_after(60):  # the question may still be on its way
            while not owner.asked:  # noqa: ASYNC110 - nobody tells
                await anyio.sleep(0.02)
        assert len(owner.asked) == 1


async def test_the_owner_is_there_for_the_next_adbd_too(box_factory: BoxFactory, key: AdbKey) -> None:
    box = box_factory(mode=Mode.AUTH)
    async with answer_dialogs(box, Answer.ALLOW, thinking_s=0.1) as owner:
        assert await who(box, key) == "shell"
        restart_adbd(box.name)
        assert await who(box, key) == "shell"
        assert len(owner.asked) == 2


async def test_a_tls_box_lets_in_the_key_it_was_paired_with_alone(
    box_factory: BoxFactory, key: AdbKey, tmp_path: Path
) -> None:
    box = box_factory(mode=Mode.TLS)
    allow_key(box, key.public_key.decode())
    assert await who(box, key) == "shell"
    with pytest.raises(PhoneUnavailable):
        await who(box, make_key(tmp_path / "strange"))
