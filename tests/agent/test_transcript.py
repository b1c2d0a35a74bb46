"""The transcript: nothing written is lost, nothing torn is believed, and a run stands where it stood."""

import json
import resource
from pathlib import Path

import pytest

from agent.budget import Budget, Spent
from agent.compact import Fold
from agent.entries import Added, Began, Entry, Folded, Resumed, Starting, Stopped, TurnEnded, Unknown
from agent.errors import TranscriptFault
from agent.message import (
    Diagnostic,
    FinishReason,
    Message,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolResult,
    Usage,
    UserMessage,
)
from agent.redact import Redactor
from agent.standing import Standing
from agent.transcript import FILE_NAME, Transcript, read_ends, read_transcript

BEGAN = Began(
    "r1", "2026-11-30T12:00:00+00:00", "fix it", "/w", "scripted", "m", "openai-chat", Budget(turns=5)
)
CALLS = (ToolCall("c1", "read_file", {"path": "a"}, raw_id="x"), ToolCall("c2", "edit_file", {}, fault="cut"))
MESSAGE = Message(
    (ReasoningPart("hm", {"anthropic": {"signature": "s"}}), TextPart("\ud800 ok"), *CALLS),
    FinishReason.TOOL_CALLS,
    Usage(10, 5, 2, 1),
    (Diagnostic("id_missing", "no id", 12),),
)
R1, R2 = ToolResult("c1", "read_file", "text"), ToolResult("c2", "edit_file", "cut", is_error=True)
ENTRIES: list[Entry] = [
    BEGAN,
    Added(UserMessage("fix it")),
    Added(MESSAGE, Spent(turns=1, input_tokens=10)),
    Starting("c2", {"undo": 1}),
    Added(R2, Spent(builds=1), {"changed": True}),
    Added(R1),
    Folded(Fold(digests=True)),
    TurnEnded(Spent(turns=1, input_tokens=10, builds=1, wall_s=2.5)),
    Resumed("2026-11-30T13:00:00+00:00", Budget(turns=9), "scripted", "m"),
    Stopped("2026-11-30T13:00:01+00:00", "green", "built", "done", Spent(turns=1)),
]


def write(folder: Path, entries: list[Entry], redactor: Redactor | None = None) -> None:
    with Transcript(folder, redactor or Redactor()) as transcript:
        for entry in entries:
            transcript.append(entry)


def test_a_disk_that_takes_no_more_is_told_as_a_fault_of_the_transcript(tmp_path: Path) -> None:
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    with Transcript(tmp_path, Redactor()) as transcript:
        transcript.append(BEGAN)
        resource.setrlimit(resource.RLIMIT_FSIZE, ((tmp_path / FILE_NAME).stat().st_size, old[1]))
        try:
            with pytest.raises(TranscriptFault, match="cannot be written: File too large"):
                transcript.append(Added(R1))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, old)
    assert read_transcript(tmp_path) == [BEGAN]


def test_every_kind_of_entry_comes_back_as_it_was(tmp_path: Path) -> None:
    write(tmp_path, ENTRIES)
    assert read_transcript(tmp_path) == ENTRIES


def test_a_torn_last_line_is_not_believed_and_written_over(tmp_path: Path) -> None:
    write(tmp_path, ENTRIES[:2])
    with (tmp_path / FILE_NAME).open("ab") as file:
        file.write(b'{"entry":"added","item":{"item":"us')
    assert read_transcript(tmp_path) == ENTRIES[:2]
    write(tmp_path, ENTRIES[2:3])
    assert read_transcript(tmp_path) == ENTRIES[:3]


def test_one_run_is_open_in_one_process_only(tmp_path: Path) -> None:
    with Transcript(tmp_path, Redactor()), pytest.raises(TranscriptFault, match="open in another process"):
        Transcript(tmp_path, Redactor())


