"""`pocketbuild stream explain` prints what recorded bodies mean."""

import base64
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from orchestrator.cli.stream import stream

CASES = Path(__file__).parents[2] / "cases" / "stream"


def body_of(case_id: str) -> bytes:
    chunks = json.loads((CASES / f"{case_id}.json").read_text())["chunks"]
    return b"".join(c.encode() if isinstance(c, str) else base64.b64decode(c["b64"]) for c in chunks)


@pytest.mark.parametrize(
    "case_id",
    ["anthropic-one-valid-one-invalid-call", "gemini-thought-parts-then-text-and-call", "oai-body-empty"],
)
def test_json_gives_one_line_a_file_with_exactly_the_keys_of_a_case(case_id: str, tmp_path: Path) -> None:
    case = json.loads((CASES / f"{case_id}.json").read_text())
    files = [tmp_path / "a", tmp_path / "b"]
    for file in files:
        file.write_bytes(body_of(case_id))
    done = CliRunner().invoke(stream, ["explain", "--json", "--dialect", case["dialect"], *map(str, files)])
    assert done.exit_code == 0
    lines = [json.loads(line) for line in done.output.splitlines()]
    expect = case["expect"]
    wanted = set(expect.pop("diagnostics_include"))
    for line in lines:
        diagnostics = line.pop("diagnostics")
        assert line == expect
        assert all(found.keys() == {"code", "offset_bytes", "detail"} for found in diagnostics)
        assert wanted <= {found["code"] for found in diagnostics}
    assert len(lines) == 2


def test_standard_input_is_read_and_told_in_words() -> None:
    body = body_of("anthropic-one-valid-one-invalid-call")
    done = CliRunner().invoke(stream, ["explain", "--dialect", "anthropic", "-"], input=body)
    refusal = (
        "The arguments of write_file are cut off after 35 characters. Nothing was run. "
        "Send the call again with its arguments as exactly one complete JSON object."
    )
    assert done.output.splitlines() == [
        "-: finish reason tool_calls, 777 tokens in, 60 out",
        "  call toolu_x1: write_file {}",
        f"    must not run: {refusal}",
        '  call toolu_x2: read_file {"path": "b.txt"}',
        "  at byte 271: invalid_arguments: the arguments of write_file are cut off after 35 characters",
    ]


def test_a_file_that_is_not_there_is_a_usage_error() -> None:
    done = CliRunner().invoke(stream, ["explain", "--dialect", "gemini", "/nowhere/at/all"])
    assert done.exit_code != 0
    assert "/nowhere/at/all" in done.output
