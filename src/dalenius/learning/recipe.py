"""A recipe: everything public that decides about a training, besides rows and noise.

Whoever has a recipe knows what the training costs (`event`), how long it takes and how much memory, and none of it
says anything about a person: it follows from the policy, the price, and the noisy count of units released before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dalenius.accounting.events import SampledGaussian
from dalenius.errors import InputError
from dalenius.learning.task import Task

LONG = 1.5  # times the usual length a row may have before its numbers are clipped


@dataclass(frozen=True)
class Recipe:
    """How a model is trained by noisy gradients.

    Attributes:
        task: What is learned, from what.
        people: How many units there are, by noisy count: sums are divided by it, times the rate.
        capacity: For how many units there is room.
        rows: The most rows of one unit.
        held: How many of them a unit has on average, by noisy counts: sums are divided by it as well.
        rate: The chance of each unit to be in a step.
        slots: How many units a step has room for.
        steps: How many steps there are.
        centring: How many of them, the first ones, measure where the features lie.
        grid: A gradient is counted in whole steps of 2^−grid.
        clip: The most that one unit adds to a sum of gradients, in L2 and in whole steps.
        variance: σ² of the noise on each number of a sum, in whole steps.
        delta: The chance that a step has no room for all units drawn, or the room none for all there are.
        learning_rate: What a step goes along its (averaged) gradient.
        momentum: How much of a step's way the next one goes again.
        averaged: The share of the other steps, the last ones, whose weights are averaged.
        regularisation: λ of λ‖w‖²/2, which is added to the mean loss.
    """

    task: Task
    people: float
    capacity: int
    rows: int
    held: float
    rate: Fraction
    slots: int
    steps: int
    centring: int
    grid: int
    clip: int
    variance: Fraction
    delta: float
    learning_rate: float
    momentum: float
    averaged: float
    regularisation: float = 0.0
    method: str = "sgd"

    @property
    def shape(self) -> tuple[int, int]:
        """Of the weights: scores × columns."""
        return self.task.outputs, self.task.width

    @property
    def dimension(self) -> int:
        """How many numbers a step releases."""
        return self.task.outputs * self.task.width

    @property
    def batch(self) -> float:
        """How many units a step has, on average."""
        return float(self.people * self.rate)

    @property
    def divisor(self) -> float:
        """What a sum of gradients is divided by: the rows in a step, in whole steps of the grid."""
        return self.batch * self.held * 2.0**self.grid

    @property
    def norm(self) -> float:
        """The clip as a length."""
        return float(self.clip * 2.0**-self.grid)

    @property
    def part(self) -> float:
        """What a row's numbers are multiplied with where their mean is measured: most rows are then within the clip."""
        return self.norm / (LONG * self.task.length * self.held)

    @property
    def multiplier(self) -> float:
        """σ over the clip."""
        return float((self.variance / self.clip**2) ** 0.5)

    def event(self) -> SampledGaussian:
        """What is charged.

        Guarantee:
            A unit adds to each sum one integer vector of squared L2 norm at most clip² (`gradients`), is in it with
            chance ``rate`` independently of all others (`drawing`), and each number gets discrete Gaussian noise of
            σ² = ``variance``. Everything else that training does follows from these noisy sums and public facts.
        """
        return SampledGaussian(self.rate, self.variance, self.clip**2, self.steps, self.dimension, self.delta)

    def check(self, event: object) -> SampledGaussian:
        """The event as it was charged, if it is that of this recipe."""
        if not isinstance(event, SampledGaussian) or event != self.event():
            raise InputError(
                "The charge is not for this recipe.",
                why="Its rate, steps, noise or size differ.",
                fix="Plan the training again.",
            )
        return event

    # --- stored

    def to_json(self) -> dict[str, Any]:
        """As it is stored with a model."""
        return {
            "method": self.method,
            "task": self.task.to_json(),
            "people": self.people,
            "capacity": self.capacity,
            "rows": self.rows,
            "held": self.held,
            "rate": str(self.rate),
            "slots": self.slots,
            "steps": self.steps,
            "centring": self.centring,
            "grid": self.grid,
            "clip": self.clip,
            "variance": str(self.variance),
            "delta": self.delta,
            "learning_rate": self.learning_rate,
            "momentum": self.momentum,
            "averaged": self.averaged,
            "regularisation": self.regularisation,
        }

    @classmethod
    def of_json(cls, data: Mapping[str, Any]) -> Recipe:
        """As `to_json` wrote it."""
        exact = {name: Fraction(data[name]) for name in ("rate", "variance")}
        return cls(**{**data, **exact, "task": Task.of_json(data["task"])})
