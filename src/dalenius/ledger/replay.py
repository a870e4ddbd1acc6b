"""The history, replayed: what the derived tables must hold, and whether every entry was allowed when it was written.

A total that somebody lowers, lets the ledger spend, and puts back leaves no trace in the tables; here it shows, because
the charges themselves add up to more than the budget of that moment.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from dalenius.accounting.filters import whole_units
from dalenius.accounting.guarantees import ZCDP, PureDP
from dalenius.errors import DaleniusError
from dalenius.ledger.budgets import Accounting, Budget
from dalenius.ledger.chain import Entry
from dalenius.ledger.requests import WHOLE

# Another machine's logarithm may differ in the last digit of a price or a cap.
_TOLERANCE = 1 + 1e-9


class BrokenRuleError(Exception):
    """An entry that the ledger would not have written."""


@dataclass
class Replay:
    """The state after so many entries."""

    budgets: dict[str, Budget] = field(default_factory=dict)
    allotments: dict[tuple[str, str], float] = field(default_factory=dict)
    totals: dict[tuple[str, str, str], tuple[int, int, int]] = field(default_factory=dict)
    charges: dict[int, dict[str, Any]] = field(default_factory=dict)
    states: dict[int, tuple[str, int | None]] = field(default_factory=dict)
    releases: dict[int, str] = field(default_factory=dict)
    grants: dict[tuple[int, str], int] = field(default_factory=dict)
    epochs: dict[str, int] = field(default_factory=dict)
    retries: dict[tuple[str, str], tuple[str, int]] = field(default_factory=dict)

    def add(self, entry: Entry) -> None:
        """The next entry; raises `BrokenRuleError` if it was not allowed."""
        try:
            self._add(entry, entry.data)
        except (KeyError, TypeError, ValueError, DaleniusError):
            raise BrokenRuleError("It refers to what is not there, or is malformed.") from None

    def _add(self, entry: Entry, data: dict[str, Any]) -> None:
        match entry.kind:
            case "budget":
                after = Budget.from_dict(data["budget"])
                if data["dataset"] in self.budgets:
                    self.budgets[data["dataset"]].check_change(after)
                self.budgets[data["dataset"]] = after
            case "allotment" if data["epsilon"] == 0:
                del self.allotments[data["dataset"], data["analyst"]]
            case "allotment":
                _require(data["dataset"] in self.budgets, "The data set has no budget.")
                self.allotments[data["dataset"], data["analyst"]] = data["epsilon"]
            case "suspension":
                _require(data["action"] in {"suspend", "resume"}, "It neither suspends nor resumes.")
                _require(bool(data.get("analyst")) != bool(data.get("dataset")), "It names nobody, or two at once.")
                _require(bool(data["reason"]) and bool(data["by"]), "It does not say why, or by whom.")
            case "epoch":
                self._begin(data["dataset"], data["epoch"], data["reason"])
            case "charge":
                self._check_price(data)
                self._remember(data, entry.number)
                self._spend(data, tuple(dict.fromkeys(("", data["analyst"]))))
                self.charges[entry.number] = data
                self.states[entry.number] = ("claimed", None)
            case "answer":
                self._leave("claimed", data["charge"])
                self.states[data["charge"]] = ("answered", entry.number)
                self.releases[data["charge"]] = data["release"]
            case "failure":
                self._leave("claimed", data["charge"])
                self.states[data["charge"]] = ("failed", None)
            case "grant":
                self._leave("answered", data["charge"])
                place = data["charge"], data["analyst"]
                _require(self.releases[data["charge"]] == data["release"], "It grants another release.")
                _require(place not in self.grants, "It grants the same answer twice.")
                self._remember(data, data["charge"])
                self._spend(self.charges[data["charge"]], (data["analyst"],))  # which checks that it is of these people
                self.grants[place] = entry.number

    def _begin(self, dataset: str, epoch: int, reason: str) -> None:
        """New people: what was spent on those before is not theirs."""
        _require(dataset in self.budgets, "The data set has no budget.")
        _require(epoch == self.epochs.get(dataset, 0) + 1, "It skips or repeats an epoch.")
        _require(bool(reason), "It gives no reason.")
        self.epochs[dataset] = epoch
        self.totals = {place: spent for place, spent in self.totals.items() if place[0] != dataset}

    def _remember(self, data: dict[str, Any], question: int) -> None:
        """A request that its client named is paid for once."""
        if "retry" in data:
            key, body = data["retry"]
            _require((data["analyst"], key) not in self.retries, "It pays for the same request twice.")
            self.retries[data["analyst"], key] = body, question

    def _check_price(self, data: dict[str, Any]) -> None:
        """What was taken is the price of what was typed, and the periods fit the budget."""
        budget = self.budgets[data["dataset"]]
        _require((budget.period is None) == (data["periods"] == [WHOLE]), "Its periods do not fit the budget.")
        price = budget.filter().price(data["epsilon"], data["delta"])
        due = price.rho if isinstance(price, ZCDP) else price.epsilon
        taken = data["rho"] if budget.accounting is Accounting.ZCDP else data["epsilon"]
        _require(due <= taken * _TOLERANCE, "It was charged less than its ε costs.")
        units = [str(whole_units(taken)), str(whole_units(data["delta"]))]
        _require(data["units"] == units, "It was added up as something else than it cost.")

    def _spend(self, charge: dict[str, Any], totals: tuple[str, ...]) -> None:
        dataset = charge["dataset"]
        budget = self.budgets[dataset]
        _require(charge.get("epoch", 0) == self.epochs.get(dataset, 0), "It was charged to other people.")
        loss, delta = (int(each) for each in charge["units"])
        if budget.accounting is Accounting.ZCDP:
            price: PureDP | ZCDP = ZCDP(charge["rho"], charge["delta"], budget.neighbors)
        else:
            price = PureDP(charge["epsilon"], budget.neighbors)
        for period in charge["periods"]:
            for analyst in totals:
                cap = self.allotments[dataset, analyst] if analyst else budget.epsilon
                before = self.totals.get((dataset, period, analyst), (0, 0, 0))
                guard = budget.filter(cap * _TOLERANCE, (before[0], before[1]))
                _require(guard.admits(price), "It did not fit into what was left.")
                self.totals[dataset, period, analyst] = before[0] + loss, before[1] + delta, before[2] + 1

    def _leave(self, state: str, charge: int) -> None:
        _require(self.states[charge][0] == state, f"The question was not {state} then.")


def _require(holds: bool, why: str) -> None:
    if not holds:
        raise BrokenRuleError(why)
