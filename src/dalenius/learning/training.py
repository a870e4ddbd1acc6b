"""The one look of a training: units are read, counted where nobody has counted them, and learned from.

Guarantee:
    *Steps.* That of the charged event: the recipe's own (`recipe`, `sgd`, `gradients`, `drawing`), composed with the
    count of units where that is part of it (`people`).
    *Noise added once.* The count at its part of the price, then the recipe's event at the rest (`output`): together at
    most the ρ, or the ε, that was charged. If there are more units than room, some are left out by the order of their
    tags: under zCDP that chance is in δ; pure noise is made for it.
    A unit is in the count if it is learned from, so units held out add to neither. Room, slots and divisor follow from
    the released count, or from that one, alone.

What is kept
    The count, once it is made (it was paid for once, and must not be made twice), and every few steps a `Checkpoint`.
    A look that is taken up reads the rows again, and goes on from there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dalenius.accounting.events import Composed, DiscreteGaussian, SampledGaussian
from dalenius.accounting.rounded_noise import model_epsilon
from dalenius.errors import EngineFailedError
from dalenius.learning import output, people, sgd
from dalenius.learning.margins import margins, margins_once
from dalenius.learning.people import MOST_COUNTED
from dalenius.learning.planned import OUTPUT
from dalenius.learning.reading import read_units
from dalenius.learning.stored import StoredModel
from dalenius.learning.units import in_room
from dalenius.mechanisms import noise
from dalenius.mechanisms.discrete_gaussian import DiscreteGaussian as GaussianCounter

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dalenius.accounting.events import Event
    from dalenius.learning.output import OutputRecipe
    from dalenius.learning.planned import Planned
    from dalenius.learning.recipe import Recipe
    from dalenius.learning.rules import Population
    from dalenius.learning.units import Units
    from dalenius.learning.weights import Weights
    from dalenius.mechanisms.laplace import Laplace
    from dalenius.releasing.leaving import Look

KEPT = 50  # times that a training keeps how far it is


def look(planned: Planned, look: Look) -> bytes:
    """Reads, counts and trains: once the charge is on disk, and only then."""
    noise.fresh_key()
    held = look.kept.read() if look.kept is not None else None
    kept: dict[str, Any] = held if isinstance(held, dict) else {}
    reading = (planned.table, planned.task, planned.where, look.engine, look.salt, look.seconds)
    parts = list(read_units(*reading, rows=planned.rows, share=planned.ask.held_out))
    trained = _once if planned.method == OUTPUT else _in_steps
    recipe, event, weights, spread = trained(planned, look, parts, kept)
    stored = StoredModel(
        planned.table.policy.name,
        look.epsilon,
        look.delta,
        planned.rho(look.epsilon),
        alone_epsilon(event, planned.table.budget.delta),
        recipe,
        planned.ask.held_out,
        weights,
        spread,
        planned.guarantee(look.epsilon),
        planned.people is None,
    )
    return stored.content()


Trained = tuple["Recipe | OutputRecipe", "Event", "Weights", "NDArray[Any]"]


def _in_steps(planned: Planned, look: Look, parts: list[Units], kept: dict[str, Any]) -> Trained:
    """Noisy steps, from where they were."""
    charged = look.sampled if look.sampled is not None else planned.event(look.epsilon)
    training, counting = _parts_of(charged)
    if counting is None:
        recipe = planned.recipe(look.epsilon)
    else:
        counter = GaussianCounter(counting.variance, counting.squared_sensitivity, 1, counting.neighbors)
        recipe = planned.counted_recipe(look.epsilon, _counted(planned, look, parts, kept, counter))
    recipe = replace(recipe, variance=Fraction(training.variance))  # the noise is that of the charge
    units = in_room(_taken(parts), planned.task, capacity=recipe.capacity, rows=recipe.rows)
    at = start = sgd.Checkpoint.of_json(kept["at"]) if "at" in kept else sgd.begin(recipe)
    every = max(1, recipe.steps // KEPT)
    look.told(at.step, recipe.steps)
    for at in sgd.steps(recipe, training, units, start):
        if at.step % every == 0 and at.step < recipe.steps:
            kept["at"] = at.to_json()
            _keep(look, kept)
        look.told(at.step, recipe.steps)
    weights = sgd.finished(recipe, at)
    return recipe, charged, weights, margins(recipe, weights, sgd.mean_of(recipe, at))


def _once(planned: Planned, look: Look, parts: list[Units], kept: dict[str, Any]) -> Trained:
    """The best weights, with noise added once."""
    found, counter = planned.people, people.counter(planned.table.budget, look.epsilon)
    if found is None:
        found = _counted(planned, look, parts, kept, counter)
    recipe = planned.output_recipe(look.epsilon, found)
    units = in_room(_taken(parts), planned.task, capacity=recipe.capacity, rows=recipe.rows)
    weights = output.train(recipe, recipe.event(), units)
    done = recipe.event() if planned.people is not None else Composed((counter.event, recipe.event()))
    return recipe, done, weights, margins_once(recipe)


def _counted(
    planned: Planned, look: Look, parts: Sequence[Units], kept: dict[str, Any], counter: GaussianCounter | Laplace
) -> Population:
    """How many units are learned from, with noise: counted once, and kept."""
    if "count" not in kept:
        kept["count"] = int(counter.release(sum(map(len, parts))).value)
        _keep(look, kept)
    found = people.counted(planned.table, planned.rows, kept["count"], counter)
    if found.capacity > MOST_COUNTED:
        raise EngineFailedError(
            "There are more units than there is room for.",
            why=f"By their noisy count there are more than {MOST_COUNTED:,}.",
            fix="Have the owner find limits: [contribution] without rows, then protect. Steps then draw some of them.",
        )
    return found


def _taken(parts: list[Units]) -> Any:
    """One after another, each let go once it was used."""
    while parts:
        yield parts.pop(0)


def _parts_of(event: Event) -> tuple[SampledGaussian, DiscreteGaussian | None]:
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
    """The ε of the model by itself; None where there is none, or nothing to compare."""
    if not delta:
        return None
    found = model_epsilon(event, delta)
    return found if math.isfinite(found) else None
