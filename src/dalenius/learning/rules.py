"""The defaults: rate, steps, clip, learning rate and noise, from how many people there are, the columns and the price.

No rule looks at a row, and none was made for one table: docs/explanation/learning.md says what each is and why.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from dalenius.accounting import parameters
from dalenius.accounting.sampled_discrete import calibrate_sampled, sampling_rate
from dalenius.errors import InputError
from dalenius.learning.drawing import overflow, slots_for
from dalenius.learning.recipe import Recipe
from dalenius.learning.task import Task

MOST_BATCH = 16_384  # units in a step; of fewer people all are in each
OVERFLOW = 1e-15  # of δ, for steps with more drawn than slots
_EXACT_BITS = 52


@dataclass(frozen=True)
class Population:
    """What is known of how many there are.

    Attributes:
        units: By noisy count.
        capacity: More are there with a chance of at most ``delta``.
        delta: That chance.
        rows: The most rows of one unit.
        held: How many rows a unit has on average, by noisy counts.
    """

    units: float
    capacity: int
    delta: float = 1e-38
    rows: int = 1
    held: float = 1.0

    @classmethod
    def counted(cls, units: float, sigma: float, *, rows: int = 1, held: float = 1.0) -> Population:
        """From a count with noise of standard deviation σ: room for 13 of them more, P(more) < 10⁻³⁸."""
        return cls(units, math.ceil(units + 13 * sigma), 1e-38, rows, held)


@dataclass(frozen=True)
class Price:
    """What a training may cost: at most ρ at each of some orders (`Budget.sampling_orders`)."""

    rho: float
    orders: tuple[Fraction, ...]


def plan(
    task: Task, population: Population, price: Price, *, batch: int | None = None, steps: int | None = None
) -> Recipe:
    """The recipe for a training by noisy gradients, from public facts alone.

    Args:
        task: What is learned, from what.
        population: How many people there are.
        price: What it may cost.
        batch: How many units a step shall have on average; None: by rule.
        steps: How many steps; None: by rule.
    """
    people = max(1.0, population.units)
    size = float(MOST_BATCH if batch is None else parameters.count(batch, "batch"))
    if batch is not None and batch > people:
        raise InputError(
            f"A batch of {batch:,} is more than there are.",
            why=f"By the released count there are about {people:,.0f}.",
            fix="Take a smaller batch, or none: then a rule decides.",
        )
    rate = Fraction(1) if size >= people else sampling_rate(size / people)
    number = _steps(price.rho) if steps is None else parameters.count(steps, "steps")
    norm = 0.5 * math.sqrt(len(task.features))
    slots = population.capacity if rate == 1 else slots_for(rate, population.capacity, number, OVERFLOW)
    grid = min(34, _EXACT_BITS - math.ceil(math.log2(norm * slots)))
    clip = math.floor(norm * 2**grid)
    multiplier = calibrate_sampled(rate, number, price.rho, price.orders)
    delta = overflow(rate, population.capacity, slots, number) + population.delta
    return Recipe(
        task,
        people,
        population.capacity,
        population.rows,
        rate,
        slots,
        number,
        grid,
        clip,
        multiplier * clip**2,
        delta,
        learning_rate=1.0,
        momentum=0.8,
        averaged=0.5,
    )


def _steps(rho: float) -> int:
    """Few where there is much noise."""
    return max(10, min(100, round(60 * math.sqrt(math.sqrt(rho)))))
