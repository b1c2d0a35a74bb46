"""When a failed request goes out again, and when it must not."""

from hypothesis import given
from hypothesis import strategies as st

from agent.errors import KeyRefused, PlanExhausted, ProviderOverloaded, ResponseBroken
from agent.retry import RetryPolicy, wait_before_retry_s

POLICY = RetryPolicy(attempts=4, first_wait_s=2, longest_wait_s=10, longest_asked_s=120)


def wait(
    fault: ProviderOverloaded | KeyRefused | PlanExhausted | ResponseBroken,
    attempt: int = 1,
    *,
    used: bool = False,
) -> float | None:
    return wait_before_retry_s(fault, attempt, response_used=used, jitter=0.999, policy=POLICY)


def test_waits_double_up_to_a_cap_and_then_end() -> None:
    waits = [wait(ProviderOverloaded("busy"), attempt) for attempt in (1, 2, 3, 4)]
    assert [round(w, 1) if w else w for w in waits] == [2.0, 4.0, 8.0, None]


def test_the_providers_own_wait_wins() -> None:
    assert 17 <= (wait(ProviderOverloaded("busy", retry_after_s=17)) or 0) <= 18


def test_a_wait_of_hours_is_shown_instead_of_waited_for() -> None:
    assert wait(ProviderOverloaded("busy", retry_after_s=7200)) is None


def test_keys_and_plans_are_not_tried_again() -> None:
    assert wait(KeyRefused("no")) is None
    assert wait(PlanExhausted("empty")) is None


def test_nothing_is_sent_again_once_something_of_the_response_was_used() -> None:
    assert wait(ResponseBroken("cut", response_started=True)) is not None
    assert wait(ResponseBroken("cut", response_started=True), used=True) is None


@given(st.integers(1, 10), st.floats(0, 0.999), st.none() | st.floats(0, 1000))
def test_a_wait_is_never_negative_nor_longer_than_what_is_shown(
    attempt: int, jitter: float, asked_s: float | None
) -> None:
    fault = ProviderOverloaded("busy", retry_after_s=asked_s)
    given_s = wait_before_retry_s(fault, attempt, response_used=False, jitter=jitter, policy=POLICY)
    assert given_s is None or max(0, asked_s or 0) <= given_s <= max(
        POLICY.longest_wait_s, (asked_s or 0) + 1
    )
