"""Runs of an agent as the command line shows them, whatever a model and its tools have said."""

import json

import pytest

from agent.budget import Budget
from agent.entries import Added, Began, Entry, entry_to_json
from agent.message import ToolResult
from agent.show import to_markdown
from orchestrator.cli.terminal import plain
from orchestrator.cli.transcript import as_json, as_text

CONTENT = "é \udcff \x1b[2J\u202e end"
ENTRIES: list[Entry] = [
    Began("r1", "2026-11-30T12:00:00+00:00", "fix it", "/w", "zai", "glm", "openai-chat", Budget()),
    Added(ToolResult("c1", "read_file", CONTENT)),
]


def test_bytes_that_are_no_text_are_shown_as_json_that_says_the_same() -> None:
    lines = as_json(ENTRIES).encode().splitlines()
    assert [json.loads(line) for line in lines] == json.loads(json.dumps([*map(entry_to_json, ENTRIES)]))


@pytest.mark.parametrize("render", [as_text, to_markdown])
def test_nothing_that_a_terminal_obeys_is_shown(render: object) -> None:
    assert callable(render)
    shown = plain(render(ENTRIES))
    assert shown.encode().decode() == shown
    assert "é \ufffd \ufffd[2J\ufffd end" in shown
