import base64
import json
import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import click
import pytest

from orchestrator.cli.build_secrets import agent_secrets, read_secrets
from orchestrator.errors import SettingsFault
from orchestrator.settings import load_settings
from tests.orchestrator.cli.test_build import pocketbuild


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("TEST_ONE", "from a variable")
    monkeypatch.setenv("plainName", "by its own name")
    (tmp_path / "value").write_text("from a file\n")
    (tmp_path / "value").chmod(0o600)
    named = {"set": {"env": "TEST_ONE"}, "filed": {"file": str(tmp_path / "value")}}
    return load_settings(data_dir=tmp_path / "data", secrets=named).settings


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("set", "from a variable"),
        ("filed", "from a file"),
        ("plainName", "by its own name"),
        ("other=env:TEST_ONE", "from a variable"),
        ("other=@{}/value", "from a file"),
    ],
)
def test_a_value_comes_from_where_the_option_says(
    settings: Any, tmp_path: Path, option: str, value: str
) -> None:
    wish = read_secrets(settings, [option.format(tmp_path)], [])
    assert wish == {"secrets": {option.split("=")[0]: value}, "secret_files": {}}


def test_a_value_may_come_by_standard_input_and_a_file_as_it_is(
    settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(b"piped in\r\n")))
    wish = read_secrets(settings, ["piped=@-"], [f"store={tmp_path}/value"])
    assert wish["secrets"] == {"piped": "piped in"}
    assert wish["secret_files"] == {"store": base64.b64encode(b"from a file\n").decode()}
    assert read_secrets(settings, [], []) == {}


def test_a_value_on_the_command_line_is_refused_and_not_repeated(settings: Any) -> None:
    with pytest.raises(click.UsageError) as refusal:
        read_secrets(settings, ["storePassword=hunter2"], [])
    assert "hunter2" not in refusal.value.message
    assert "seen by everybody" in refusal.value.message


@pytest.mark.parametrize(
    ("value", "file", "said"),
    [
        ("nowhere", None, "the variable nowhere is not set"),
        ("a=env:NOWHERE", None, "the variable NOWHERE is not set"),
        ("a=@/nowhere", None, "cannot be read"),
        ("a b=env:TEST_ONE", None, "no name"),
        (None, "store=/nowhere", "cannot be read"),
    ],
)
def test_what_is_missing_is_told_by_name(
    settings: Any, value: str | None, file: str | None, said: str
) -> None:
    with pytest.raises(SettingsFault, match=said):
        read_secrets(settings, [value] if value else [], [file] if file else [])


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ({"value": "hunter2"}, "unknown setting secrets.x.value"),
        ({}, "never a value"),
        ({"env": "A", "file": "/b"}, "never a value"),
        ({"env": "A", "as_file": True}, "`as_file` wants `file`"),
    ],
)
def test_settings_say_where_a_secret_comes_from_and_never_what_it_is(
    source: dict[str, Any], said: str
) -> None:
    with pytest.raises(SettingsFault, match=said) as refusal:
        load_settings(secrets={"x": source})
    assert "hunter2" not in str(refusal.value)


def test_a_file_that_others_may_read_is_no_secret(settings: Any, tmp_path: Path) -> None:
    (tmp_path / "value").chmod(0o640)
    with pytest.raises(SettingsFault, match="chmod 600"):
        read_secrets(settings, ["filed"], [])


def test_the_command_gives_a_build_its_secrets_and_shows_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_ONE", "a value to hide")
    monkeypatch.setenv("POCKETBUILD_SECRETS", json.dumps({"named": {"env": "TEST_ONE"}}))
    shown = pocketbuild(tmp_path, "config", "--json")
    assert json.loads(shown.stdout)["secrets"]["value"]["named"]["env"] == "TEST_ONE"
    assert "a value to hide" not in shown.stdout
    (tmp_path / "w").mkdir()
    told = pocketbuild(tmp_path, "build", str(tmp_path / "w"), "--secret", "x=a value to hide")
    assert (told.returncode, "a value to hide" in told.stdout + told.stderr) == (2, False)


def test_builds_of_an_agent_get_what_the_settings_name_for_them_and_nothing_else(
    settings: Any, tmp_path: Path
) -> None:
    assert agent_secrets(settings) == {}
    named = {"set": {"env": "TEST_ONE", "for_agents": True}, "other": {"env": "TEST_ONE"}}
    chosen = load_settings(secrets=named).settings
    assert agent_secrets(chosen) == {"secrets": {"set": "from a variable"}, "secret_files": {}}
