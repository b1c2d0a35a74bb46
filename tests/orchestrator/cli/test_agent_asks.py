"""How a person at a terminal is asked by the agent, and what they see."""

import codecs
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from orchestrator.cli.terminal import plain
from tests.orchestrator.workspaces import make_workspace

SCRIPT = """
schema = 1
title = "ask"
[[turn]]
text = "\\u001b[2J\\u001b]0;title\\u0007I write."
calls = [{ tool = "write_file", arguments = { path = "a.txt", content = "one\\u001b[8m hidden" } }]
[[turn]]
calls = [{ tool = "write_file", arguments = { path = "b.txt", content = "two" } }]
[[turn]]
expects = { results = [{ tool = "write_file", contains = ["the person refused write_file: not b"] }] }
text = "Done."
"""
AT_MOST_S = 300.0
PROMPT = "run it? [y]es, [n]o"


class Terminal:
    """A command whose person sits at a pseudo terminal."""

    def __init__(self, data: Path, *arguments: str) -> None:
        self._ours, theirs = os.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "orchestrator", "agent", *arguments],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, "POCKETBUILD_DATA_DIR": str(data)},
            start_new_session=True,
            # What a shell started in the background ignores this signal, and so would all that it starts.
            preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
        )
        os.close(theirs)
        self.seen = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def wait_for(self, text: str, times: int = 1) -> None:
        """Read until a text was seen so often."""
        until_s = time.monotonic() + AT_MOST_S
        while self.seen.count(text) < times:
            assert select.select([self._ours], [], [], max(0.0, until_s - time.monotonic()))[0], self.seen
            self.seen += self._decoder.decode(os.read(self._ours, 1 << 16))

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def end(self) -> int:
        """Read to the end and give the exit code."""
        with suppress(OSError):  # nobody holds the other side any more
            self.wait_for("\0")
        return self.process.wait(AT_MOST_S)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._ours)


@pytest.fixture
def opened() -> Iterator[list[Terminal]]:
    terminals: list[Terminal] = []
    yield terminals
    for terminal in terminals:
        terminal.close()


def test_a_person_answers_stops_at_a_question_and_is_asked_again_after_resuming(
    tmp_path: Path, opened: list[Terminal]
) -> None:
    script = tmp_path / "script.toml"
    script.write_text(SCRIPT)
    workspace = make_workspace(tmp_path / "w")
    how = ("--script", str(script), "--verify", "never")
    first = Terminal(tmp_path / "data", "write", "--workspace", str(workspace), "--ask", *how)
    opened.append(first)
    first.wait_for(PROMPT)
    assert ["write_file: a.txt" in first.seen, "content: one\ufffd[8m hidden" in first.seen] == [True, True]
    assert "\x1b[2J" not in first.seen
    assert "\x07" not in first.seen
    first.type("y\n")
    first.wait_for(PROMPT, 2)
    first.process.send_signal(signal.SIGINT)
    assert first.end() == 130
    found = re.search(r"pocketbuild agent --resume ([\w-]+)`", first.seen)
    assert found, first.seen
    assert (workspace / "a.txt").read_text() == "one\x1b[8m hidden"

    again = Terminal(tmp_path / "data", "--resume", found[1], *how)
    opened.append(again)
    again.wait_for(PROMPT)
    assert "write_file: b.txt" in again.seen
    again.type("not b\n")
    assert again.end() == 0, again.seen
    assert "answered" in again.seen
    assert not (workspace / "b.txt").exists()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\tb\nc", "a\tb\nc"),
        ("\x1b[31mred\r\x08", "\ufffd[31mred\ufffd\ufffd"),
        ("\x9b2J\x7f", "\ufffd2J\ufffd"),
        ("user\u202etxt.exe\u2066", "user\ufffdtxt.exe\ufffd"),
        ("grün 🚀", "grün 🚀"),
    ],
)
def test_a_terminal_gets_nothing_to_obey(text: str, shown: str) -> None:
    assert plain(text) == shown
