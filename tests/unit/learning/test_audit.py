"""A canary, the worst unit there is, shows less than is charged; of a trainer that does not clip it shows more."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats
from tests.seeded_noise import seeded_noise
from tests.unit.learning.made import recipe_of, some_units, task_with

from dalenius.accounting.neighbors import Neighbors
from dalenius.accounting.rounded_noise import model_epsilon
from dalenius.learning import output, sgd
from dalenius.learning.features import WHOLE
from dalenius.learning.gradients import Gradients
from dalenius.learning.rules import Population, Price
from dalenius.learning.units import Units
from dalenius.mechanisms.noise import discrete_gaussian

DELTA = 1e-3
ALARM = 1e-6
Draw = Callable[[bool], float]


def lower_bound(draw: Draw, runs: int) -> float:
    """ε̂ at δ: the best threshold of a first half of runs, counted on the others; too large with chance 1e-6."""
    sides = [np.array([draw(there) for _ in range(runs)]) for there in (False, True)]
    half = runs // 2
    cuts = np.quantile(np.concatenate([side[:half] for side in sides]), np.linspace(0.02, 0.98, 49))
    _, cut = max((_epsilon([side[:half] for side in sides], cut), cut) for cut in cuts)
    return _epsilon([side[half:] for side in sides], cut)


def _epsilon(sides: list[np.ndarray], cut: float) -> float:
    """ln((P(above | there) − δ)/P(above | not there)), and the other way round with P(below)."""
    found, runs = 0.0, len(sides[0])
    without, there = (int((side > cut).sum()) for side in sides)
    for hits, others in ((there, without), (runs - without, runs - there)):
        low = stats.beta.ppf(ALARM / 4, hits, runs - hits + 1) if hits else 0.0
        high = stats.beta.ppf(1 - ALARM / 4, others + 1, runs - others) if others < runs else 1.0
        if low > DELTA:
            found = max(found, float(np.log((low - DELTA) / high)))
    return found


def _with_canary(units: Units, aim: float) -> Units:
    """The last place gets the longest row there is, far from all that the others say."""
    found = Units(units.numbers.copy(), units.aims.copy())
    found.numbers[-2, 0], found.aims[-2, 0] = WHOLE, aim
    return found


def _trained(variance: int, aim: float) -> tuple[Draw, float]:
    task = task_with(3, "linear")
    sides = [some_units(task, 19, capacity=20)]
    sides.append(_with_canary(sides[0], aim))
    recipe = recipe_of(task, variance=Fraction(variance * 2**66), steps=3, learning_rate=0.1, averaged=1.0)
    event = recipe.event()
    return lambda there: float(sgd.train(recipe, event, sides[there]).values.sum()), model_epsilon(event, DELTA)


@pytest.mark.statistical
def test_a_canary_shows_no_more_than_is_charged(rounds: Callable[[int], int]):
    with seeded_noise(2):
        draw, charged = _trained(1, 5.0)
        shown = lower_bound(draw, max(1500, rounds(40_000)))
    assert 1 < shown <= charged


@pytest.mark.statistical
def test_a_trainer_that_does_not_clip_shows_more_than_is_charged(monkeypatch: pytest.MonkeyPatch):
    def unclipped(self: Any, whole: Any, scale: float, numbers: Any, aims: Any) -> Any:
        residuals = self._loss.residual(whole @ numbers.T * scale, aims)
        return np.trunc(residuals * 2.0 ** (self._grid - 14))

    monkeypatch.setattr(Gradients, "_of_one_row", unclipped)
    with seeded_noise(2):
        draw, charged = _trained(16, 50.0)
        assert lower_bound(draw, 1500) > charged


def _perturbed(
    monkeypatch: pytest.MonkeyPatch, rho: float, neighbors: Neighbors = Neighbors.ADD_REMOVE
) -> tuple[Draw, float]:
    """Output perturbation; what the solver finds is found once for each side."""
    task = task_with(3)
    sides = [some_units(task, 20, capacity=21)]
    sides[0].aims[:] = 0
    sides.append(_with_canary(sides[0], 1.0))
    if neighbors is Neighbors.SUBSTITUTE:
        sides[0] = _with_canary(sides[0], 0.0)
    recipe = output.plan(task, Population(20.0, 21), Price(rho), neighbors=neighbors)
    event = recipe.event()
    best = {id(side): output.solve(recipe, side) for side in sides}
    monkeypatch.setattr(output, "solve", lambda _, units: best[id(units)])
    return lambda there: float(output.train(recipe, event, sides[there]).values.sum()), model_epsilon(event, DELTA)


@pytest.mark.statistical
@pytest.mark.parametrize("neighbors", list(Neighbors))
def test_a_canary_shows_no_more_of_output_perturbation(
    neighbors: Neighbors, monkeypatch: pytest.MonkeyPatch, rounds: Callable[[int], int]
):
    with seeded_noise(2):
        draw, charged = _perturbed(monkeypatch, 2.0, neighbors)
        shown = lower_bound(draw, max(4000, rounds(80_000)))
    assert 0.1 < shown <= charged


@pytest.mark.statistical
def test_output_with_a_tenth_of_its_noise_shows_more(monkeypatch: pytest.MonkeyPatch):
    with seeded_noise(2):
        draw, charged = _perturbed(monkeypatch, 0.5)
        monkeypatch.setattr(
            output, "discrete_gaussian", lambda *, variance, size: discrete_gaussian(variance=variance / 400, size=size)
        )
        assert lower_bound(draw, 2000) > charged
