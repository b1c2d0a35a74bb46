from pathlib import Path
from typing import get_args

import pytest
from click.testing import CliRunner

from builder_bridge.routes.probe import ROUTE_NAMES
from orchestrator.cli.config import config
from orchestrator.errors import SettingsFault
from orchestrator.settings import RouteName, load_settings


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path / "pocketbuild.toml"


def test_later_sources_win_and_each_setting_knows_where_it_came_from(
    write: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write.write_text('port = 1000\nbind = "127.0.0.2"\n[limits]\nbody_bytes = 7\nfiles = 9\n')
    monkeypatch.setenv("POCKETBUILD_BIND", "127.0.0.3")
    monkeypatch.setenv("POCKETBUILD_LIMITS__FILES", "11")
    loaded = load_settings(write, port=2000)
    assert (loaded.settings.port, loaded.settings.bind) == (2000, "127.0.0.3")
    assert (loaded.settings.limits.body_bytes, loaded.settings.limits.files) == (7, 11)
    assert loaded.sources == {
        "port": "command line",
        "bind": "environment",
        "limits.body_bytes": str(write),
        "limits.files": "environment",
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("prot = 1", "unknown setting prot in {file} (did you mean port?)"),
        (
            "[limits]\nupload_byte = 1",
            "unknown setting limits.upload_byte in {file} (did you mean upload_bytes?)",
        ),
        ('[[phones]]\nadress = "x"', "did you mean address?"),
        ("port = 70000", "setting port in {file}: Input should be less than or equal to 65535"),
        ("port = [", "the settings in {file} or the environment cannot be read"),
    ],
)
def test_a_wrong_file_is_explained_by_setting_and_source(write: Path, text: str, expected: str) -> None:
    write.write_text(text)
    with pytest.raises(SettingsFault) as caught:
        load_settings(write)
    assert expected.format(file=write) in str(caught.value)


def test_an_unknown_variable_names_the_nearest_known_one(
    write: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POCKETBUILD_DATA_DIRR", "/x")
    with pytest.raises(SettingsFault, match="did you mean POCKETBUILD_DATA_DIR"):
        load_settings()


def test_a_route_in_the_settings_is_one_that_the_bridge_knows(write: Path) -> None:
    assert get_args(RouteName) == ROUTE_NAMES
    write.write_text('[[phones]]\naddress = "p1"\nroute = "bluetooth"\n')
    with pytest.raises(SettingsFault, match="route"):
        load_settings(write)


def test_a_file_that_is_named_must_exist(write: Path) -> None:
    with pytest.raises(SettingsFault, match="no settings file"):
        load_settings(write)


def test_config_prints_every_setting_with_its_source_and_no_secret(write: Path) -> None:
    write.write_text('database_url = "postgresql://u:hunter2@db/x"\n[webhooks]\nsecret = "hunter2"\n')
    shown = CliRunner().invoke(config, ["--config", str(write)])
    assert shown.exit_code == 0
    assert "hunter2" not in shown.output
    assert f'"********"  ({write})' in shown.output
    assert "limits.queued_per_owner" in shown.output


def test_config_masks_secrets_in_free_tables_too(write: Path) -> None:
    write.write_text(
        '[mcp.search]\ncommand = ["serve"]\nenv = { ANY = "hunter2" }\n'
        '[mcp.far]\nurl = "https://far.test"\nheaders = { Authorization = "hunter2" }\n'
        '[providers.mine]\nkey = "hunter2"\nkey_env = ["MINE_KEY"]\n'
    )
    shown = CliRunner().invoke(config, ["--config", str(write)])
    assert shown.exit_code == 0
    assert "hunter2" not in shown.output
    assert "MINE_KEY" in shown.output
    assert "https://far.test" in shown.output


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ('urls = ["https://hooks.test/x"]', "urls want a secret"),
        ('urls = ["https://hooks.test/x"]\nsecret = ""', "urls want a secret"),
    ],
)
def test_webhooks_that_could_not_be_signed_are_no_settings(write: Path, table: str, told: str) -> None:
    write.write_text(f"[webhooks]\n{table}\n")
    with pytest.raises(SettingsFault, match=told):
        load_settings(write)
