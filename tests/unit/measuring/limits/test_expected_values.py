"""How far values differ, from how far totals do; against values that are drawn."""

from __future__ import annotations

import numpy as np
import pytest
from tests.unit.measuring.limits.test_expected_lengths import counted, known

from dalenius.measuring.limits.expected_values import Variety, tell_variety, with_values

UNITS = 20_000


def log_normal(random: np.random.Generator, square: float, size: int) -> np.ndarray:
    """With a mean of 300."""
    width = np.sqrt(np.log(square))
    return np.asarray(300 * np.exp(width * random.normal(size=size) - width**2 / 2))


def per_unit(values: np.ndarray, rows: np.ndarray) -> np.ndarray:
    return np.add.reduceat(values, np.append(0, np.cumsum(rows)[:-1]))


@pytest.fixture(scope="module", params=["one row", "poisson", "pareto"])
def rows(request: pytest.FixtureRequest) -> np.ndarray:
    random = np.random.default_rng(3)
    if request.param == "one row":
        return np.ones(UNITS, dtype=int)
    if request.param == "poisson":
        return np.maximum(random.poisson(8, UNITS), 1)
    return np.minimum(np.floor(random.random(UNITS) ** (-1 / 1.3)), 500).astype(int)


@pytest.mark.parametrize("square", [1.2, 2.0, 3.4, 6.0])
def test_how_far_the_values_of_rows_differ_shows_in_totals(rows, square):
    values = log_normal(np.random.default_rng(4), square, int(rows.sum()))
    found = tell_variety(known(counted(np.round(per_unit(values, rows)))), known(counted(rows)), lambda _: True)
    assert not found.of_units and np.log(found.square) == pytest.approx(np.log(square), rel=0.25, abs=0.12)


def test_what_bounds_forbid_to_rows_is_of_units():
    random = np.random.default_rng(5)
    rows, ages = np.maximum(random.poisson(8, UNITS), 1), log_normal(random, 1.15, UNITS)
    found = tell_variety(known(counted(np.round(ages * rows))), known(counted(rows)), lambda square: square < 1.5)
    assert found.of_units and found.square == pytest.approx(1.15, abs=0.08)


@pytest.mark.parametrize("square", [1.5, 3.4])
def test_sums_over_groups_and_of_squares_are_as_long_as_those_that_are_drawn(square):
    """As if all values were alike, sums over 24 groups came out a third too short where they differ much."""
    random = np.random.default_rng(6)
    rows = np.maximum(random.poisson(8, UNITS), 1)
    values, groups = log_normal(random, square, int(rows.sum())), 24
    sums = np.zeros((UNITS, groups))
    np.add.at(sums, (np.repeat(np.arange(UNITS), rows), random.integers(0, groups, len(values))), values)
    totals, made = known(counted(np.round(sums.sum(1)))), Variety(square)
    found = with_values(totals, known(counted(rows)), made).spread(groups)
    drawn = np.linalg.norm(sums, axis=1)
    assert found.units @ np.log(found.lengths) / found.number == pytest.approx(np.log(drawn).mean(), abs=0.08)
    squares = with_values(totals, known(counted(rows)), made, squared=True)
    drawn = per_unit(values**2, rows)
    assert squares.units @ np.log(squares.sizes) / squares.number == pytest.approx(np.log(drawn).mean(), abs=0.15)


def test_one_row_lies_in_one_group():
    totals = known(counted(np.round(log_normal(np.random.default_rng(7), 3.0, UNITS))))
    spread = with_values(totals, known(counted(np.ones(UNITS))), Variety(3.0)).spread(50)
    assert spread.units @ spread.lengths == pytest.approx(totals.total, rel=0.02)
