"""A curator behind a URL as a target: it is somebody's, and every answer is paid out of a real budget.

The columns of its table are given the names that attacks use by a subquery, so that any table will do that has a whole
number for everybody.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dalenius.accounting import conversions
from dalenius.accounting.guarantees import ZCDP
from dalenius.audit.targets.curators import Curated
from dalenius.audit.targets.questions import COUNT, SUM, People, Question, Secret
from dalenius.audit.targets.scene import VICTIM, Scene
from dalenius.audit.targets.target import Answer, TargetRefusal
from dalenius.errors import InputError
from dalenius.ledger.budgets import Accounting

if TYPE_CHECKING:
    from dalenius.ledger.budgets import Balance
    from dalenius.remote import RemoteAnalyst


@dataclass(frozen=True, slots=True)
class Columns:
    """What attacks call things, in words of the table's own columns."""

    person: str = "person"
    secret: str = "secret"  # noqa: S105 (a column)
    amount: str = "amount"
    word: str = "word"

    def read_from(self, table: str) -> str:
        """The table, with the names that attacks use."""
        if self == Columns():
            return table
        pairs = [(self.person, "person"), (self.secret, "secret"), (self.amount, "amount"), (self.word, "word")]
        listed = ", ".join(f"({of}) AS {name}" for of, name in pairs if of)
        return f"(SELECT {listed} FROM {table})"  # noqa: S608 (an analyst's own words)


class Remote(Curated):
    """A server's table, through an analyst's token.

    Args:
        scene: The people.
        analyst: Whose token it is.
        epsilon: The price of one question; with ``of_all``, the share of what may be spent.
        table: The table there.
        columns: What attacks call its columns.
        among: So many attacks, this one among them, share what is left: it spends its part, and leaves the others'.
        of_all: Whether one question is to cost a share of all that may be spent.
    """

    about = "a curator behind a URL, paid from a real budget"

    def __init__(
        self,
        scene: Scene,
        analyst: RemoteAnalyst,
        *,
        epsilon: float,
        table: str,
        columns: Columns | None = None,
        among: int = 1,
        of_all: bool = False,
    ) -> None:
        dataset = str(analyst.table(table)["dataset"])  # a table that is not there is named before anything is asked
        super().__init__(
            scene, analyst, epsilon=epsilon, table=(columns or Columns()).read_from(table), dataset=dataset
        )
        self._before = _spent(self._balance())
        self._left_for_others = 0.0
        if among > 1:
            self._left_for_others = _counted(self._balance(), self.worst_price()) * (among - 1) / among
        if of_all:
            self._epsilon = epsilon * self.worst_price()

    def answer(self, question: Question) -> Answer:
        """What the server releases, within this attack's part of the budget."""
        if self._left_for_others:
            balance = self._balance()
            left = _counted(balance, balance.remaining_epsilon) - _counted(balance, self._epsilon)
            if left < self._left_for_others:
                raise TargetRefusal("This attack's part of the budget is spent.", final=True)
        return super().answer(question)

    def check(self) -> None:
        """Asks for the price of what attacks ask, for nothing: a column that is not there would pass for a defence."""
        for measure in (COUNT, SUM) if self.scene.amount_sql else (COUNT,):
            question = Question((People((VICTIM,), named=False), Secret()), measure)
            self.analyst.preview(question.sql(self._table), epsilon=self._epsilon)

    def worst_price(self) -> float:
        """The most that an attack can spend: all that the analyst has left, but for what is the others'."""
        balance = self._balance()
        if not self._left_for_others:
            return balance.remaining_epsilon
        return _epsilon(balance, _counted(balance, balance.remaining_epsilon) - self._left_for_others)

    def _settle(self) -> None:
        """What this attack has cost, whatever was spent before."""
        super()._settle()
        balance = self._balance()
        self.price = _epsilon(balance, _spent(balance) - self._before)

    def _balance(self) -> Balance:
        balances = self.balances()
        if not balances:
            raise InputError(
                "This analyst has no budget for that table.",
                why="The token belongs to somebody without an allotment.",
                fix="Ask the owner for an allotment, or use another token.",
            )
        return max(balances, key=lambda each: each.remaining_epsilon)


# --- prices as a budget adds them up: ρ, or ε itself


def _counted(balance: Balance, epsilon: float) -> float:
    return _amount(balance.budget.filter().price(epsilon)) if epsilon > 0 else 0.0


def _spent(balance: Balance) -> float:
    return _amount(balance.spent)


def _amount(cost: Any) -> float:
    return float(cost.rho if isinstance(cost, ZCDP) else cost.epsilon)


def _epsilon(balance: Balance, amount: float) -> float:
    if amount <= 0 or balance.budget.accounting is Accounting.PURE:
        return max(0.0, amount)
    return conversions.zcdp_epsilon(amount, balance.budget.conversion_delta)
