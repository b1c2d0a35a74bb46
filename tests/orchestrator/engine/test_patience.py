import pytest

from builder_bridge.errors import (
    BridgeError,
    ContractMismatch,
    HostStorageFull,
    PhoneBusy,
    PhoneLost,
    PhoneUnauthorized,
    PhoneUnavailable,
    RouteUnavailable,
    RunConflict,
    StorageFull,
    TransferFault,
    WorkspaceFault,
)
from orchestrator.engine.patience import MAX_DAMAGED, Patience


@pytest.mark.parametrize(
    ("fault", "passes"),
    [
        (PhoneLost, True),
        (PhoneUnavailable, True),
        (PhoneBusy, True),
        (TransferFault, True),
        (StorageFull, False),
        (HostStorageFull, False),
        (PhoneUnauthorized, False),
        (ContractMismatch, False),
        (WorkspaceFault, False),
        (RouteUnavailable, False),
        (RunConflict, False),
    ],
)
def test_only_faults_that_may_pass_are_waited_for(fault: type[BridgeError], passes: bool) -> None:
    assert fault.is_passing is passes
    assert (Patience(60, 5, 0).next_wait_s(fault("x"), 1) is not None) is passes


def test_waits_grow_to_their_limit_and_begin_anew_once_the_phone_answers() -> None:
    patience = Patience(gone_after_s=60, max_wait_s=0.5, last_contact_s=0)
    assert [patience.next_wait_s(PhoneLost("x"), 1) for _ in range(5)] == [0.1, 0.2, 0.4, 0.5, 0.5]
    patience.saw_phone(2)
    assert patience.next_wait_s(PhoneLost("x"), 3) == 0.1


def test_a_phone_that_answers_and_is_busy_is_asked_ever_more_seldom() -> None:
    patience = Patience(gone_after_s=60, max_wait_s=0.5, last_contact_s=0)
    waits = []
    for now_s in range(0, 400, 100):
        patience.saw_phone(now_s)
        waits.append(patience.next_wait_s(PhoneBusy("x"), now_s))
    assert waits == [0.1, 0.2, 0.4, 0.5]


def test_a_fault_that_lasts_is_news_once_and_again_after_the_phone_was_seen() -> None:
    patience = Patience(gone_after_s=60, max_wait_s=5, last_contact_s=0)
    told = [
        patience.is_news(fault) for fault in (PhoneLost("x"), PhoneLost("x"), PhoneLost("y"), PhoneBusy("y"))
    ]
    assert told == [True, False, True, True]
    patience.saw_phone(1)
    assert patience.is_news(PhoneBusy("y"))


def test_a_phone_that_stays_away_is_given_up() -> None:
    patience = Patience(gone_after_s=60, max_wait_s=5, last_contact_s=10)
    assert patience.next_wait_s(PhoneLost("x"), 69) is not None
    assert patience.next_wait_s(PhoneLost("x"), 71) is None


def test_bytes_that_come_damaged_again_and_again_are_given_up() -> None:
    patience = Patience(gone_after_s=60, max_wait_s=5, last_contact_s=0)
    waits = [patience.next_wait_s(TransferFault("x"), 1) for _ in range(MAX_DAMAGED + 1)]
    assert waits.index(None) == MAX_DAMAGED
