"""Being let in: keys, the owner's dialog, TLS."""

import os
from pathlib import Path

import pytest

from builder_bridge.adb import connect, shell
from builder_bridge.adb.keys import AdbKey, load_key, load_keys, make_key
from builder_bridge.errors import PhoneUnauthorized, PhoneWantsTls
from tests.fakes_adb import FakePhone, open_phone

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="session")
def key(tmp_path_factory: pytest.TempPathFactory) -> AdbKey:
    return make_key(tmp_path_factory.mktemp("keys") / "adbkey")


@pytest.fixture(scope="session")
def other_key(tmp_path_factory: pytest.TempPathFactory) -> AdbKey:
    return make_key(tmp_path_factory.mktemp("keys") / "adbkey")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("ADB_VENDOR_KEYS", "ANDROID_USER_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


async def test_a_known_key_is_let_in_without_a_dialog(key: AdbKey) -> None:
    said: list[str] = []
    phone = FakePhone(wants_auth=True, known_keys=[key.private_pem])
    async with open_phone(phone), connect(phone.address, keys=[key], on_dialog=said.append) as adb:
        assert (await shell.run(adb, "echo in")).stdout == b"in\n"
        assert adb.key_fingerprint == key.fingerprint
    assert said == []


async def test_the_second_key_is_tried_before_the_owner_is_asked(key: AdbKey, other_key: AdbKey) -> None:
    phone = FakePhone(wants_auth=True, known_keys=[key.private_pem], owner="denies")
    async with open_phone(phone), connect(phone.address, keys=[other_key, key]) as adb:
        assert adb.key_fingerprint == key.fingerprint


async def test_the_owner_is_asked_and_allows(key: AdbKey) -> None:
    said: list[str] = []
    phone = FakePhone(wants_auth=True, owner="allows")
    async with open_phone(phone), connect(phone.address, keys=[key], on_dialog=said.append) as adb:
        assert adb.key_fingerprint == key.fingerprint
    assert len(said) == 1
    assert "allow USB debugging" in said[0]


async def test_an_owner_who_does_not_answer_leaves_it_unauthorized(key: AdbKey) -> None:
    phone = FakePhone(wants_auth=True, owner="ignores")
    async with open_phone(phone):
        with pytest.raises(PhoneUnauthorized, match=r"nobody answered within 0\.1 s") as fault:
            async with connect(phone.address, keys=[key], dialog_timeout_s=0.1):
                pass
    assert not fault.value.may_have_run
    assert phone.services == []


async def test_an_owner_who_denies_is_heard_at_once(key: AdbKey) -> None:
    phone = FakePhone(wants_auth=True, owner="denies")
    async with open_phone(phone):
        with pytest.raises(PhoneUnauthorized, match="does not allow"):
            async with connect(phone.address, keys=[key]):
                pass


async def test_without_a_key_a_phone_that_asks_is_unauthorized() -> None:
    phone = FakePhone(wants_auth=True)
    async with open_phone(phone):
        with pytest.raises(PhoneUnauthorized):
            async with connect(phone.address, keys=()):
                pass


async def test_a_phone_may_go_on_inside_tls(key: AdbKey) -> None:
    phone = FakePhone(wants_tls=True)
    sent = os.urandom(3 << 20)
    async with open_phone(phone), connect(phone.address, keys=[key]) as adb:
        assert (await shell.run(adb, "cat", sent)).stdout == sent
        assert adb.key_fingerprint == key.fingerprint


async def test_without_a_key_a_phone_that_speaks_only_tls_says_so() -> None:
    phone = FakePhone(wants_tls=True)
    async with open_phone(phone):
        with pytest.raises(PhoneWantsTls):
            async with connect(phone.address, keys=()):
                pass


def test_where_there_is_no_key_one_is_made_for_its_owner_alone(home: Path) -> None:
    [made] = load_keys()
    assert made.path == home / ".config/pocketbuild/adbkey"
    assert made.path.stat().st_mode & 0o777 == 0o600
    assert made.path.parent.stat().st_mode & 0o777 == 0o700
    assert load_keys() == (made,)
    assert made.public_key.startswith(b"QAAAA")


def test_the_users_own_key_is_preferred_and_left_alone(home: Path, key: AdbKey) -> None:
    own = home / ".android/adbkey"
    own.parent.mkdir()
    own.write_bytes(key.private_pem)
    [loaded] = load_keys()
    assert loaded.path == own
    assert loaded.fingerprint == key.fingerprint, "the public half is worked out"
    assert [path.name for path in own.parent.iterdir()] == ["adbkey"]


def test_vendor_keys_come_from_files_and_folders(
    home: Path, key: AdbKey, other_key: AdbKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, file = home / "vendor", home / "one"
    folder.mkdir()
    (folder / "b.adb_key").write_bytes(key.private_pem)
    (folder / "README").write_text("no key")
    file.write_bytes(other_key.private_pem)
    monkeypatch.setenv("ADB_VENDOR_KEYS", f"{folder}:{file}")
    assert [found.fingerprint for found in load_keys()] == [key.fingerprint, other_key.fingerprint]


def test_a_file_that_is_no_key_is_named(tmp_path: Path) -> None:
    (tmp_path / "adbkey").write_text("no key at all")
    with pytest.raises(PhoneUnauthorized, match=str(tmp_path / "adbkey")):
        load_key(tmp_path / "adbkey")


def test_two_who_make_the_key_at_once_get_the_same(tmp_path: Path) -> None:
    first, second = make_key(tmp_path / "adbkey"), make_key(tmp_path / "adbkey")
    assert first == second


def test_a_key_does_not_show_itself(key: AdbKey) -> None:
    assert "PRIVATE" not in repr(key)
