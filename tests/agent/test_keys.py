"""Where keys come from, and that nothing says them."""

from dataclasses import replace
from pathlib import Path

import pytest

from agent.errors import KeyMissing, SettingsFault
from agent.keys import find_key
from agent.providers.catalogue import KNOWN

pytestmark = pytest.mark.anyio
ZAI = KNOWN["zai"]


async def test_the_first_variable_that_is_set_wins() -> None:
    assert await find_key(ZAI, {"ZHIPU_API_KEY": "b", "ZAI_API_KEY": " a\n"}) == "a"
    assert await find_key(ZAI, {"ZHIPU_API_KEY": "b", "ZAI_API_KEY": ""}) == "b"


async def test_a_missing_key_names_the_places_that_were_tried() -> None:
    with pytest.raises(KeyMissing, match="ZAI_API_KEY and ZHIPU_API_KEY are not set"):
        await find_key(ZAI, {})
    assert await find_key(KNOWN["ollama"], {}) is None


async def test_a_key_file_must_be_closed_to_others(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("from-file\n")
    file.chmod(0o644)
    own = replace(ZAI, key_file=str(file))
    with pytest.raises(SettingsFault, match="mode 0644, open to others"):
        await find_key(own, {})
    file.chmod(0o600)
    assert await find_key(own, {"ZAI_API_KEY": "other"}) == "from-file"


async def test_a_key_command_gives_the_key_or_says_that_it_did_not() -> None:
    assert await find_key(replace(ZAI, key_command=("printf", "from-command")), {}) == "from-command"
    with pytest.raises(SettingsFault, match="ended with status 3 and no key"):
        await find_key(replace(ZAI, key_command=("sh", "-c", "echo secret >&2; exit 3")), {})
    with pytest.raises(SettingsFault, match="did not start"):
        await find_key(replace(ZAI, key_command=("no-such-program-here",)), {})
