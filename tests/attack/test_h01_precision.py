"""H1: no output event of a release occurs on one side only, down to the last bit of a double.

One row, whose value is 0 or 1. Mironov (2012) told the two apart by which doubles noise in floating point can reach:
close to 0 the doubles are dense around one of the answers and sparse around the other. Here all noise is a whole number
of steps, so events such as "an odd multiple of the step" are as likely on both sides.

The chance of a false alarm stands at each test that looks at frequencies; it is below 1e-6.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats
from tests.attack.curators import curator_of, integers_of, plan_of
from tests.conftest import LONG

from dalenius.measuring.engines.duckdb.measuring import Measuring
from dalenius.measuring.plan import Plan
from dalenius.queries.answering import Answer, measure_plan
from dalenius.queries.rules.price import price_plan

DRAWS = 30_000 if LONG else 18_000
FINE = Fraction(1, 2**53)
FINE_STEP = f"{2**-53:.53f}"  # exact: a power of two is a finite decimal
COLUMNS = f"""
[columns.cell]
type = "integer"
bounds = [1, {DRAWS}]
[columns.whole]
type = "integer"
bounds = [0, 1]
[columns.fine]
type = "number"
bounds = [0, 1]
step = {FINE_STEP}
"""
TOTAL = "SELECT SUM({0}) FROM t"
BY_CELL = "SELECT cell, SUM({0}) FROM t GROUP BY cell"


class Frozen(Measuring):
    """An engine whose every cell holds the same exact integer: as many releases of it as there are cells."""

    scan = "nowhere"
    columns: Mapping[str, str] = {}
    index = None

    def __init__(self, value: int) -> None:
        self.value = value

    def run(self, sql: str, *, seconds: float = 60.0) -> list[tuple[Any, ...]]:
        return [(float(cell), self.value) for cell in range(1, DRAWS + 1)]


@pytest.fixture(scope="module", params=["zcdp", "pure"])
def pair(request, tmp_path_factory):
    """Curators of one row with value 0 and with value 1."""
    folder = tmp_path_factory.mktemp(request.param)
    tables = [pa.table({"id": [1], "cell": [1], "whole": [value], "fine": [float(value)]}) for value in (0, 1)]
    return [
        curator_of(folder / str(at), table, COLUMNS, contribution="rows = 1", accounting=request.param)
        for at, table in enumerate(tables)
    ]


def released(plan: Plan, epsilon: float, value: int) -> list[float]:
    """Many releases of one exact integer, as analysts get them."""
    content = measure_plan(plan, price_plan(plan, epsilon), Frozen(value), "salt", 60.0)
    return [row[1] for row in Answer.read(plan, content, 0.95).table().rows]


@pytest.fixture(scope="module")
def fine(pair):
    """Releases of the fine column's two answers."""
    plan = plan_of(pair[0], BY_CELL.format("fine"))
    return [released(plan, 2.0, integer) for integer in (0, 2**53)]


def off_the_lattice(values: Sequence[float], step: Fraction) -> list[float]:
    """Values that are not the double nearest to a whole number of steps."""
    return [each for each in values if float(round(Fraction(each) / step) * step) != each]


def odd_share(values: Sequence[float], bits: int) -> tuple[int, int]:
    """Of the values in (−½, 0): how many are odd multiples of 2^-bits, and how many there are."""
    near = [each for each in values if -0.5 < each < 0]
    scaled = [Fraction(each) * 2**bits for each in near]
    return sum(each.denominator == 1 and each.numerator % 2 == 1 for each in scaled), len(near)


def low_order(values: Sequence[float], modulus: int) -> list[int]:
    """How often each remainder occurs among the values in (−1, 1), in whole numbers of the fine step."""
    # Past 1 doubles are coarser than the lattice, on both sides.
    counts = Counter(round(math.ldexp(each, 53)) % modulus for each in values if abs(each) < 1)
    return [counts[at] for at in range(modulus)]


def test_the_exact_integers_are_those_of_the_row(pair):
    for question, one in ((TOTAL.format("whole"), 1), (TOTAL.format("fine"), 2**53)):
        assert [integers_of(each, question) for each in pair] == [[[0]], [[one]]]


@pytest.mark.parametrize(("column", "step"), [("whole", Fraction(1)), ("fine", FINE)])
def test_what_a_curator_releases_lies_on_one_lattice(pair, column, step):
    for curator in pair:
        values = [
            curator.analyst("eve").ask(f"{TOTAL.format(column)} WHERE cell < {10 + at}", epsilon=0.5).value
            for at in range(20 if LONG else 12)
        ]
        assert off_the_lattice(values, step) == []
        assert len(set(values)) > 1  # twelve that are equal have a chance below 1e-6


@pytest.mark.statistical
@pytest.mark.parametrize("bits", [51, 52, 53])
def test_odd_multiples_close_to_zero_are_as_frequent_on_both_sides(fine, bits):
    """Six looks per accounting at 1e-8 each: a false alarm has probability below 1e-6 in all."""
    # 2^-53 is the lattice itself: half of its points are odd, a quarter odd multiples of twice the step, and so on
    share = 2.0 ** (bits - 54)
    for values in fine:
        odd, near = odd_share(values, bits)
        assert near > 500
        assert stats.binomtest(odd, near, share).pvalue > 1e-8


@pytest.mark.statistical
@pytest.mark.parametrize("modulus", [2, 3, 4, 64])
def test_low_order_bits_are_equally_frequent_on_both_sides(fine, modulus):
    """Noise of 2^53 steps and more is uniform in its last digits. Eight looks per accounting at 1e-8 each."""
    for values in fine:
        assert stats.chisquare(low_order(values, modulus)).pvalue > 1e-8


def test_all_releases_lie_on_the_fine_lattice(fine):
    assert [off_the_lattice(values, FINE) for values in fine] == [[], []]


@pytest.mark.statistical
def test_no_whole_number_is_reached_from_one_side_only(pair):
    """An event that either side expects 200 times is seen on both, and in the ratio that ε allows.

    A count of expectation at least 200·e^-1 is 0 with probability below e^-73. Each ratio is compared at ten standard
    deviations, over fewer than 200 events: a false alarm has probability below 1e-6.
    """
    plan = plan_of(pair[0], BY_CELL.format("whole"))
    one, other = (Counter(released(plan, 1.0, integer)) for integer in (0, 1))
    assert set(map(type, [*one, *other])) == {int}
    for event in {*one, *other}:
        few, many = sorted((one[event], other[event]))
        if many >= 200:
            assert few > 0
            assert many - 10 * math.sqrt(many) <= math.e * (few + 10 * math.sqrt(few))


# --- the checks above reject noise in floating point


def in_floating_point(value: float) -> list[float]:
    """Laplace noise by the inverse of its distribution, as in most libraries."""
    random = np.random.default_rng(1)
    return [float(each) for each in value + random.laplace(scale=1.0, size=DRAWS)]


def test_floating_point_noise_is_off_the_lattice():
    assert off_the_lattice(in_floating_point(1.0), Fraction(1))
    assert off_the_lattice(in_floating_point(0.0), FINE)


def test_floating_point_noise_has_events_on_one_side_only():
    odd = [odd_share(in_floating_point(value), 53) for value in (0.0, 1.0)]
    assert odd[0][0] > 500 and odd[1][0] == 0
    assert stats.binomtest(*odd[1], 0.5).pvalue < 1e-8


def test_floating_point_noise_favours_some_low_order_bits():
    assert stats.chisquare(low_order(in_floating_point(1.0), 4)).pvalue < 1e-8
