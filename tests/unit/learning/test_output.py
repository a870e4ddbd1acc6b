"""The best weights move by no more than the noise is calibrated for."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import examples
from tests.unit.learning.made import some_units, task_with

from dalenius.accounting import costs
from dalenius.accounting.neighbors import Neighbors
from dalenius.errors import InputError
from dalenius.learning import output
from dalenius.learning.output import OutputRecipe
from dalenius.learning.rules import Population, Price
from dalenius.learning.units import Units

people = st.integers(0, 2**32)
models = st.sampled_from(["logistic", "linear", "poisson", "svm"])


@settings(max_examples=examples(100))
@given(models, people, st.sampled_from(list(Neighbors)), st.integers(1, 3))
def test_one_unit_moves_the_weights_by_no_more_than_the_sensitivity(
    model: str, seed: int, neighbors: Neighbors, rows: int
):
    chance = np.random.default_rng(seed)
    task = task_with(3, model, int(chance.integers(2, 5)))
    with_ = some_units(task, 12, rows, seed)
    with_.aims[:12] *= chance.choice([0.0, 1.0])
    other = Units(with_.numbers.copy(), with_.aims.copy())
    other.numbers[11] = 0
    if neighbors is Neighbors.SUBSTITUTE:
        other.numbers[11] = -with_.numbers[11]
        other.numbers[11, :, -1] = 2**14
        other.aims[11] = (len(task.classes) or 2) - 1 - with_.aims[11]
    recipe = output.plan(task, Population(12.0, 12, rows=rows), Price(0.5), neighbors=neighbors)
    whole = [np.rint(np.ldexp(output.solve(recipe, each), recipe.grid)) for each in (with_, other)]
    assert math.sqrt(float(((whole[0] - whole[1]) ** 2).sum())) <= recipe.sensitivity


def test_the_solver_stops_only_where_the_gradient_is_small_enough():
    task = task_with(4, "logistic", 3)
    units = some_units(task, 200)
    recipe = output.plan(task, Population(200.0, 200), Price(0.5))
    slope = output._value(recipe, units, output.solve(recipe, units))[1]
    assert math.sqrt(float((slope * slope).sum())) <= recipe.close / 2


@pytest.mark.parametrize("model", ["logistic", "linear", "poisson", "svm"])
def test_the_gradient_is_that_of_the_loss(model: str):
    chance = np.random.default_rng(4)
    task = task_with(3, model, 3)
    recipe = output.plan(task, Population(50.0, 50), Price(0.5))
    units = some_units(task, 50)
    at = chance.normal(size=recipe.shape) * 0.3
    value, slope = output._value(recipe, units, at)
    for place in range(recipe.dimension):
        step = np.zeros(recipe.dimension)
        step[place] = 1e-6
        ahead, back = (output._value(recipe, units, at + sign * step.reshape(recipe.shape))[0] for sign in (1, -1))
        assert abs((ahead - back) / 2e-6 - slope[place]) < 1e-6 * (1 + abs(value))


def test_what_is_charged_is_the_price():
    task = task_with(4, "logistic", 3)
    population = Population(1000.0, 1010)
    for neighbors in Neighbors:
        recipe = output.plan(task, population, Price(0.25), neighbors=neighbors)
        cost = costs.zcdp(recipe.event())
        assert cost is not None and 0.2499 < cost.rho <= 0.25
        pure = output.plan(task, population, Price(0.0, epsilon=0.7), neighbors=neighbors)
        epsilon = costs.pure_epsilon(pure.event())
        assert epsilon is not None and 0.699 < epsilon <= 0.7
        for each in (recipe, pure):
            assert OutputRecipe.of_json(json.loads(json.dumps(each.to_json()))) == each


def test_an_exchange_costs_twice_the_distance():
    task, population = task_with(2), Population(1000.0, 1000)
    one, two = (output.plan(task, population, Price(0.1), neighbors=each) for each in Neighbors)
    moves = [each.sensitivity * each.regularisation * 2.0**-each.grid for each in (one, two)]
    assert 1.9 < max(moves) / min(moves) < 2.1


def test_it_learns_where_there_are_enough_people():
    task = task_with(2)
    units = some_units(task, 5000)
    units.aims[:, 0] = units.numbers[:, 0, 0] > 0
    for price in (Price(0.5), Price(0.0, epsilon=3.0)):
        recipe = output.plan(task, Population(5000.0, 5000), price)
        found = output.train(recipe, recipe.event(), units).values
        scores = found @ units.numbers[:5000, 0].T
        assert ((scores[0] > 0) == units.aims[:5000, 0]).mean() > 0.9


def test_another_charge_or_another_room_is_refused():
    task = task_with(2)
    recipe = output.plan(task, Population(10.0, 10), Price(0.5))
    other = output.plan(task, Population(10.0, 10), Price(0.6))
    with pytest.raises(InputError, match="charge"):
        output.train(recipe, other.event(), some_units(task, 10))
    with pytest.raises(InputError, match="room"):
        output.train(recipe, recipe.event(), some_units(task, 9))


@pytest.mark.parametrize("model", ["logistic", "linear", "poisson", "svm"])
@pytest.mark.parametrize(("units", "capacity", "columns"), [(1.0, 5000, 3), (1e5, 10**5, 2000), (1.0, 10**6, 2000)])
def test_what_rounding_can_do_to_a_gradient_is_within_what_the_solver_may_leave(
    model: str, units: float, capacity: int, columns: int
):
    """By the usual bounds of sums and products of doubles: weights may be cL/λ long, and c·n̂ rows are added up."""
    task = task_with(columns, model, 4)
    recipe = output.plan(task, Population(units, capacity), Price(5.0))
    unit, crowd = 2.0**-53, capacity / units
    residual = min(task.loss.lipschitz(task.outputs), 1e9)
    steepest = (residual if residual < 1e9 else 1.0) * recipe.longest
    weights = (crowd * steepest + recipe.close) / recipe.regularisation
    scores = columns * unit * weights * recipe.longest
    residuals = task.loss.smoothness * scores + (task.outputs + 4) * unit + 1e-14
    error = crowd * (recipe.longest * residuals + (capacity + 4) * unit * steepest)
    assert error <= recipe.close / 2 <= crowd * steepest


def test_weights_past_the_grid_stay_near_each_other():
    """A count far too low must not let whole numbers overflow: then two would be 2⁶⁴ apart."""
    task = task_with(2, "linear")
    recipe = replace(output.plan(task, Population(2.0, 40), Price(50.0)), grid=64)
    units = some_units(task, 40)
    units.aims[:40] = 1.0
    found = np.ldexp(output.train(recipe, recipe.event(), units).values, recipe.grid)
    exact = np.ldexp(output.solve(recipe, units), recipe.grid)
    assert (np.abs(exact) > 2.0**61).any()
    far = np.abs(found - np.clip(exact, -(2.0**61), 2.0**61))
    assert (far < 50 * recipe.sigma * 2.0**recipe.grid + 2.0**10).all()
