"""What every data set was allowed and what was spent of it, from the first entry of the history to the last.

What is left now is the ledger's own projection (`balances`). How it came to that is told by the entries: here they are
read, for the burn-down and for the report.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from sys import intern
from typing import TYPE_CHECKING, Any, NamedTuple

from dalenius.accounting.event_json import from_json
from dalenius.accounting.orders import SampledLoss
from dalenius.ledger.budgets import Budget

if TYPE_CHECKING:
    from dalenius.ledger.chain import Entry

_KINDS = frozenset({"budget", "allotment", "epoch", "charge", "grant"})


class Cap(NamedTuple):
    """A cap from now on: of an analyst, or of the data set ('')."""

    number: int
    time: str
    analyst: str
    epsilon: float | None  # None: the cap stays, but the people are new, and nothing is spent of any total


class Sum(NamedTuple):
    """What several charges add up to, as a filter takes it, and how many they are."""

    units: tuple[int, int] = (0, 0)
    sampled: tuple[SampledLoss, ...] = ()
    charges: int = 0

    def plus(self, spent: Spent) -> Sum:
        """With one more."""
        loss, delta = spent.units
        if spent.sampled is not None:
            return Sum((self.units[0], self.units[1] + delta), (*self.sampled, spent.sampled), self.charges + 1)
        return Sum((self.units[0] + loss, self.units[1] + delta), self.sampled, self.charges + 1)


class Spent(NamedTuple):
    """One charge, or one answer that was granted of old."""

    number: int
    time: str
    dataset: str
    epoch: int
    periods: tuple[str, ...]
    analyst: str  # '' is the owner
    epsilon: float
    units: tuple[int, int]  # as the ledger's filters have them
    alone: bool  # the analyst's allotment pays, not the data set: nothing new about anybody left
    sampled: SampledLoss | None = None  # sampled noise: it costs each total what its filter says, and that at most

    @property
    def payers(self) -> tuple[str, ...]:
        """Whose totals it is added to; '' is the data set."""
        return (self.analyst,) if self.alone or not self.analyst else ("", self.analyst)


@dataclass
class Account:
    """One data set: the caps in force, and what happened, in order."""

    budget: Budget
    epoch: int = 0
    allotments: dict[str, float] = field(default_factory=dict)
    caps: list[Cap] = field(default_factory=list)
    spent: list[Spent] = field(default_factory=list)


@dataclass
class Accounts:
    """All data sets, by name, and all charges, by number."""

    datasets: dict[str, Account] = field(default_factory=dict)
    charges: dict[int, Spent] = field(default_factory=dict)

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> Accounts:
        """The accounts that these entries tell."""
        found = cls()
        for entry in entries:
            if entry.kind in _KINDS:
                found.add(entry, entry.data)
        return found

    def add(self, entry: Entry, data: Mapping[str, Any]) -> None:
        """The next entry, and its body as it was read; one of another kind changes nothing."""
        match entry.kind:
            case "budget":
                budget = Budget.from_dict(data["budget"])
                account = self.datasets.setdefault(data["dataset"], Account(budget))
                account.budget = budget
                account.caps.append(Cap(entry.number, entry.time, "", budget.epsilon))
            case "allotment":
                account, analyst, epsilon = self.datasets[data["dataset"]], data["analyst"], data["epsilon"]
                account.allotments[analyst] = epsilon
                if epsilon == 0:
                    del account.allotments[analyst]
                account.caps.append(Cap(entry.number, entry.time, analyst, epsilon))
            case "epoch":
                account = self.datasets[data["dataset"]]
                account.epoch = data["epoch"]
                account.caps.append(Cap(entry.number, entry.time, "", None))
            case "charge":
                loss, delta = (int(each) for each in data["units"])
                spent = Spent(
                    entry.number,
                    entry.time,
                    data["dataset"],
                    data.get("epoch", 0),
                    tuple(map(intern, data["periods"])),
                    data["analyst"],
                    data["epsilon"],
                    (loss, delta),
                    "shares" in data,
                    SampledLoss(from_json(data["event"]), data["delta"]) if "losses" in data else None,
                )
                self.datasets[spent.dataset].spent.append(spent)
                self.charges[spent.number] = spent
            case "grant":
                charge = self.charges[data["charge"]]
                granted = charge._replace(number=entry.number, time=entry.time, analyst=data["analyst"], alone=True)
                self.datasets[charge.dataset].spent.append(granted)
