"""Least squares of several releases about the same cells, against matrices that are written down."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from tests.dense import padded, question_matrix, tables_of

from dalenius.errors import InputError
from dalenius.measuring.inference import least_squares
from dalenius.measuring.inference.least_squares import Measured, apply, measured_by, solve
from dalenius.measuring.strategies.choosing import candidates
from dalenius.measuring.strategies.factors import Identity, Rows, Total
from dalenius.measuring.strategies.range_factors import AllRange, Prefix
from dalenius.measuring.strategies.workload import Product, Workload

SIZES = (4, 3, 5)
ASKED = [
    Product({0: Identity(4), 1: Prefix(3)}),
    Product({2: AllRange(5)}),
    Product({1: Identity(3), 2: Rows.of([[1, 0, 1, 0, 0]])}),
]
FOLLOWING = [Product({}), Product({0: Total(4), 2: Identity(5)}), Product({0: Rows.of([[1, 1, 0, 0]])})]
OPEN = Product({0: Identity(4), 2: Identity(5)})


@pytest.fixture
def measured():
    chance = np.random.default_rng(7)
    variances: list[Any] = [1.0, 3.0, chance.random(3) + 0.5]
    return [
        Measured(product, chance.normal(size=product.answers), variance)
        for product, variance in zip(ASKED, variances, strict=True)
    ]


@pytest.fixture(params=["dense", "sparse"])
def solved(request, measured, monkeypatch):
    monkeypatch.setattr(least_squares, "DENSE", 10**4 if request.param == "dense" else 1)
    return solve(SIZES, measured)


@pytest.fixture
def by_hand(measured):
    parts = [question_matrix(each.product, SIZES) / each.deviations[:, None] for each in measured]
    matrix = np.concatenate(parts)
    values = np.concatenate([each.values / each.deviations for each in measured])
    return np.linalg.pinv(matrix) @ values, np.linalg.pinv(matrix.T @ matrix)


@pytest.mark.parametrize("product", ASKED + FOLLOWING)
def test_answers_and_variances_are_those_of_the_matrix(solved, by_hand, product):
    cells, covariance = by_hand
    rows = question_matrix(product, SIZES)
    assert solved.determines(product)
    assert np.allclose(solved.answers(product), rows @ cells, atol=1e-7)
    assert np.allclose(solved.variances(product), (rows @ covariance * rows).sum(axis=1), atol=1e-7)


def test_what_does_not_follow_is_not_determined(solved):
    assert not solved.determines(OPEN)
    assert not solved.determines(Product({0: Identity(4), 7: Identity(2)}))


def test_two_answers_to_one_question_are_averaged_by_precision():
    total = Product({})
    solved = solve((), [Measured(total, np.array([10.0]), 1.0), Measured(total, np.array([20.0]), 4.0)])
    assert solved.answers(total) == pytest.approx([12.0])
    assert solved.variances(total) == pytest.approx([0.8])


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_what_strategies_measured_is_solved_together_with_other_answers(norm):
    workload = Workload(SIZES, tuple(ASKED))
    chance = np.random.default_rng(14)
    x = chance.integers(0, 30, SIZES)
    for _, strategy in candidates(workload, norm):
        exact = strategy.measure(tables_of(strategy, x))
        variance = float(strategy.change("l2"))
        noisy = exact + chance.normal(size=len(exact)) * math.sqrt(variance)
        alone = solve(SIZES, measured_by(strategy, noisy, variance))
        for product in ASKED:
            assert alone.determines(product)
            # The same; but a tree with empty classes does not know that they are, and these least squares do.
            own = variance * strategy.variances(product)
            assert (alone.variances(product) <= own * (1 + 1e-6)).all()
            if not padded(strategy):
                assert alone.variances(product) == pytest.approx(own, rel=1e-6)
                assert alone.answers(product) == pytest.approx(strategy.infer(noisy).answers(product), abs=1e-5)
        total = Measured(Product({}), np.array([float(x.sum())]), 1e-6)
        both = solve(SIZES, [*measured_by(strategy, noisy, variance), total])
        assert both.answers(Product({})) == pytest.approx([x.sum()], abs=1e-2)
        assert (both.variances(ASKED[0]) <= alone.variances(ASKED[0]) * (1 + 1e-6)).all()


def test_10_to_the_6_cells_are_solved():
    sizes = (100, 100, 100)
    x = np.random.default_rng(8).integers(0, 50, sizes).astype(float)
    asked = [Product({0: Identity(100), 1: Identity(100)}), Product({1: Identity(100), 2: Identity(100)})]
    solved = solve(sizes, [Measured(each, apply(each, x, (0, 1, 2), sizes), 2.0) for each in asked])
    between = Product({1: Rows.of([[1] * 30 + [0] * 70])})
    assert solved.answers(between) == pytest.approx([x[:, :30].sum()])
    assert solved.variances(between) == pytest.approx([100 * 30 * 2 / 2], rel=1e-6)  # two sums of 3,000 each


def test_too_many_variances_are_refused_with_words():
    asked = Product({0: Identity(100), 1: Identity(100)})
    solved = solve((100, 100), [Measured(asked, np.zeros(10**4), 1.0)])
    with pytest.raises(InputError, match="too many answers"):
        solved.variances(asked)
