import pytest

from builder_bridge.errors import (
    BridgeError,
    ContractMismatch,
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
from orchestrator.engine.patience import MAX_DAMAGED, Patience, is_passing


@pytest.mark.parametrize(
    ("fault", "passes"),
    [
        (PhoneLost, True),
        (PhoneUnavailable, True),
        (PhoneBusy, True),
        (TransferFault, True),
        (StorageFull, False),
        (PhoneUnauthorized, False),
        (ContractMismatch, False),
        (WorkspaceFault, False),
        (RouteUnavailable, False),
        (RunConflict, False),
    ],
)
def test_only_faults_that_may_pass_are_waited_for(fault: type[BridgeError], passes: bool) -> None:
    assert is_passing(fault("x")) is passes
    assert (Patience(60, 5, 0).next_wait_s(fault("x"), 1) is not None) is passes


def test_waits_grow_to_their_limit_and_begin_anew_once_the_phone_answers() -> None:
    patience = Patience(gone_after_s=60, max_wait_s=0.5, last_contact_s=0)
    assert [patience.next_wait_s(PhoneLost("x"), 1) for _ in range(5)] == [0.1, 0.2, 0.4, 0.5, 0.5]
    patience.saw_phone(2)
    assert patience.next_wait_s(PhoneLost("x"), 3) == 0.1


def test_a_phone_that_stays_away_is_given_up() -> None:
    patience = Patience(gone_after_s=60, max_wait_s=5, last_contact_s=10)
    assert patience.next_wait_s(PhoneLost("x"), 69) is not None
    assert patience.next_wait_s(PhoneLost("x"), 71) is None


def test_bytes_that_come_damaged_again_and_again_are_given_up() -> None:
    patience = Patience(gone_after_s=60, max_wait_s=5, last_contact_s=0)
    waits = [patience.next_wait_s(TransferFault("x"), 1) for _ in range(MAX_DAMAGED + 1)]
    assert waits.index(None) == MAX_DAMAGED
