"""What a run may spend, what it has spent, and what is said of it to the model."""

from dataclasses import dataclass
from enum import StrEnum

from agent.message import Usage


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of a run; None is no limit.

    `tokens` counts input and output of all requests, `money` is in US dollars, `wall_s` is time that
    the run was at work (a run that was put down does not spend it), `phone_s` is time that builds of
    this run held a phone.
    """

    turns: int | None = 100
    tokens: int | None = None
    money: float | None = None
    wall_s: float | None = None
    builds: int | None = 30
    phone_s: float | None = None


@dataclass(frozen=True, slots=True)
class Spent:
    """Totals of a run; the names are those of `Budget` where one limits the other."""

    turns: int = 0
    input_tokens: int = 0
    cached_input_tokens: int = 0
    output_tokens: int = 0
    money: float = 0.0
    wall_s: float = 0.0
    builds: int = 0
    phone_s: float = 0.0

    @property
    def tokens(self) -> int:
        """Input and output tokens of all requests."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: "Spent") -> "Spent":
        return Spent(
            turns=self.turns + other.turns,
            input_tokens=self.input_tokens + other.input_tokens,
            cached_input_tokens=self.cached_input_tokens + other.cached_input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            money=self.money + other.money,
            wall_s=self.wall_s + other.wall_s,
            builds=self.builds + other.builds,
            phone_s=self.phone_s + other.phone_s,
        )


class Limit(StrEnum):
    """The kinds of limit a budget has."""

    TURNS = "turns"
    TOKENS = "tokens"
    MONEY = "money"
    WALL_S = "wall_s"
    BUILDS = "builds"
    PHONE_S = "phone_s"


_RUN_LIMITS = (Limit.TURNS, Limit.TOKENS, Limit.MONEY, Limit.WALL_S)
_BUILD_LIMITS = (Limit.BUILDS, Limit.PHONE_S)
_UNITS = {
    Limit.TURNS: "turns",
    Limit.TOKENS: "tokens",
    Limit.MONEY: "US dollars",
    Limit.WALL_S: "s of time",
    Limit.BUILDS: "builds",
    Limit.PHONE_S: "s of phone time",
}


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens of a model; a provider's catalogue entry or settings give it."""

    input: float
    output: float
    cached_input: float | None = None


def cost(usage: Usage, price: Price | None) -> Spent:
    """Give what one response cost; without a price its money counts as zero."""
    money = 0.0
    if price is not None:
        cached = usage.cached_input_tokens
        cached_price = price.input if price.cached_input is None else price.cached_input
        money = (
            (usage.input_tokens - cached) * price.input
            + cached * cached_price
            + usage.output_tokens * price.output
        ) / 1e6
    return Spent(
        input_tokens=usage.input_tokens,
        cached_input_tokens=usage.cached_input_tokens,
        output_tokens=usage.output_tokens,
        money=money,
    )


def exhausted(budget: Budget, spent: Spent) -> Limit | None:
    """Name the first limit that forbids another request, None while one may go out."""
    return _first_reached(_RUN_LIMITS, budget, spent)


def builds_exhausted(budget: Budget, spent: Spent) -> Limit | None:
    """Name the limit that forbids another build, None while one may start."""
    return _first_reached(_BUILD_LIMITS, budget, spent)


def _first_reached(limits: tuple[Limit, ...], budget: Budget, spent: Spent) -> Limit | None:
    for limit in limits:
        allowed = getattr(budget, limit)
        if allowed is not None and getattr(spent, limit) >= allowed:
            return limit
    return None


def explain(limit: Limit, budget: Budget, spent: Spent) -> str:
    """Say in one clause which limit is reached, with both figures and the unit."""
    return f"{_amount(getattr(spent, limit))} of {_amount(getattr(budget, limit))} {_UNITS[limit]} are spent"


def render(budget: Budget, spent: Spent) -> str:
    """Give one line on what is spent and left of each limited thing; empty where nothing is limited."""
    clauses = [
        f"{_amount(getattr(spent, limit))} of {_amount(getattr(budget, limit))} {_UNITS[limit]}"
        for limit in Limit
        if getattr(budget, limit) is not None
    ]
    return "spent: " + ", ".join(clauses) if clauses else ""


def is_near(budget: Budget, spent: Spent) -> bool:
    """Say whether three quarters of any limit are spent, so that the model should be told."""
    return any(
        (allowed := getattr(budget, limit)) is not None and getattr(spent, limit) >= 0.75 * allowed
        for limit in Limit
    )


def _amount(value: float) -> str:
    return f"{value:.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"
