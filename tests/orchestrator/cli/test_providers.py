"""`pocketbuild providers`: the list, and its faults in words."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from orchestrator.cli.providers import providers


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.toml"
    path.write_text('[providers.mine]\nbase_url = "https://llm.example/v1"\ndialect = "openai-chat"\n')
    return path


def test_the_list_has_known_providers_and_those_of_the_settings(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ZAI_API_KEY", "k")
    result = CliRunner().invoke(providers, ["--json", "--config", str(config)])
    listed = {entry["name"]: entry for entry in map(json.loads, result.output.splitlines())}
    assert listed["mine"]["endpoints"] == {"openai-chat": "https://llm.example/v1"}
    assert listed["zai"]["has_key"] is True
    assert "* zai " in CliRunner().invoke(providers, ["--config", str(config)]).output


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["check", "nobody", "--model", "m"], "no provider is called 'nobody'"),
        (["check", "mistral", "--model", "m", "--dialect", "gemini"], "does not speak gemini"),
    ],
)
def test_a_check_of_what_does_not_exist_is_refused_in_words(
    arguments: list[str], told: str, config: Path
) -> None:
    result = CliRunner().invoke(providers, [*arguments, "--config", str(config)])
    assert result.exit_code != 0
    assert told in result.output
