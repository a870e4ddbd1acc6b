"""What a step releases has exactly the law that is charged; a training that was cut off goes on."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields, replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy import stats
from tests.seeded_noise import seeded_noise
from tests.unit.learning.made import recipe_of, some_units, task_with

from dalenius.accounting.events import SampledGaussian
from dalenius.errors import InputError
from dalenius.learning import drawing, sgd
from dalenius.learning.recipe import Recipe
from dalenius.learning.sgd import Checkpoint, begin, finished, steps, train
from dalenius.learning.units import Units
from dalenius.mechanisms.noise import discrete_gaussian

ALARM = 1e-6
STEPS = 8_000


def _two_units() -> tuple[Recipe, Units]:
    """Two units that add (−8) and (−4) whole steps to a sum of one number, each with chance 5/16; σ² = 9."""
    task = task_with(0, "linear")
    units = Units(np.zeros((3, 1, 1), np.float32), np.zeros((3, 1)))
    units.numbers[:2], units.aims[:2, 0] = 1, (1.0, 0.5)
    recipe = recipe_of(
        task, people=2.0, capacity=2, slots=2, grid=17, clip=16, rate=Fraction(5, 16), variance=Fraction(9),
        steps=STEPS, learning_rate=0.0,
    )  # fmt: skip
    return recipe, units


def _law(values: np.ndarray, rate: float, variance: float) -> np.ndarray:
    """P(sum + noise) for each value, by enumeration of who is in the step."""
    noise = np.arange(-200, 201)
    weight = np.exp(-(noise.astype(float) ** 2) / (2 * variance))
    weight /= weight.sum()
    found = np.zeros(len(values))
    for one, other in product((0, 1), repeat=2):
        chance = (rate if one else 1 - rate) * (rate if other else 1 - rate)
        found += chance * weight[values - (-8 * one - 4 * other) + 200]
    return found


def _released(recipe: Recipe, units: Units) -> np.ndarray:
    """The noisy sum of each step, as whole numbers: with a learning rate of 0 the velocity tells it."""
    found = [at.velocity[0, 0] * recipe.divisor for at in steps(recipe, recipe.event(), units)]
    assert np.abs(np.array(found) - np.rint(found)).max() < 1e-6
    return np.rint(found).astype(int)


def _has_law(released: np.ndarray, rate: float, variance: float) -> bool:
    """By χ² over values, the rare ones together; wrong with chance 1e-6."""
    values = np.arange(-60, 61)
    expected = _law(values, rate, variance) * len(released)
    often = expected >= 8
    counts = np.array([(released == each).sum() for each in values[often]])
    rest = len(released) - counts.sum(), len(released) - expected[often].sum()
    statistic = ((counts - expected[often]) ** 2 / expected[often]).sum() + (rest[0] - rest[1]) ** 2 / rest[1]
    return bool(stats.chi2.sf(statistic, int(often.sum())) > ALARM)


@pytest.mark.statistical
def test_a_released_sum_has_the_law_that_enumeration_gives(rounds: Callable[[int], int]):
    recipe, units = _two_units()
    recipe = replace(recipe, steps=max(STEPS, rounds(50 * STEPS)))
    with seeded_noise(11):
        released = _released(recipe, units)
    assert _has_law(released, 5 / 16, 9.0)
    assert not _has_law(released, 5 / 16, 9.0 * 0.8**2)
    assert not _has_law(released, 5 / 16 * 0.8, 9.0)


@pytest.mark.statistical
def test_noise_of_the_wrong_scale_is_caught(monkeypatch: pytest.MonkeyPatch):
    recipe, units = _two_units()
    monkeypatch.setattr(
        sgd, "discrete_gaussian", lambda *, variance, size: discrete_gaussian(variance=variance * 16 / 25, size=size)
    )
    with seeded_noise(11):
        assert not _has_law(_released(recipe, units), 5 / 16, 9.0)


@pytest.mark.statistical
def test_sampling_at_the_wrong_rate_is_caught_in_what_is_released(monkeypatch: pytest.MonkeyPatch):
    recipe, units = _two_units()
    right = drawing._drawn
    monkeypatch.setattr(drawing, "_drawn", lambda whole, capacity: right(whole + whole // 4, capacity))
    with seeded_noise(11):
        assert not _has_law(_released(recipe, units), 5 / 16, 9.0)


def test_a_sample_that_is_kept_for_all_steps_is_caught(monkeypatch: pytest.MonkeyPatch):
    recipe, units = _two_units()
    kept = np.array([0, 2])
    monkeypatch.setattr(sgd, "draw_units", lambda *_: kept)
    with seeded_noise(11):
        assert not _has_law(_released(recipe, units), 5 / 16, 9.0)


def test_a_training_that_was_cut_off_goes_on_from_any_checkpoint():
    task = task_with(3, "logistic", 3)
    units = some_units(task, 20)
    recipe = recipe_of(task, steps=10, centring=2, variance=Fraction(1), momentum=0.5)
    for cut in range(1, 10):
        with seeded_noise(cut):
            at = begin(recipe)
            for at in steps(recipe, recipe.event(), units):
                if at.step == cut:
                    break
        again = Checkpoint.of_json(json.loads(json.dumps(at.to_json())))
        last = list(steps(recipe, recipe.event(), units, again))[-1]
        assert last.step == 10
        exactly = list(steps(recipe, recipe.event(), units))[-1]
        # noise of one whole step is nothing here, so both come to the same
        assert np.allclose(finished(recipe, last).values, finished(recipe, exactly).values, atol=1e-6)


def test_a_checkpoint_has_the_iterate_and_nothing_of_a_sample():
    names = {each.name for each in fields(Checkpoint)}
    assert names == {"step", "weights", "average", "velocity", "centre"}
    task = task_with(2)
    recipe = recipe_of(task, steps=3, learning_rate=0.0)
    for at in steps(recipe, recipe.event(), some_units(task, 20)):
        assert set(at.to_json()) == names
        assert at.weights.shape == at.velocity.shape == recipe.shape and at.centre.shape == (3,)


def test_what_was_not_charged_is_not_trained():
    task = task_with(2)
    recipe, units = recipe_of(task), some_units(task, 20)
    event = recipe.event()
    for other in (
        replace(event, variance=event.variance / 2),
        replace(event, steps=event.steps - 1),
        replace(event, rate=Fraction(1, 2)),
        replace(event, squared_sensitivity=1),
        SampledGaussian(Fraction(1), 1),
    ):
        with pytest.raises(InputError, match="charge"):
            train(recipe, other, units)
    with pytest.raises(InputError, match="room"):
        train(recipe, event, some_units(task, 19))
    with pytest.raises(InputError, match="not done"):
        finished(recipe, begin(recipe))


def test_noise_beyond_64_bits_is_noise_too():
    task = task_with(2, "logistic", 3)
    recipe = recipe_of(task, variance=Fraction(2) ** 140, centring=1)
    found = train(recipe, recipe.event(), some_units(task, 20)).values
    assert found.dtype == np.float64 and np.isfinite(found).all() and np.abs(found).max() > 2.0**20


def test_progress_is_told_every_step():
    task = task_with(2)
    recipe, told = recipe_of(task), list[int]()
    train(recipe, recipe.event(), some_units(task, 20), progress=told.append)
    assert told == [1, 2, 3, 4]


def test_a_recipe_comes_back_from_json():
    recipe = recipe_of(task_with(3, "svm", 4), rate=Fraction(3, 2**32), variance=Fraction(7, 3))
    assert Recipe.of_json(json.loads(json.dumps(recipe.to_json()))) == recipe
