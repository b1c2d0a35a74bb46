"""What the files for operation name is there: settings, options, commands, files, folders."""

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from orchestrator.cli.main import main
from orchestrator.errors import SettingsFault
from orchestrator.settings import load_settings
from orchestrator.store.artifacts import open_artifact_store

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "scripts/deploy"
COMMAND = re.compile(r"(?:^|[ /])pocketbuild ((?:serve|token|phone)\b[^#\n]*)", re.MULTILINE)


def text_of(name: str) -> str:
    return (DEPLOY / name).read_text().replace("\\\n#", " ")


@pytest.mark.parametrize("name", ["pocketbuild.service", "compose.yaml", "Dockerfile"])
def test_commands_that_are_named_exist_with_their_options(name: str) -> None:
    lines = COMMAND.findall(text_of(name)) or re.findall(r'"pocketbuild", "(serve)"', text_of(name))
    assert lines
    for line in lines:
        # An option that does not exist is told before the help is.
        done = CliRunner().invoke(main, [*shlex.split(line), "--help"])
        assert done.exit_code == 0, (line, done.output)


def test_the_units_environment_is_one_of_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    variables = dict(
        re.findall(r"^Environment=(POCKETBUILD_\w+)=(.*)$", text_of("pocketbuild.service"), re.MULTILINE)
    )
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    loaded = load_settings()
    assert str(loaded.settings.data_dir) == "/var/lib/pocketbuild/data"
    assert loaded.settings.log_format == "json"


@pytest.mark.parametrize(
    "given",
    [
        {"DATABASE_PASSWORD": "secret", "PHONES": '[{"address":"192.168.1.20:5555"}]'},
        {"DATABASE_PASSWORD": "secret", "LAB_BIND": "192.168.1.6", "LAB_HOST_ID": "lab-2",
         "DATABASE_HOST": "192.168.1.5", "ARTIFACTS_URL": "s3://builds/lab", "LAB_HOST_NAME": "lab-2.test"},
    ],
)  # fmt: skip
def test_the_lab_of_the_compose_file_is_one_of_settings(
    given: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def filled(match: re.Match[str]) -> str:
        return given.get(match["name"], match["default"] or "")

    text = re.sub(r"\$\{(?P<name>\w+)(?::[-?](?P<default>[^}]*))?\}", filled, text_of("compose.yaml"))
    for name, value in re.findall(r"^ +(POCKETBUILD_\w+): (.*)$", text, re.MULTILINE):
        monkeypatch.setenv(name, value.strip("'"))
    settings = load_settings().settings
    assert settings.wants_token
    assert settings.database_url is not None
    assert settings.database_url.get_secret_value().startswith("postgresql://pocketbuild:secret@")
    assert settings.lab.host_id == given.get("LAB_HOST_ID", "lab-1")
    assert len(settings.phones) == text.count('"address"') - 1


def test_what_the_image_copies_is_in_the_repository() -> None:
    copied = [line.split()[1:-1] for line in text_of("Dockerfile").splitlines() if line.startswith("COPY ")]
    assert copied
    for name in [name for names in copied for name in names]:
        assert (ROOT / name).exists(), name


def test_a_folder_of_artifacts_is_made_and_a_wrong_url_is_a_setting_to_mend(tmp_path: Path) -> None:
    open_artifact_store(f"file://{tmp_path}/a%20b/artifacts", tmp_path)
    assert (tmp_path / "a b/artifacts").is_dir()
    for url in ("nope://x", "/plain", "s3://"):
        with pytest.raises(SettingsFault, match="artifacts_url"):
            open_artifact_store(url, tmp_path)
    with pytest.raises(SettingsFault, match="cannot be made"):
        open_artifact_store("file:///proc/nowhere/artifacts", tmp_path)
