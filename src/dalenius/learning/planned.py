"""A model that was planned: everything about it that is public, and nothing that is not.

How many units there are
    A recipe needs room for all of them, and a number by which sums are divided. Where `protect` searched for limits it
    has released a noisy count, which is public. Where it did not (the owner declared `rows`), or where the data changed
    since, units are counted with noise in the same look, for `COUNT` of its ρ. Neither how units are drawn nor how
    much noise there is can then follow from the count: every unit is in every step.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dalenius.accounting.events import Composed
from dalenius.accounting.guarantees import ZCDP
from dalenius.errors import InputError
from dalenius.learning.gradients import MOST_ROWS, Gradients
from dalenius.learning.request import AUTO, ModelAsk
from dalenius.learning.rules import MOST_STEPS, Population, Price, plan
from dalenius.learning.stored import FORMAT
from dalenius.learning.task import task_of
from dalenius.ledger.budgets import Accounting
from dalenius.measuring.batches import naming_columns
from dalenius.measuring.expressions import TRUE
from dalenius.measuring.limits.at_protect import units_deviation
from dalenius.measuring.pace import UNKNOWN, size_class
from dalenius.measuring.periods import charged_periods, paying_periods, within_periods
from dalenius.mechanisms.discrete_gaussian import DiscreteGaussian, widened
from dalenius.releasing.whole_table import guarantee_of, known_rows, late_of, rows_limit, times_of

if TYPE_CHECKING:
    from dalenius.accounting.events import Event
    from dalenius.learning.recipe import Recipe
    from dalenius.learning.task import Task
    from dalenius.measuring.expressions import Expression
    from dalenius.measuring.pace import Times
    from dalenius.measuring.plan import Table

COUNT = Fraction(1, 50)  # of ρ, where units are counted in the look
MOST_COUNTED = 2**24  # units, where no count was released: for more there is no room
# Seconds on the machine of bench/RESULTS.md.
_BEGIN, _READ = 0.1, 1e-6  # before anything is read; for each row and column
_STEP, _DRAWN = 1e-4, 8e-10  # for a step by itself; for each unit that there may be, to draw some
_NUMBER, _SCORE = 4e-9, 2e-8  # for each number of a row that is in a step; for each of its scores
_VECTOR = 1e-8  # for each number of a unit's gradient, where it has several rows


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
        if rows > MOST_ROWS:
            rows, notes = MOST_ROWS, (*notes, f"Of one unit {MOST_ROWS:,} rows are learned from, by keyed hash.")
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

    @property
    def unit(self) -> str:
        """Whose a row is, as people read it."""
        return ", ".join(self.table.unit)

    def guarantee(self, epsilon: float) -> dict[str, Any]:
        """What holds of the model, and of whatever is done with it."""
        return guarantee_of(self.table.budget, self.unit, epsilon)

    # --- how many units there are

    @property
    def population(self) -> Population | None:
        """As `protect` has counted them; None: they are counted in the look."""
        found = self.table.found
        if found is None or found.carried or "rows" not in found.sizes:
            return None
        share = 1 - self.ask.held_out
        every = Population.counted(float(found.units), units_deviation(found), rows=self.rows, held=self._held)
        return replace(every, units=every.units * share)

    @property
    def counter(self) -> DiscreteGaussian:
        """What counts units in the look, at the price that was typed."""
        return self.counter_at(self.ask.epsilon)

    def counter_at(self, epsilon: float) -> DiscreteGaussian:
        """The same at another price."""
        change = 1 if self.table.budget.neighbors.value == "add-remove" else 2
        rho = Fraction(self.cost(epsilon).rho) * COUNT
        return DiscreteGaussian(widened(change / (2 * rho)), change, 1, self.table.budget.neighbors)

    @property
    def _held(self) -> float:
        """Rows of a unit on average, by noisy counts."""
        found = self.table.found
        if found is None or found.units < 1:
            return 1.0
        return min(float(self.rows), max(1.0, found.row_count / found.units))

    # --- what it costs

    def cost(self, epsilon: float) -> ZCDP:
        """The ρ of an ε, by the budget's own conversion."""
        found = self.table.budget.filter().price(epsilon)
        if not isinstance(found, ZCDP):
            raise InputError("A pure budget pays no ρ.", why="It has no δ.", fix="Tell the makers of dalenius.")
        return found

    def recipe(self, epsilon: float) -> Recipe:
        """How it is trained at a price; where units are counted in the look, for as many as there is room for at most.

        Raises:
            InputError: The price is too small, or there are fewer units by the released count than a step has.
        """
        people, price = self.population, self._price(epsilon)
        steps = self.ask.steps
        if people is None:
            _check_unknown(self.ask)
            people, steps = Population(1.0, MOST_COUNTED, rows=self.rows, held=self._held), steps or MOST_STEPS
        elif people.units < (self.ask.batch or 1):
            raise InputError(
                "There are fewer units than a step has.",
                why=f"By the released count there are about {max(0, round(people.units)):,} to learn from.",
                fix="Take a smaller batch, or none: then a rule decides."
                if self.ask.batch
                else "Protect more people, or let the owner find limits again.",
            )
        _check_price(price.rho, people.units if self.population is not None else MOST_COUNTED)
        found = plan(self.task, people, price, batch=self.ask.batch, steps=steps)
        Gradients(self.task.loss, found.grid, found.clip, found.slots, found.rows)  # what it refuses is not charged
        return found

    def counted_recipe(self, epsilon: float, count: int, sigma: float) -> Recipe:
        """The recipe of a look that has counted its units, with noise: room, divisor and pace are by that count.

        What is charged does not follow from any of them.
        """
        recipe = self.recipe(epsilon)
        people = Population.counted(float(max(1, count)), sigma, rows=self.rows, held=self._held)
        pace = plan(self.task, people, self._price(epsilon), steps=recipe.steps)
        return replace(
            recipe,
            people=people.units,
            capacity=people.capacity,
            slots=people.capacity,
            learning_rate=pace.learning_rate,
            momentum=pace.momentum,
            averaged=pace.averaged,
            regularisation=pace.regularisation,
        )

    def _price(self, epsilon: float) -> Price:
        """What the training may cost, at every filter that pays; without what the count of units takes."""
        rho = Fraction(self.cost(epsilon).rho) * (1 if self.population is not None else 1 - COUNT)
        return Price(_below(rho), self.table.budget.sampling_orders(epsilon, self.allotment))

    def event(self, epsilon: float) -> Event:
        """What is charged: the training, and the count of units where it is in the same look."""
        training = self.recipe(epsilon).event()
        return training if self.population is not None else Composed((self.counter_at(epsilon).event, training))

    # --- when it leaves

    @property
    def seconds(self) -> float:
        """What the work takes on the machine of bench/RESULTS.md, by public sizes."""
        recipe = self.recipe(self.ask.epsilon)
        units = recipe.slots if self.population is not None else size_class(UNKNOWN)
        inside = units * recipe.rows * (_NUMBER * recipe.task.width + _SCORE * recipe.task.outputs)
        several = 0.0 if recipe.rows == 1 else _VECTOR * units * recipe.dimension
        drawn = 0.0 if recipe.rate == 1 else _DRAWN * recipe.capacity
        step = _STEP + drawn + inside + several
        return self.reading_seconds + recipe.steps * step

    @property
    def reading_seconds(self) -> float:
        """What it takes to read the rows, likewise."""
        rows = sum(size_class(known_rows(each) or UNKNOWN) for each in self.table.relation.tables())
        return _BEGIN + _READ * rows * (len(self.task.features) + 1)

    @property
    def memory(self) -> int:
        """Bytes that it takes at most, by public sizes: rows as numbers, twice while they are put into their room."""
        recipe = self.recipe(self.ask.epsilon)
        return 2 * recipe.capacity * recipe.rows * (4 * self.task.width + 8)

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
    if ask.method == "sgd":
        budget.sampling_orders(ask.epsilon)
    if ask.method != AUTO:
        return ask.method
    plain = budget.accounting is Accounting.ZCDP and budget.neighbors.value == "add-remove"
    return "sgd" if plain else "output"


def _check_price(rho: float, people: float) -> None:
    """Refuses a price for which there would be noise alone, before anybody pays it."""
    if rho <= 0 or 2 * rho * people**2 < 1:
        raise InputError(
            "The price is too small for one step.",
            why="The noise in a single sum would be above all that the units together add to it.",
            fix="Give a larger epsilon.",
        )


def _check_unknown(ask: ModelAsk) -> None:
    if ask.batch is not None:
        raise InputError(
            "How large a step may be is not known.",
            why="No number of units was released for this table, so all of them are in every step.",
            fix="Leave the batch out; or have the owner find limits: [contribution] without rows, then protect.",
        )


def _below(rho: Fraction) -> float:
    """The double at or below."""
    found = float(rho)
    return found if Fraction(found) <= rho else math.nextafter(found, 0.0)


def _in_order(columns: Sequence[str], table: Table) -> list[str]:
    """Those of a request in the policy's order: in whichever they are typed, it is the same model."""
    known = list(table.policy.columns)
    return sorted(columns, key=lambda name: known.index(name) if name in known else len(known))
