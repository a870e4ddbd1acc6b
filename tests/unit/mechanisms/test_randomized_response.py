"""Randomized response: the exact probability matrix, and estimates without bias."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.accounting import events
from dalenius.mechanisms import FiniteResponse, RandomizedResponse
from dalenius.mechanisms.noise import _exact
from dalenius.mechanisms.noise.finite import FiniteLaw

EPSILONS = [Fraction(1, 10), Fraction(1), Fraction(7, 2)]
GRID = tuple((x, y) for x in range(3) for y in range(2))
DISTANCE = tuple(tuple(-abs(a[0] - b[0]) - abs(a[1] - b[1]) for b in GRID) for a in GRID)


def worst_ratio(matrix: list[list[Fraction]]) -> float:
    return max(math.log(a[y] / b[y]) for a, b in itertools.permutations(matrix, 2) for y in range(len(a)))


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("categories", [2, 3, 10])
def test_the_ratio_of_any_report_is_exactly_epsilon(epsilon, categories):
    matrix = RandomizedResponse(epsilon, categories).probabilities()
    assert all(sum(row) == 1 for row in matrix)
    assert worst_ratio(matrix) == pytest.approx(float(epsilon), rel=1e-12)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_reports_by_distance_on_a_grid_are_private(epsilon):
    mechanism = FiniteResponse(epsilon, DISTANCE)
    assert mechanism.event == events.Exponential(epsilon, mechanism.neighbors)
    matrix = mechanism.probabilities()
    found = [math.log(a[y] / b[y]) for a, b in itertools.permutations(matrix, 2) for y in range(len(GRID))]
    assert max(found) <= float(epsilon)
    for a, b in itertools.permutations(matrix, 2):
        spread = [math.log(p / q) for p, q in zip(a, b, strict=True)]
        assert max(spread) - min(spread) <= float(epsilon) + 1e-12
    assert all(matrix[x][x] == max(matrix[x]) for x in range(len(GRID)))


def test_equal_answers_score_one_is_k_ary_randomized_response():
    mechanism = FiniteResponse(2, ((1, 0, 0), (0, 1, 0), (0, 0, 1)))
    assert mechanism.symmetric
    assert mechanism.event == events.Pure(2, mechanism.neighbors)
    ours, theirs = mechanism.probabilities(), RandomizedResponse(2, 3).probabilities()
    assert max(abs(a - b) for x, y in zip(ours, theirs, strict=True) for a, b in zip(x, y, strict=True)) < 2**-110


def test_distance_on_a_ring_has_one_normaliser_and_reaches_epsilon():
    ring = tuple(tuple(-min((x - y) % 6, (y - x) % 6) for y in range(6)) for x in range(6))
    mechanism = FiniteResponse(2, ring)
    assert mechanism.symmetric
    assert worst_ratio(mechanism.probabilities()) == pytest.approx(2.0)


@given(
    st.integers(2, 4).flatmap(
        lambda width: st.lists(
            st.lists(st.integers(-5, 5), min_size=width, max_size=width).map(tuple), min_size=2, max_size=4
        ).map(tuple)
    ),
    st.sampled_from(EPSILONS),
)
def test_any_matrix_of_scores_is_private(scores, epsilon):
    if len(set(scores)) == 1:
        return
    mechanism = FiniteResponse(epsilon, scores)
    assert worst_ratio(mechanism.probabilities()) <= float(epsilon) * (1 + 1e-12)


@pytest.mark.parametrize("mechanism", [RandomizedResponse(1, 4), FiniteResponse(1, DISTANCE)])
def test_the_estimate_has_no_bias(mechanism):
    """Fed with the expected number of reports, it returns the true shares."""
    matrix = np.array([[float(p) for p in row] for row in mechanism.probabilities()])
    shares = np.arange(1, len(matrix) + 1) / sum(range(1, len(matrix) + 1))
    counts = np.round(shares @ matrix * 10**6).astype(int)
    assert mechanism.estimate(np.repeat(np.arange(len(matrix[0])), counts)) == pytest.approx(shares, abs=1e-4)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
def test_the_variance_is_that_of_erratum_2(share, epsilon):
    p, n = math.exp(epsilon) / (1 + math.exp(epsilon)), 500
    expected = share * (1 - share) / n + (1 / (16 * (p - 0.5) ** 2) - 0.25) / n
    assert RandomizedResponse(epsilon).variance(share, n) == pytest.approx(expected)


def test_extreme_parameters_stay_exact():
    assert RandomizedResponse(10**6, 2).release([0, 1] * 500).value.tolist() == [0, 1] * 500
    tiny = RandomizedResponse(Fraction(1, 10**30), 2).probabilities()
    assert tiny[0][0] > Fraction(1, 2) > tiny[0][1]
    assert RandomizedResponse(1, 2**22).release(12345).value < 2**22


def test_reports_keep_the_shape_of_the_answers():
    assert isinstance(RandomizedResponse(1).release(1).value, int)
    assert RandomizedResponse(1, 3).release(np.zeros((4, 5), dtype=np.int64)).value.shape == (4, 5)
    assert FiniteResponse(1, DISTANCE).release([]).value.shape == (0,)


def test_probabilities_are_enclosed_to_the_precision_asked_for():
    law = FiniteLaw((((1, Fraction(0)), (3, Fraction(1, 3)), (2, Fraction(5))),))
    for column, precision in itertools.product(range(2), (8, 64, 300)):
        low, high = law.cumulative(0, column, precision)
        assert 0 <= high - low <= 2
        exact = [1.0, 3 * math.exp(-1 / 3), 2 * math.exp(-5)]
        assert low / 2**precision == pytest.approx(
            sum(exact[: column + 1]) / sum(exact), abs=2.0 ** -min(precision - 2, 40)
        )


def test_the_fast_and_the_exact_comparison_agree():
    """The same words, settled by integers of 64 bits and by enclosures of growing precision."""
    from dalenius.mechanisms.noise import bits

    class Fixed:
        def __init__(self):
            self.generator = np.random.default_rng(7)

        def words(self, count):
            return self.generator.integers(0, 2**64, count, dtype=np.uint64)

    law = FiniteResponse(1, DISTANCE).law
    rows = np.arange(3000) % len(GRID)
    with bits._injected(Fixed()):
        fast = law.draw(rows)
    with bits._injected(Fixed()), _exact._always():
        slow = law.draw(rows)
    assert fast.tolist() == slow.tolist()


def test_a_word_on_the_boundary_is_settled_by_more_bits():
    from dalenius.mechanisms.noise import bits

    law = FiniteLaw((((1, Fraction(0)), (1, Fraction(1))),))
    low, _ = law.cumulative(0, 0, 96)
    edge = low >> 32

    class Edge:
        def __init__(self, then):
            self.then, self.first = then, True

        def words(self, count):
            word, self.first = (edge, False) if self.first else (self.then, False)
            return np.full(count, word, dtype=np.uint64)

    found = []
    for then in (0, 2**64 - 1):
        with bits._injected(Edge(then)):
            found.append(int(law.draw(np.zeros(1, dtype=np.int64))[0]))
    assert found == [0, 1]


@pytest.mark.parametrize("kind", [np.int8, np.int64])
def test_scores_from_numpy_do_not_wrap(kind):
    low, high = int(np.iinfo(kind).min), int(np.iinfo(kind).max)
    plain = ((low, high, 0), (high, low, 0), (0, 1, low))
    given = FiniteResponse(4, tuple(tuple(map(kind, row)) for row in plain))
    assert given.law == FiniteResponse(4, plain).law
    assert given.symmetric == FiniteResponse(4, plain).symmetric
    assert worst_ratio(given.probabilities()) <= 4 * (1 + 1e-12)


@pytest.mark.parametrize("scores", [DISTANCE, ((0, -1, -9), (-1, 0, -1), (-9, -1, 0))])
@pytest.mark.parametrize("t", [0.5, 1.0, 3.0])
def test_a_report_scores_no_lower_than_its_utility_says(scores, t):
    for epsilon in (Fraction(1), Fraction(12), Fraction(40)):
        mechanism = FiniteResponse(epsilon, scores)
        for row, chances in zip(scores, mechanism.probabilities(), strict=True):
            low = [p for score, p in zip(row, chances, strict=True) if max(row) - score >= mechanism.utility(t)]
            assert sum(low) <= math.exp(-t)
