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
from dalenius.learning.gradients import MOST_CLIP_BITS
from dalenius.learning.recipe import Recipe
from dalenius.learning.task import Task

MOST_BATCH = 16_384  # rows in a step; of fewer people all are in each
ENOUGH_ROWS = 8  # of one unit, where nobody asks for more: they tell less than they take time
OVERFLOW = 1e-15  # of δ, for steps with more drawn than slots
CLIP = 0.35  # of the length that gradients are thought to have at first
WAY = 0.7  # how far to go in all, per unit of signal over noise
SHORTEST, LONGEST = 2.0, 64.0
STRIDE = 1 / 3  # of the way, the most that one step goes
FEWEST, MOST_STEPS = 50, 200
AVERAGED = 0.5
CENTRING = 0.1  # of the steps measure where the features lie
_SMOOTH_STEPS = 50  # a way of 1 is so many steps along the gradient's steepest curve
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
        """From a count with discrete Gaussian noise: room for 13σ more, and one.

        P(X ≥ m) ≤ P(N(0, σ²) ≥ m − 1) [Canonne, Kamath & Steinke (2020), Prop. 25], which 13σ away is below 10⁻³⁸.
        """
        return cls(units, math.ceil(units + 13 * sigma) + 1, 1e-38, rows, held)


@dataclass(frozen=True)
class Price:
    """What a training may cost: at most ρ, at each of some orders (`Budget.sampling_orders`), or a pure ε.

    Attributes:
        rho: At most that; 0 where the budget is pure.
        orders: At which sampled noise must cost no more; none where it cannot be paid for.
        epsilon: Of a pure budget, which can pay for `output` alone.
    """

    rho: float
    orders: tuple[Fraction, ...] = ()
    epsilon: float | None = None


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
    rows = population.rows
    held = min(max(1.0, population.held), float(rows))
    size = float(max(1, MOST_BATCH // rows) if batch is None else parameters.count(batch, "batch"))
    if batch is not None and batch > people:
        raise InputError(
            f"A batch of {batch:,} is more than there are.",
            why=f"By the released count there are about {people:,.0f}.",
            fix="Take a smaller batch, or none: then a rule decides.",
        )
    rate = Fraction(1) if size >= people else sampling_rate(size / people)
    signal = people * math.sqrt(2 * price.rho / (task.outputs * task.width))
    way = min(max(WAY * signal, SHORTEST), LONGEST)
    by_rule = math.ceil(min(max(way / STRIDE, FEWEST), MOST_STEPS))
    number = by_rule if steps is None else parameters.count(steps, "steps")
    norm = CLIP * task.length * task.loss.usual(task.outputs) * held
    centring = math.ceil(CENTRING * number) if number > 1 else 0
    slots = population.capacity if rate == 1 else slots_for(rate, population.capacity, number, OVERFLOW)
    grid = min(34, _EXACT_BITS - math.ceil(math.log2(norm * slots)))
    if rows > 1:  # the square of a unit's length is then worked out exactly (`gradients`)
        grid = min(grid, math.floor(MOST_CLIP_BITS - math.log2(norm)))
    clip = math.floor(norm * 2**grid)
    multiplier = calibrate_sampled(rate, number, price.rho, price.orders)
    delta = overflow(rate, population.capacity, slots, number) + population.delta
    smooth = task.loss.smoothness * (0.5 if task.outputs == 1 else 1.0) * task.length**2
    rate_of_steps = way * _SMOOTH_STEPS / ((number - centring) * smooth)
    if not task.loss.flattens:  # longer steps would overshoot, again and again
        rate_of_steps = min(rate_of_steps, 1 / (task.loss.smoothness * task.length**2))
    return Recipe(
        task,
        people,
        population.capacity,
        rows,
        held,
        rate,
        slots,
        number,
        centring,
        grid,
        clip,
        multiplier * clip**2,
        delta,
        learning_rate=rate_of_steps,
        momentum=0.0,
        averaged=AVERAGED,
    )
