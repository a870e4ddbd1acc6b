"""The history, replayed: what the derived tables must hold, and whether every entry was allowed when it was written.

A total that somebody lowers, lets the ledger spend, and puts back leaves no trace in the tables; here it shows, because
the charges themselves add up to more than the budget of that moment.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dalenius.accounting.event_json import from_json
from dalenius.accounting.filters import whole_units
from dalenius.accounting.guarantees import ZCDP, PureDP
from dalenius.ledger.budgets import Accounting, Budget
from dalenius.ledger.chain import Entry
from dalenius.ledger.prices import TOLERANCE, covers
from dalenius.ledger.projection import Projection, Question, require
from dalenius.ledger.requests import WHOLE


@dataclass
class Replay(Projection):
    """The state after so many entries, each of which was allowed when it was written."""

    def _follow(self, entry: Entry) -> None:
        data = entry.data  # every body is read, also of what decides nothing here
        self._apply(entry, data)
        if entry.kind == "suspension":
            require(data["action"] in {"suspend", "resume"}, "It neither suspends nor resumes.")
            require(bool(data.get("analyst")) != bool(data.get("dataset")), "It names nobody, or two at once.")
            require(bool(data["reason"]) and bool(data["by"]), "It does not say why, or by whom.")

    def _check_charge(self, question: Question, data: dict[str, Any]) -> None:
        """What was taken is the price of what was typed and covers the event, and the periods fit the budget."""
        budget = self.budgets[question.dataset]
        require((budget.period is None) == (question.periods == (WHOLE,)), "Its periods do not fit the budget.")
        price = budget.filter().price(question.epsilon, question.delta)
        due = price.rho if isinstance(price, ZCDP) else price.epsilon
        taken = _taken(question, budget)
        require(due <= taken * TOLERANCE, "It was charged less than its ε costs.")
        units = (whole_units(taken), whole_units(question.delta))
        require(question.units == units, "It was added up as something else than it cost.")
        require(covers(price, from_json(data["event"])), "Its event costs more than was charged.")

    def _check_room(self, question: Question, analyst: str, spent: tuple[int, int, int]) -> None:
        budget = self.budgets[question.dataset]
        cap = self.allotments[question.dataset, analyst] if analyst else budget.epsilon
        price: PureDP | ZCDP
        if budget.accounting is Accounting.ZCDP:
            price = ZCDP(_taken(question, budget), question.delta, budget.neighbors)
        else:
            price = PureDP(question.epsilon, budget.neighbors)
        guard = budget.filter(cap * TOLERANCE, spent[:2])
        require(guard.admits(price), "It did not fit into what was left.")


def _taken(question: Question, budget: Budget) -> float:
    if budget.accounting is not Accounting.ZCDP:
        return question.epsilon
    require(question.rho is not None, "It has no price.")
    return question.rho  # type: ignore[return-value]