def test_a_newer_schema_is_refused_and_an_unknown_entry_is_kept(tmp_path: Path) -> None:
    write(tmp_path, [BEGAN, Unknown({"entry": "dreamt", "of": "sheep"})])
    assert read_transcript(tmp_path)[1] == Unknown({"entry": "dreamt", "of": "sheep"})
    path = tmp_path / FILE_NAME
    path.write_text(path.read_text().replace('"schema":1', '"schema":2'))
    with pytest.raises(TranscriptFault, match="has schema 2"):
        read_transcript(tmp_path)


def test_only_its_owner_can_read_a_transcript(tmp_path: Path) -> None:
    write(tmp_path / "run", ENTRIES)
    assert (tmp_path / "run" / FILE_NAME).stat().st_mode & 0o777 == 0o600


def test_secrets_are_taken_out_and_calls_that_held_one_are_marked(tmp_path: Path) -> None:
    secret = "my-secret-token"
    call = ToolCall("c1", "write_file", {"path": "a", "content": secret})
    write(tmp_path, [BEGAN, Added(Message((call,)))], Redactor([secret]))
    assert secret not in (tmp_path / FILE_NAME).read_text()
    assert json.loads((tmp_path / FILE_NAME).read_text().splitlines()[1])["redacted"] is True
    assert Standing.replay(read_transcript(tmp_path)).unsafe == {"c1"}


def test_results_stand_in_the_order_of_their_calls_whatever_ended_first() -> None:
    standing = Standing.replay(ENTRIES[:6])
    assert standing.items == [UserMessage("fix it"), MESSAGE, R1, R2]
    assert (standing.pending, standing.earlier, standing.results) == (None, {}, {})
    assert standing.spent == Spent(turns=1, input_tokens=10, builds=1)
    assert standing.memory == {"changed": True}


def test_a_run_that_was_killed_between_two_results_still_has_its_message_to_act_upon() -> None:
    standing = Standing.replay(ENTRIES[:5])
    assert standing.pending == MESSAGE
    assert standing.results == {"c2": R2}
    assert standing.earlier == {"c2": {"undo": 1}}


def test_a_resumed_run_has_its_new_budget_and_counts_flaws_anew() -> None:
    standing = Standing.replay(ENTRIES[:9])
    assert (standing.budget, standing.stopped) == (Budget(turns=9), None)


def test_a_transcript_that_does_not_begin_with_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TranscriptFault):
        Standing.replay(ENTRIES[1:])


def test_what_one_model_signed_does_not_go_to_another() -> None:
    signed = Message((ReasoningPart("hm", {"anthropic": {"signature": "s"}}), TextPart("ok")))
    entries: list[Entry] = [BEGAN, Added(UserMessage("fix it")), Added(signed)]
    same = Standing.replay([*entries, Resumed("", Budget(), "scripted", "m")])
    other = Standing.replay([*entries, Resumed("", Budget(), "scripted", "n")])
    assert same.pending == signed
    assert other.pending == signed.without_provider_data()
    again = [*entries, Resumed("", Budget(), "scripted", "n"), Added(UserMessage("go on")), Added(signed)]
    kept = Standing.replay([*again, Resumed("", Budget(), "scripted", "n")])
    assert kept.items[-1] == signed


def test_both_ends_are_found_however_long_lines_are_and_whatever_is_torn(tmp_path: Path) -> None:
    assert read_ends(tmp_path) == (None, None)
    with Transcript(tmp_path, Redactor()) as transcript:
        transcript.append(BEGAN)
        assert read_ends(tmp_path) == (BEGAN, BEGAN)
        for size_chars in (10, 63_000, 66_000, 200_000):
            long = Added(UserMessage("x" * size_chars))
            transcript.append(long)
            assert read_ends(tmp_path) == (BEGAN, long)
    file = tmp_path / FILE_NAME
    whole = file.read_bytes()
    file.write_bytes(whole + b'{"entry": "add' + b"y" * 70_000)
    assert read_ends(tmp_path) == (BEGAN, long)
    file.write_bytes(whole[:20])
    assert read_ends(tmp_path) == (None, None)
