from pathlib import Path

from click.testing import CliRunner

from orchestrator.cli.token import token


def test_a_list_without_tokens_says_so_beside_the_result(tmp_path: Path) -> None:
    at = ["--data-dir", str(tmp_path)]
    empty = CliRunner().invoke(token, [*at, "list"], catch_exceptions=False)
    assert (empty.exit_code, empty.stdout) == (0, "")
    assert "there are no tokens" in empty.stderr
    CliRunner().invoke(token, [*at, "create", "ann"], catch_exceptions=False)
    listed = CliRunner().invoke(token, [*at, "list"], catch_exceptions=False)
    assert "  ann  " in listed.stdout
    assert listed.stderr == ""
