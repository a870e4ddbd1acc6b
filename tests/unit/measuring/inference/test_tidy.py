"""Cells as counts, and that intervals of what is shown still cover."""

from __future__ import annotations

import math

import numpy as np
from tests.conftest import LONG
from tests.dense import tables_of

from dalenius.measuring.inference.intervals import cut, cut_to_whole
from dalenius.measuring.inference.tidy import tidy
from dalenius.measuring.strategies.factors import Identity
from dalenius.measuring.strategies.product_search import best_product
from dalenius.measuring.strategies.range_factors import Prefix
from dalenius.measuring.strategies.workload import Product, Workload

WORKLOAD = Workload((12, 4), (Product({0: Prefix(12), 1: Identity(4)}), Product({0: Identity(12)}), Product({})))


def test_all_answers_are_whole_not_below_zero_and_add_up():
    strategy = best_product(WORKLOAD, "l2")
    x = np.random.default_rng(15).poisson(0.7, (12, 4))
    exact = strategy.measure(tables_of(strategy, x))
    noisy = exact + np.random.default_rng(16).normal(size=len(exact)) * math.sqrt(strategy.change("l2"))
    found = tidy(strategy.infer(noisy))
    prefixes, groups, total = (found.answers(each) for each in WORKLOAD.products)
    assert groups.min() >= 0
    assert (groups == np.round(groups)).all()
    assert (np.diff(prefixes.reshape(12, 4), axis=0) >= 0).all()
    assert groups.sum() == total[0] == prefixes.reshape(12, 4)[-1].sum()
    assert total[0] == max(0, math.floor(strategy.infer(noisy).cells.sum() + 0.5))


def test_intervals_cover_as_before():
    """Single ones can only cover more: of R runs the share of those that did not is 5%, give or take √(0.05·0.95/R).

    All answers of a run may be outside together; seven deviations have a false-alarm rate below 1e-9.
    """
    runs = 4000 if LONG else 300
    strategy = best_product(WORKLOAD, "l2")
    chance = np.random.default_rng(17)
    x = chance.poisson(2.0, (12, 4))
    exact, scale = strategy.measure(tables_of(strategy, x)), math.sqrt(strategy.change("l2"))
    product = WORKLOAD.products[0]
    truth = strategy.infer(exact).answers(product)
    margins = 1.96 * scale * np.sqrt(strategy.variances(product))
    outside = 0.0
    for _ in range(runs):
        inferred = strategy.infer(exact + chance.normal(size=len(exact)) * scale)
        shown, middle = tidy(inferred).answers(product), inferred.answers(product)
        lower, upper = cut_to_whole(*cut(middle - margins, middle + margins, shown, low=0.0), shown)
        assert (lower <= shown).all()
        assert (shown <= upper).all()
        outside += float(((truth < lower - 1e-6) | (truth > upper + 1e-6)).mean())
    assert outside / runs <= 0.05 + 7 * math.sqrt(0.05 * 0.95 / runs)
    if LONG:
        assert outside / runs <= 0.07
