"""`pocketbuild log explain`: files and pipes in, one answer each out."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from orchestrator.cli.log import log

CASE = Path(__file__).parents[2] / "cases" / "buildlog" / "javac-errors-with-carets.json"
TEXT = json.loads(CASE.read_text())["log"]


@pytest.fixture
def log_file(tmp_path: Path) -> Path:
    path = tmp_path / "build.log"
    path.write_text(TEXT)
    return path


def test_the_json_form_is_one_object_a_line_for_each_file(log_file: Path) -> None:
    done = CliRunner().invoke(log, ["explain", "--json", str(log_file), str(log_file)])
    lines = done.output.splitlines()
    assert (done.exit_code, len(lines)) == (0, 2)
    body = json.loads(lines[0])
    assert {"outcome", "failed_tasks", "kind", "problems", "digest"} <= set(body)
    assert {"severity", "tool", "file", "line", "column", "message"} <= set(body["problems"][0])
    assert (body["outcome"], body["kind"], body["failed_tasks"]) == (
        "failed",
        "compile",
        [":app:compileDebugJavaWithJavac"],
    )


def test_the_text_of_several_files_names_each(log_file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.log"
    other.write_text(TEXT)
    done = CliRunner().invoke(log, ["explain", str(log_file), str(other)])
    assert [line for line in done.output.splitlines() if line.endswith(".log:")] == [
        f"{log_file}:",
        f"{other}:",
    ]


def test_a_dash_is_standard_input() -> None:
    done = CliRunner().invoke(log, ["explain", "--json", "-"], input=TEXT)
    assert len(json.loads(done.output)["problems"]) == 2


@pytest.mark.parametrize("form", ["text", "json", "sarif", "github", "gitlab", "markdown", "junit"])
def test_every_form_is_written_without_a_fault(log_file: Path, form: str) -> None:
    done = CliRunner().invoke(log, ["explain", "--format", form, str(log_file)])
    assert done.exit_code == 0
    assert done.output.strip()


def test_a_log_that_says_nothing_is_understood_too() -> None:
    done = CliRunner().invoke(log, ["explain", "--json", "-"], input="")
    assert (done.exit_code, json.loads(done.output)["outcome"]) == (0, "unknown")


def test_a_file_that_is_not_there_is_an_error_of_use() -> None:
    assert CliRunner().invoke(log, ["explain", "/nowhere/build.log"]).exit_code == 2


def test_source_lines_come_from_the_workspace_and_not_from_outside_of_it(tmp_path: Path) -> None:
    workspace = tmp_path / "project"
    (workspace / "app").mkdir(parents=True)
    (workspace / "app" / "A.kt").write_text("fun a() {\n    missing()\n}\n")
    (tmp_path / "secret.kt").write_text("secret\n")
    (workspace / "link.kt").symlink_to(tmp_path / "secret.kt")
    text = "e: file:///b/app/A.kt:2:5 Unresolved 'missing'.\ne: file:///b/link.kt:1:1 Other.\nBUILD FAILED\n"
    arguments = ["explain", "--workspace", str(workspace), "--root", "/b", "-"]
    done = CliRunner().invoke(log, arguments, input=text)
    assert "> 2 |     missing()" in done.output
    assert "secret" not in done.output
