"""The one look of a training: units are read, counted where nobody has counted them, and learned from.

Guarantee:
    That of the charged event: the recipe's own (`recipe`, `sgd`, `gradients`, `drawing`), composed with the count of
    units where that is part of it: one number to which a unit adds 1, with discrete Gaussian noise. A unit is in the
    count if it is learned from, so units held out add to neither. Room, slots and divisor follow from that count alone.

What is kept
    The count, once it is made (it was paid for once, and must not be made twice), and every few steps a `Checkpoint`.
    A look that is taken up reads the rows again, and goes on from there.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dalenius.accounting.events import Composed, DiscreteGaussian, SampledGaussian
from dalenius.accounting.rounded_noise import model_epsilon
from dalenius.errors import EngineFailedError
from dalenius.learning import sgd
from dalenius.learning.margins import margins
from dalenius.learning.planned import MOST_COUNTED
from dalenius.learning.reading import read_units
from dalenius.learning.stored import StoredModel
from dalenius.learning.units import in_room
from dalenius.mechanisms import noise
from dalenius.mechanisms.discrete_gaussian import DiscreteGaussian as Counter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dalenius.accounting.events import Event
    from dalenius.learning.planned import Planned
    from dalenius.learning.recipe import Recipe
    from dalenius.learning.units import Units
    from dalenius.releasing.leaving import Look

KEPT = 50  # times that a training keeps how far it is


def look(planned: Planned, look: Look) -> bytes:
    """Reads, counts and trains: once the charge is on disk, and only then."""
    noise.fresh_key()
    charged = look.sampled if look.sampled is not None else planned.event(look.epsilon)
    training, counting = _parts(charged)
    held = look.kept.read() if look.kept is not None else None
    kept: dict[str, Any] = held if isinstance(held, dict) else {}
    recipe = planned.recipe(look.epsilon)
    parts = list(
        read_units(
            planned.table,
            planned.task,
            planned.where,
            look.engine,
            look.salt,
            look.seconds,
            rows=recipe.rows,
            share=planned.ask.held_out,
        )
    )
    if counting is not None:
        if "count" not in kept:
            kept["count"] = _count(parts, counting)
            _keep(look, kept)
        recipe = planned.counted_recipe(look.epsilon, kept["count"], math.sqrt(counting.variance))
        _check_room(recipe)
    recipe = replace(recipe, variance=Fraction(training.variance))  # the noise is that of the charge
    units = in_room(parts, planned.task, capacity=recipe.capacity, rows=recipe.rows)
    del parts
    last = _trained(recipe, training, units, look, kept)
    weights = sgd.finished(recipe, last)
    stored = StoredModel(
        planned.table.policy.name,
        look.epsilon,
        look.delta,
        planned.cost(look.epsilon).rho,
        alone_epsilon(charged, planned.table.budget.delta),
        recipe,
        planned.ask.held_out,
        weights,
        margins(recipe, weights, sgd.mean_of(recipe, last)),
        counting is not None,
    )
    return stored.content()


def _trained(recipe: Recipe, event: SampledGaussian, units: Units, look: Look, kept: dict[str, Any]) -> sgd.Checkpoint:
    """All steps, from where it was."""
    start = sgd.Checkpoint.of_json(kept["at"]) if "at" in kept else sgd.begin(recipe)
    every = max(1, recipe.steps // KEPT)
    last = start
    look.told(last.step, recipe.steps)
    for last in sgd.steps(recipe, event, units, start):
        if last.step % every == 0 and last.step < recipe.steps:
            kept["at"] = last.to_json()
            _keep(look, kept)
        look.told(last.step, recipe.steps)
    return last


def _check_room(recipe: Recipe) -> None:
    if recipe.capacity > MOST_COUNTED:
        raise EngineFailedError(
            "There are more units than there is room for.",
            why=f"By their noisy count there are more than {MOST_COUNTED:,}.",
            fix="Have the owner find limits: [contribution] without rows, then protect. Steps then draw some of them.",
        )


def _count(parts: Sequence[Units], event: DiscreteGaussian) -> int:
    """How many units are learned from, with noise."""
    counter = Counter(event.variance, event.squared_sensitivity, 1, event.neighbors)
    return int(counter.release(sum(map(len, parts))).value)


def _parts(event: Event) -> tuple[SampledGaussian, DiscreteGaussian | None]:
    """The training of a charged event, and the count where there is one."""
    match event:
        case SampledGaussian():
            return event, None
        case Composed((DiscreteGaussian() as counting, SampledGaussian() as training)):
            return training, counting
    raise RuntimeError("A training was charged as something else.")


def _keep(look: Look, kept: dict[str, Any]) -> None:
    if look.kept is not None:
        look.kept.write(kept)


def alone_epsilon(event: Event, delta: float) -> float | None:
    """The ε of the model by itself; None where there is none."""
    found = model_epsilon(event, delta)
    return found if math.isfinite(found) else None
