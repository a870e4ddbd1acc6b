"""Values become positions and come back, whatever their kind and however far apart their bounds are."""

from __future__ import annotations

from datetime import date, datetime
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.synthesis.grid import MOST_POSITIONS, Grid
from dalenius.synthesis.position_classes import Classes
from dalenius.tables.policy import Kind

CHANCE = np.random.default_rng(1)


@given(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1))
def test_whole_numbers_of_all_widths_stay_within_their_bounds(one: int, other: int):
    grid = Grid(Kind.INTEGER, min(one, other), max(one, other))
    assert 1 <= grid.size <= 2 * MOST_POSITIONS and (grid.unit == 1 or grid.size > MOST_POSITIONS // 2)
    ends = grid.positions(np.array([grid.low, grid.high], np.float64))
    assert 0 <= ends[0] <= ends[1] < grid.size
    found = grid.values(np.array([0, grid.size // 2, grid.size - 1]), CHANCE)
    assert found.dtype == np.int64 and all(grid.low <= each <= grid.high for each in found.tolist())
    assert grid.low <= int(found[0]) < grid.low + grid.unit


@given(st.integers(-(2**40), 2**40), st.integers(0, 2**30), st.sampled_from(["0.01", "0.25", "3", "1000", "1e-6"]))
def test_numbers_come_back_on_their_step(low: int, width: int, step: str):
    exact = Fraction(step)
    grid = Grid(Kind.NUMBER, low * exact, (low + width) * exact, exact)
    assert grid.size == width + 1
    positions = np.unique(np.array([0, width // 3, width]))
    values = grid.values(positions, CHANCE)
    assert grid.positions(values).tolist() == positions.tolist()
    assert values.tolist() == [float((low + at) * exact) for at in positions.tolist()]


def test_days_and_seconds_are_positions_from_the_lower_bound():
    days = Grid(Kind.DATE, date(1960, 2, 28), date(2024, 3, 1))
    leap = np.array(["1960-02-29", "2024-02-29"], "datetime64[D]")
    assert days.positions(leap).tolist() == [1, days.size - 2] and days.zero == 0
    assert days.values(days.positions(leap), CHANCE).tolist() == leap.tolist()
    start = datetime.fromisoformat("1969-12-31T23:59:58.500000")
    seconds = Grid(Kind.DATETIME, start, datetime.fromisoformat("1970-01-01T00:00:03"))
    assert seconds.size == 6
    back = seconds.values(np.arange(6), CHANCE).tolist()
    assert back[0] == start and back[-1] == datetime.fromisoformat("1970-01-01T00:00:03")
    assert seconds.positions(np.array(back, "datetime64[us]")).tolist() == list(range(6))


@pytest.mark.parametrize(("low", "high", "zero"), [(-3, 8, 3), (5, 9, 0), (-9, -2, 7), (0, 4, 0)])
def test_zero_is_the_position_nearest_to_it(low: int, high: int, zero: int):
    assert Grid(Kind.INTEGER, low, high).zero == zero


@given(st.integers(1, 500), st.integers(1, 64))
def test_equal_classes_part_all_positions(size: int, most: int):
    classes = Classes.equal(size, most)
    every = np.arange(size)
    codes = classes.codes(every)
    assert len(classes) == min(size, most) == len(set(codes.tolist()))
    assert [every[codes == at].tolist() for at in range(len(classes))] == [
        list(range(first, last + 1)) for first, last in classes.runs
    ]
    assert Classes.of_json(classes.to_json()) == classes
    assert classes.codes(classes.draw(codes, CHANCE)).tolist() == codes.tolist()
