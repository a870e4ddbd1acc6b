"""A model that was planned: everything about it that is public, and nothing that is not.

Where units are counted in the look (`people`), what is charged must not follow from the count. So sampled noise is
planned for any number of them: every unit is in every step, and σ is a matter of the price and of the steps. Noise that
is added once (`output`) depends on how many units there are; what is charged for it is the ρ, or the ε, of the price.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dalenius.accounting.events import Composed, Pure, Zcdp
from dalenius.accounting.guarantees import ZCDP
from dalenius.errors import InputError
from dalenius.learning import output, people
from dalenius.learning.gradients import MOST_ROWS, Gradients
from dalenius.learning.people import COUNT, MOST_COUNTED
from dalenius.learning.request import AUTO, ModelAsk
from dalenius.learning.rules import ENOUGH_ROWS, MOST_STEPS, Population, Price, plan
from dalenius.learning.stored import FORMAT
from dalenius.learning.task import task_of
from dalenius.ledger.budgets import Accounting
from dalenius.measuring.batches import naming_columns
from dalenius.measuring.expressions import TRUE
from dalenius.measuring.pace import UNKNOWN, size_class
from dalenius.measuring.periods import charged_periods, paying_periods, within_periods
from dalenius.releasing.whole_table import guarantee_of, known_rows, late_of, rows_limit, times_of

if TYPE_CHECKING:
    from dalenius.accounting.events import Event
    from dalenius.learning.output import OutputRecipe
    from dalenius.learning.recipe import Recipe
    from dalenius.learning.task import Task
    from dalenius.measuring.expressions import Expression
    from dalenius.measuring.pace import Times
    from dalenius.measuring.plan import Table

SGD, OUTPUT = "sgd", "output"
MORE_THAN_COUNTED = 1e-38  # δ: the chance that there are more units than there is room for by their count
# Seconds on the machine of bench/RESULTS.md.
_BEGIN, _READ = 0.1, 1e-6  # before anything is read; for each row and column
_STEP, _DRAWN = 1e-4, 8e-10  # for a step by itself; for each unit that there may be, to draw some
_NUMBER, _SCORE = 4e-9, 2e-8  # for each number of a row that is in a step; for each of its scores
_VECTOR = 1e-8  # for each number of a unit's gradient, where it has several rows
_SOLVER = 300  # gradients over all rows, where noise is added once


@dataclass(frozen=True)
class Planned:
    """A model that was planned.

    Attributes:
        ask: What was asked.
        table: Whose rows.
        task: What is learned from which columns.
        left_out: Columns that cannot be features, each with what to declare.
        method: How noise comes in; never "auto".
        rows: The most rows of one unit that are read.
        allotment: What the asker may spend in all, whose filter pays too.
        periods: Those whose rows are read.
        notes: What the reader should know.
    """

    ask: ModelAsk
    table: Table
    task: Task
    left_out: Mapping[str, str]
    method: str
    rows: int
    allotment: float
    periods: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, table: Table, ask: ModelAsk, allotment: float) -> Planned:
        """From the policy and what was found at `protect`. Never touches the data."""
        method = _method(ask, table)
        hidden = naming_columns(table)
        features = _in_order(ask.features, table)
        task, left = task_of(table.policy.columns, ask.target, ask.model, features=features, hidden=hidden)
        rows, notes = rows_limit(table, ask.rows_per_unit, average=True)
        if ask.rows_per_unit is None:
            rows = min(rows, ENOUGH_ROWS)
        if rows > MOST_ROWS:
            few = f"Of a unit with more rows {MOST_ROWS:,} are learned from, which ones a keyed hash decides."
            rows, notes = MOST_ROWS, (*notes, few)
        periods = charged_periods(table, TRUE, "A model", "Ask the owner for shorter bounds of that column.")
        return cls(ask, table, task, left, method, rows, allotment, periods, notes)

    # --- what it is

    def key(self, data_version: str) -> str:
        """What identifies the model: all that decides what is learned, besides the price."""
        parts = {
            "format": FORMAT,
            "table": self.table.policy.name,
            "task": self.task.to_json(),
            "method": self.method,
            "rows": self.rows,
            "held_out": self.ask.held_out,
            "asked": [self.ask.batch, self.ask.steps],
            "periods": list(self.periods),
        }
        text = "\0".join([json.dumps(parts, sort_keys=True), self.table.meaning, data_version])
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

    @property
    def where(self) -> Expression:
        """Which rows are read: those of the periods that pay."""
        return within_periods(self.table, self.periods)

    @property
    def paying(self) -> tuple[str, ...]:
        """The periods that pay."""
        return paying_periods(self.table, self.periods)

    def guarantee(self, epsilon: float) -> dict[str, Any]:
        """What holds of the model, and of whatever is done with it."""
        return guarantee_of(self.table.budget, ", ".join(self.table.unit), epsilon)

    @property
    def people(self) -> Population | None:
        """How many units there are, as `protect` has counted them; None: they are counted in the look."""
        return people.released(self.table, self.rows, self.ask.held_out)

    # --- what it costs

    def rho(self, epsilon: float) -> float | None:
        """The ρ of an ε, by the budget's own conversion; None: the budget is pure."""
        found = self.table.budget.filter().price(epsilon)
        return found.rho if isinstance(found, ZCDP) else None

    def event(self, epsilon: float) -> Event:
        """What is charged: the training, and the count of units where it is in the same look."""
        budget, rho = self.table.budget, self.rho(epsilon)
        if self.method == OUTPUT:
            self.output_recipe(epsilon, self.people or people.unknown(self.table, self.rows))
            if rho is None:
                return Pure(epsilon, budget.neighbors)
            return Zcdp(Fraction(rho), MORE_THAN_COUNTED, budget.neighbors)
        training = self.recipe(epsilon).event()
        return training if self.people is not None else Composed((people.counter(budget, epsilon).event, training))

    def recipe(self, epsilon: float) -> Recipe:
        """How it is trained by noisy steps; where units are counted in the look, for as many as there may be at most.

        Raises:
            InputError: The price is too small, or there are fewer units by the released count than a step has.
        """
        found, price, steps = self.people, self._price(epsilon), self.ask.steps
        self._check(price, found)
        if found is None:
            found, steps = people.unknown(self.table, self.rows), steps or MOST_STEPS
        recipe = plan(self.task, found, price, batch=self.ask.batch, steps=steps)
        Gradients(self.task.loss, recipe.grid, recipe.clip, recipe.slots, recipe.rows)  # what it refuses is not charged
        return recipe

    def counted_recipe(self, epsilon: float, found: Population) -> Recipe:
        """The recipe of a look that has counted its units: room, divisor and pace are by that count, nothing else."""
        recipe = self.recipe(epsilon)
        pace = plan(self.task, found, self._price(epsilon), steps=recipe.steps)
        return replace(
            recipe,
            people=pace.people,
            capacity=found.capacity,
            slots=found.capacity,
            learning_rate=pace.learning_rate,
            momentum=pace.momentum,
            averaged=pace.averaged,
            regularisation=pace.regularisation,
        )

    def output_recipe(self, epsilon: float, found: Population) -> OutputRecipe:
        """How it is trained with noise that is added once.

        Under a pure budget nothing may go wrong, ever: if there are more units than room, which are left out follows
        from who is there, so that one unit may change places with another, and noise is made for that.
        """
        price, budget = self._price(epsilon), self.table.budget
        self._check(price, self.people)
        return output.plan(self.task, found, price, neighbors=budget.neighbors, crowded=price.epsilon is not None)

    def _price(self, epsilon: float) -> Price:
        """What the training may cost, at every filter that pays; without what the count of units takes."""
        part, rho = Fraction(1) if self.people is not None else 1 - COUNT, self.rho(epsilon)
        if rho is None:
            return Price(0.0, (), _below(Fraction(epsilon) * part))
        orders = self.table.budget.sampling_orders(epsilon, self.allotment) if self.method == SGD else ()
        return Price(_below(Fraction(rho) * part), orders)

    def _check(self, price: Price, found: Population | None) -> None:
        """Refuses what would be noise alone, or a step of more units than there are, before anybody pays it."""
        most = MOST_COUNTED if found is None else found.units
        if found is None and self.ask.batch is not None:
            raise InputError(
                "How large a step may be is not known.",
                why="No number of units was released for this table, so all of them are in every step.",
                fix="Leave the batch out; or have the owner find limits: [contribution] without rows, then protect.",
            )
        if found is not None and most < (self.ask.batch or 1):
            raise InputError(
                "There are fewer units than a step has.",
                why=f"By the released count there are about {max(0, round(most)):,} to learn from.",
                fix="Take a smaller batch, or none: then a rule decides."
                if self.ask.batch
                else "Protect more people, or let the owner find limits again.",
            )
        hidden = price.epsilon * most if price.epsilon is not None else 2 * price.rho * most**2
        if hidden < 1:
            raise InputError(
                "The price is too small for one step.",
                why="The noise in a single sum would be above all that the units together add to it.",
                fix="Give a larger epsilon.",
            )

    # --- when it leaves

    @property
    def seconds(self) -> float:
        """What the work takes on the machine of bench/RESULTS.md, by public sizes."""
        found = self.people
        units = size_class(UNKNOWN) if found is None else found.capacity
        row = _NUMBER * self.task.width + _SCORE * self.task.outputs
        if self.method == OUTPUT:
            return self.reading_seconds + _SOLVER * (_STEP + 2 * units * self.rows * row)
        recipe = self.recipe(self.ask.epsilon)
        within = units if found is None else recipe.slots
        several = 0.0 if recipe.rows == 1 else _VECTOR * within * recipe.dimension
        drawn = 0.0 if recipe.rate == 1 else _DRAWN * recipe.capacity
        return self.reading_seconds + recipe.steps * (_STEP + drawn + within * recipe.rows * row + several)

    @property
    def reading_seconds(self) -> float:
        """What it takes to read the rows, likewise."""
        rows = sum(size_class(known_rows(each) or UNKNOWN) for each in self.table.relation.tables())
        return _BEGIN + _READ * rows * (len(self.task.features) + 1)

    @property
    def memory(self) -> int | None:
        """Bytes that it takes at most: rows as numbers, twice while they are put into their room; None: not known."""
        found = self.people
        return None if found is None else 2 * found.capacity * self.rows * (4 * self.task.width + 8)

    def times(self, speed: float) -> Times:
        """When it leaves: a function of public things alone."""
        return times_of(self.table, self.seconds, speed)

    @property
    def late(self) -> int:
        """After how many late releases an analyst is suspended."""
        return late_of(self.table)


def _method(ask: ModelAsk, table: Table) -> str:
    """Which method is meant. Where sampled noise cannot be paid for, the one that was typed is refused."""
    budget = table.budget
    if ask.method == SGD:
        budget.sampling_orders(ask.epsilon)
    plain = budget.accounting is Accounting.ZCDP and budget.neighbors.value == "add-remove"
    method = ask.method if ask.method != AUTO else SGD if plain else OUTPUT
    if method == OUTPUT and (ask.batch is not None or ask.steps is not None):
        raise InputError(
            "Method 'output' has no steps.", why="Its noise is added once.", fix="Leave batch and steps out."
        )
    return method


def _below(exact: Fraction) -> float:
    """The double at or below."""
    found = float(exact)
    return found if Fraction(found) <= exact else math.nextafter(found, 0.0)


def _in_order(columns: Sequence[str], table: Table) -> list[str]:
    """Those of a request in the policy's order: in whichever they are typed, it is the same model."""
    known = list(table.policy.columns)
    return sorted(columns, key=lambda name: known.index(name) if name in known else len(known))
