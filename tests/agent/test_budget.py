"""What a run may spend and what is said of it."""

from agent.budget import (
    Budget,
    Limit,
    Price,
    Spent,
    builds_exhausted,
    cost,
    exhausted,
    explain,
    is_near,
    render,
)
from agent.message import Usage


def test_each_limit_forbids_the_next_request_once_it_is_reached() -> None:
    budget = Budget(turns=2, tokens=100, money=1.0, wall_s=10)
    assert exhausted(budget, Spent(turns=1, input_tokens=60, output_tokens=39, money=0.9, wall_s=9)) is None
    assert exhausted(budget, Spent(turns=2)) is Limit.TURNS
    assert exhausted(budget, Spent(input_tokens=60, output_tokens=40)) is Limit.TOKENS
    assert exhausted(budget, Spent(money=1.0)) is Limit.MONEY
    assert exhausted(budget, Spent(wall_s=10)) is Limit.WALL_S


def test_spent_builds_forbid_builds_but_not_requests() -> None:
    spent = Spent(builds=3, phone_s=20)
    assert builds_exhausted(Budget(builds=3), spent) is Limit.BUILDS
    assert builds_exhausted(Budget(builds=None, phone_s=20), spent) is Limit.PHONE_S
    assert exhausted(Budget(builds=3), spent) is None


def test_cached_tokens_cost_their_own_price() -> None:
    usage = Usage(input_tokens=1_000_000, output_tokens=100_000, cached_input_tokens=400_000)
    assert cost(usage, Price(3, 15, 0.3)).money == 0.6 * 3 + 0.4 * 0.3 + 0.1 * 15
    assert cost(usage, Price(3, 15)).money == 3 + 1.5
    assert cost(usage, None) == Spent(
        input_tokens=1_000_000, cached_input_tokens=400_000, output_tokens=100_000
    )


def test_the_model_reads_only_limits_that_exist() -> None:
    budget = Budget(turns=100, builds=8, phone_s=1200)
    assert render(budget, Spent(turns=3, builds=2, phone_s=181.4)) == (
        "spent: 3 of 100 turns, 2 of 8 builds, 181 of 1200 s of phone time"
    )
    assert render(Budget(None, None, None, None, None, None), Spent(turns=3)) == ""


def test_a_reached_limit_is_named_with_both_figures() -> None:
    assert explain(Limit.MONEY, Budget(money=2.5), Spent(money=2.61)) == "2.61 of 2.5 US dollars are spent"


def test_the_model_is_told_once_three_quarters_are_gone() -> None:
    assert not is_near(Budget(turns=100), Spent(turns=74))
    assert is_near(Budget(turns=100), Spent(turns=75))
