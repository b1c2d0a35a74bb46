"""What follows from a model's message."""

from agent.decide import (
    Answer,
    AskAgain,
    Flaw,
    Flaws,
    Patience,
    RunTools,
    Stop,
    StopReason,
    decide,
    flaws_after,
)
from agent.message import Diagnostic, FinishReason, Message, Part, TextPart, ToolCall

GOOD = ToolCall("c1", "read_file", {"path": "a"})
BAD = ToolCall(
    "c2", "write_file", {}, fault="arguments of write_file are not JSON: cut off after 12 characters."
)


def message(
    *parts: Part, finish: FinishReason | None = FinishReason.STOP, codes: tuple[str, ...] = ()
) -> Message:
    return Message(parts, finish, diagnostics=tuple(Diagnostic(code, "detail", 0) for code in codes))


def test_executable_calls_run_whatever_word_ended_the_response() -> None:
    assert decide(message(GOOD), Flaws()) == RunTools((GOOD,))
    assert decide(message(GOOD, finish=FinishReason.TOOL_CALLS), Flaws()) == RunTools((GOOD,))


def test_a_bad_call_beside_a_good_one_gets_an_error_result() -> None:
    decision = decide(message(GOOD, BAD, finish=FinishReason.TOOL_CALLS), Flaws())
    assert isinstance(decision, RunTools)
    assert decision.calls == (GOOD,)
    assert [(r.call_id, r.content, r.is_error) for r in decision.refused] == [("c2", BAD.fault, True)]


def test_a_message_of_only_bad_calls_is_asked_for_again_with_their_results() -> None:
    decision = decide(message(BAD, finish=FinishReason.TOOL_CALLS), Flaws())
    assert isinstance(decision, AskAgain)
    assert (decision.flaw, len(decision.results), decision.text) == (Flaw.MALFORMED, 1, None)


def test_a_tool_word_without_a_call_is_told_with_the_diagnostics() -> None:
    decision = decide(message(finish=FinishReason.TOOL_CALLS, codes=("no_executable_tool_call",)), Flaws())
    assert isinstance(decision, AskAgain)
    assert "no_executable_tool_call" in (decision.text or "")


def test_flaws_in_a_row_end_the_run_with_what_was_odd() -> None:
    odd = message(finish=FinishReason.TOOL_CALLS, codes=("no_executable_tool_call",))
    decision = decide(odd, Flaws(malformed=3))
    assert decision == Stop(StopReason.MALFORMED, "no_executable_tool_call: detail")


def test_no_call_of_a_response_cut_by_length_runs() -> None:
    decision = decide(message(GOOD, finish=FinishReason.LENGTH), Flaws())
    assert isinstance(decision, AskAgain)
    assert decision.flaw is Flaw.CUT_OFF
    assert "smaller pieces" in decision.results[0].content


def test_no_call_of_a_truncated_response_runs() -> None:
    decision = decide(message(GOOD, finish=None, codes=("stream_truncated",)), Flaws())
    assert isinstance(decision, AskAgain)
    assert decision.results[0].is_error


def test_a_missing_finish_word_alone_is_a_normal_end() -> None:
    assert decide(message(TextPart("done"), finish=None), Flaws()) == Answer("done")


def test_a_call_written_as_text_is_never_an_answer() -> None:
    decision = decide(message(TextPart("<tool_call>…"), codes=("tool_call_in_text",)), Flaws())
    assert isinstance(decision, AskAgain)
    assert "tool interface" in (decision.text or "")


def test_empty_responses_are_asked_for_again_a_few_times() -> None:
    assert isinstance(decide(message(), Flaws(empty=1)), AskAgain)
    assert decide(message(), Flaws(empty=2)) == Stop(StopReason.NO_PROGRESS, "3 empty responses in a row")


def test_a_filtered_response_stops_the_run_and_says_so() -> None:
    decision = decide(message(TextPart("I "), finish=FinishReason.CONTENT_FILTER), Flaws())
    assert isinstance(decision, Stop)
    assert decision.reason is StopReason.CONTENT_FILTER


def test_flaws_count_in_a_row_by_kind_and_start_anew_after_a_sound_message() -> None:
    flaws = flaws_after(Flaws(), message(BAD, finish=FinishReason.TOOL_CALLS))
    flaws = flaws_after(flaws, message(GOOD, finish=FinishReason.LENGTH))
    assert flaws == Flaws(malformed=1, cut_off=1)
    assert flaws_after(flaws, message(GOOD, BAD)) == Flaws(malformed=2, cut_off=1)
    assert flaws_after(flaws, message(GOOD)) == Flaws()


def test_one_bad_call_in_each_message_does_not_go_on_for_ever() -> None:
    flaws, turns = Flaws(), 0
    while isinstance(decide(message(GOOD, BAD), flaws), RunTools):
        flaws, turns = flaws_after(flaws, message(GOOD, BAD)), turns + 1
    assert turns == Patience().malformed
