"""What a run of the service's agent was asked to do, kept beside its transcript to be gone on with."""

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from agent.approval import Mode
from agent.budget import Budget
from agent.entries import Began
from agent.runner import Equipment, RunResult, Verify, resume, run
from orchestrator.agent_run import ModelChoice

ORDER_FILE = "order.json"


@dataclass(frozen=True, slots=True)
class AgentOrder:
    """What an agent is to do, with which model and how freely; `phone` pins its builds to one phone."""

    assignment: str
    workspace: Path
    choice: ModelChoice
    mode: Mode
    verify: Verify
    budget: Budget
    phone: str | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """What is different when a run goes on; None stands for as before.

    `limits` holds new limits of the budget by name, `say` is a word more to the model.
    """

    say: str | None = None
    mode: Mode | None = None
    provider: str | None = None
    model: str | None = None
    effort: str | None = None
    limits: dict[str, int | float] | None = None

    def applied(self, order: AgentOrder) -> AgentOrder:
        """Give the order as it is from now on; another provider takes no model over from the one before."""
        choice = order.choice
        if self.provider is not None and self.provider != choice.provider:
            choice = ModelChoice(provider=self.provider)
        choice = replace(choice, model=self.model or choice.model, effort=self.effort or choice.effort)
        budget = Budget(**{**asdict(order.budget), **(self.limits or {})})
        return replace(order, choice=choice, mode=self.mode or order.mode, budget=budget)


def write_order(folder: Path, order: AgentOrder) -> None:
    """Keep an order in the folder of its run, whole or not at all. Blocking."""
    choice = order.choice
    kept = {
        "assignment": order.assignment,
        "workspace": str(order.workspace),
        "choice": {"provider": choice.provider, "model": choice.model, "effort": choice.effort},
        "mode": order.mode,
        "verify": order.verify,
        "budget": asdict(order.budget),
        "phone": order.phone,
    }
    partial = folder / f"{ORDER_FILE}.part"
    partial.write_text(json.dumps(kept))
    partial.replace(folder / ORDER_FILE)


def read_order(folder: Path) -> AgentOrder | None:
    """Give the order of a run that the service began; None for one that it did not. Blocking."""
    try:
        kept: dict[str, Any] = json.loads((folder / ORDER_FILE).read_text())
    except FileNotFoundError:
        return None
    return AgentOrder(
        assignment=kept["assignment"],
        workspace=Path(kept["workspace"]),
        choice=ModelChoice(**kept["choice"]),
        mode=Mode(kept["mode"]),
        verify=Verify(kept["verify"]),
        budget=Budget(**kept["budget"]),
        phone=kept["phone"],
    )


def order_of(began: Began) -> AgentOrder:
    """Make an order of the beginning of a transcript, for a run that the command line began."""
    return AgentOrder(
        assignment=began.assignment,
        workspace=Path(began.workspace),
        choice=ModelChoice(provider=began.provider, model=began.model),
        mode=Mode(began.options.get("mode", Mode.YES)),
        verify=Verify(began.options.get("verify", Verify.CHANGED)),
        budget=began.budget,
    )


async def carry_out(
    order: AgentOrder, equipment: Equipment, run_id: str, *, is_begun: bool, say: str | None = None
) -> RunResult:
    """Work on an order: from its beginning, or where its transcript ends, perhaps with a further word."""
    if is_begun:
        return await resume(equipment, budget=order.budget, say=say)
    return await run(
        order.assignment,
        order.workspace,
        equipment,
        run_id=run_id,
        budget=order.budget,
        verify=order.verify,
    )
