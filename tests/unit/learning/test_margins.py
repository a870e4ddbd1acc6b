"""Margins of coefficients hold, and are no wider than they must be; what noise is expected to take is in order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from tests.seeded_noise import seeded_noise

from dalenius.learning import output, sgd
from dalenius.learning.expecting import expected_loss, lost_share
from dalenius.learning.features import Feature
from dalenius.learning.margins import margins, margins_once, shares
from dalenius.learning.recipe import Recipe
from dalenius.learning.rules import Population, Price, plan
from dalenius.learning.task import Task
from dalenius.learning.units import Units, encode, in_room
from dalenius.tables.policy import Kind

ORDERS = (Fraction(9), Fraction(24))
WIDE = 10


def task(absent: bool = True, classes: int = 2) -> Task:
    features = (Feature(f"f{at}", Kind.NUMBER, absent, None, -5.0, 15.0) for at in range(WIDE))
    return Task(Feature("y", Kind.CATEGORY, False, tuple("abcdefgh"[:classes])), tuple(features), "logistic")


def some_units(of: Task, capacity: int, people: int = 60) -> Units:
    """Rows whose features are always there: the columns that say otherwise are 0 in all of them."""
    chance, here = np.random.default_rng(4), np.zeros(people, bool)
    values = {f"f{at}": (chance.uniform(-5, 15, people), here) for at in range(WIDE)}
    classes = np.array([str(each) for each in chance.choice(list("ab"), people)], object)
    return in_room([encode(of, values | {"y": (classes, here)})], of, capacity=capacity)


def in_steps(recipe: Recipe, units: Units) -> tuple[np.ndarray, np.ndarray]:
    """The coefficients of columns that are always 0, which noise alone moves, and their margins."""
    at = list(sgd.steps(recipe, recipe.event(), units))[-1]
    weights = sgd.finished(recipe, at)
    found = margins(recipe, weights, sgd.mean_of(recipe, at))
    return weights.values[0, 1:-1:2], found[0, 1:-1:2]


@pytest.mark.statistical
@pytest.mark.parametrize("momentum", [0.0, 0.8])
def test_where_nothing_curves_margins_are_just_those_of_the_noise(momentum: float, rounds: Callable[[int], int]):
    """The deviation of 1,000 normal numbers is off by 11% with chance below 10⁻⁶; one that is off by 20% is seen."""
    recipe = replace(
        plan(task(), Population(60.0, 80), Price(0.02, ORDERS), steps=20), momentum=momentum, learning_rate=0.1
    )
    units, drawn = some_units(recipe.task, recipe.capacity), list[float]()
    with seeded_noise(11):
        for _ in range(max(100, rounds(400))):
            weights, margin = in_steps(recipe, units)
            drawn += (weights / (margin / 1.959964)).tolist()
    assert len(drawn) >= 1000
    deviation = float(np.sqrt(np.mean(np.square(drawn))))
    assert 0.89 < deviation < 1.11 and not 0.89 < deviation * 1.25 < 1.11


@pytest.mark.statistical
@pytest.mark.parametrize("pure", [False, True])
def test_noise_that_is_added_once_has_the_margin_that_is_told(pure: bool):
    """Of 1,200 coefficients 5% lie outside of theirs: 22 to 104 of them, but with chance 10⁻⁶."""
    price = Price(0.0, (), 1.0) if pure else Price(0.02)
    recipe = output.plan(task(), Population(60.0, 80), price)
    units, outside = some_units(recipe.task, recipe.capacity), 0
    exact, told = output.solve(recipe, units), margins_once(recipe)[0, :-1]
    slopes = np.array([2 / 20, 1.0] * WIDE)  # of a number from −5 to 15, and of its absence
    with seeded_noise(12):
        for _ in range(60):
            moved = np.abs(output.train(recipe, recipe.event(), units).values - exact)[0, :-1]
            outside += int((moved * slopes > told).sum())
    assert 22 <= outside <= 104


def test_noise_of_early_steps_is_in_all_averaged_weights_and_that_of_late_ones_in_few():
    recipe = plan(task(), Population(60.0, 80), Price(0.02, ORDERS), steps=50)
    found = shares(recipe)
    assert len(found) == recipe.steps - recipe.centring
    assert found[0] == pytest.approx(recipe.learning_rate) and 0 < found[-1] < found[0] / 10
    assert (np.diff(found) <= 1e-12).all()


def test_the_margin_of_an_intercept_adds_up_all_that_is_in_it():
    recipe = plan(task(absent=False), Population(60.0, 80), Price(0.02, ORDERS), steps=20)
    with seeded_noise(13):
        at = list(sgd.steps(recipe, recipe.event(), some_units(recipe.task, recipe.capacity)))[-1]
    weights, mean = sgd.finished(recipe, at), sgd.mean_of(recipe, at)
    without = margins(recipe, weights)
    assert mean is not None and margins(recipe, weights, mean)[0, -1] != without[0, -1]
    # Where the value is 0, a column from −5 to 15 has −0.5.
    single = without[0, 0] / (2 / 20)
    assert without[0, -1] == pytest.approx(single * (1 + WIDE * 0.5**2) ** 0.5)


def test_noise_is_expected_to_take_less_where_there_are_more_people_or_a_higher_price():
    def told(people: float, rho: float, classes: int = 2) -> float:
        recipe = plan(task(classes=classes), Population(people, int(people) + 50), Price(rho, ORDERS))
        found = expected_loss(recipe)
        assert found is not None and 0 <= found <= lost_share(recipe) <= 1
        return found

    assert told(300, 0.02) > told(3000, 0.02) > told(30_000, 0.02) and told(300, 0.02) > told(300, 0.2)
    assert told(300, 0.02, 8) > told(300, 0.02) and told(1e6, 0.2) < 0.001 and told(10, 0.001) > 0.3
