"""A curator behind a URL as a target: it is somebody's, and every answer is paid out of a real budget.

The columns of its table are given the names that attacks use by a subquery, so that any table will do that has a whole
number for everybody.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dalenius.audit.targets.curators import Curated
from dalenius.audit.targets.questions import COUNT, SUM, People, Question, Secret
from dalenius.audit.targets.scene import VICTIM, Scene
from dalenius.errors import InputError

if TYPE_CHECKING:
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
    """A server's table, through an analyst's token."""

    about = "a curator behind a URL, paid from a real budget"

    def __init__(
        self, scene: Scene, analyst: RemoteAnalyst, *, epsilon: float, table: str, columns: Columns | None = None
    ) -> None:
        dataset = str(analyst.table(table)["dataset"])  # a table that is not there is named before anything is asked
        super().__init__(
            scene, analyst, epsilon=epsilon, table=(columns or Columns()).read_from(table), dataset=dataset
        )

    def check(self) -> None:
        """Asks for the price of what attacks ask, for nothing: a column that is not there would pass for a defence."""
        for measure in (COUNT, SUM) if self.scene.amount_sql else (COUNT,):
            question = Question((People((VICTIM,), named=False), Secret()), measure)
            self.analyst.preview(question.sql(self._table), epsilon=self._epsilon)

    def worst_price(self) -> float:
        """The most that an attack can spend: all that the analyst has left."""
        balances = self.balances()
        if not balances:
            raise InputError(
                "This analyst has no budget for that table.",
                why="The token belongs to somebody without an allotment.",
                fix="Ask the owner for an allotment, or use another token.",
            )
        return max(each.remaining_epsilon for each in balances)
