"""Every recorded response means what its case says, however its bytes are cut."""

import pytest

from tests.agent.wire.bodies import Case, bytewise, codes, load_cases, normalized, read, seeded_cuts

CASES = load_cases()
CUTS = 50


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_recorded_body_gives_its_message(case: Case) -> None:
    message = read(case.dialect, [case.body])
    assert normalized(message) == case.expect
    assert case.codes <= codes(message)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_cuts_of_a_body_do_not_matter(case: Case) -> None:
    whole = read(case.dialect, [case.body])
    assert read(case.dialect, bytewise(case.body)) == whole
    for pieces in seeded_cuts(case.id, case.body, CUTS):
        assert read(case.dialect, pieces) == whole


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_call_that_must_not_run_says_why_and_what_to_send_again(case: Case) -> None:
    for call in read(case.dialect, [case.body]).tool_calls:
        if call.fault is not None:
            assert "Nothing was run." in call.fault
            assert "Send the call again" in call.fault or "Split the work" in call.fault


def test_there_are_cases_of_every_dialect() -> None:
    assert len(CASES) > 400
    assert {case.dialect.value for case in CASES} == {
        "openai-chat",
        "openai-responses",
        "anthropic",
        "gemini",
    }
