"""Predicted against measured error, and coverage, for every strategy under Gaussian and Laplace noise.

A run measures a fixed population with fresh noise of variance v, and takes all answers in their predicted deviations.
The mean of their squares is a quadratic form nᵀMn in the noise n, in deviations, whose trace is 1 if predictions are
right. Its variance is at most 2·tr(M²) for normal noise and 5·tr(M²) for Laplace noise (whose fourth moment is 6), so
that R runs are worth R/tr(M²) independent ones. The tolerance is seven deviations: 5% of 98,000 such runs (Laplace,
long form), 35% of 2,000. The skewness of a squared Laplace draw is 6.6; with it (Edgeworth: e^(γz³/6√n)) the rate of
false alarms is below 1e-7 in both forms.

Intervals are ±1.96 predicted deviations. Of one run at most all answers are outside together, so that the share inside
has a deviation of at most √(0.05·0.95/R); seven of them are allowed. A single Laplace draw is inside with chance 93.8%,
a sum of several nearer to 95%.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.conftest import LONG
from tests.dense import tables_of

from dalenius.measuring.strategies.cells import disjoint_cells
from dalenius.measuring.strategies.factors import Identity, Rows
from dalenius.measuring.strategies.hierarchy import hierarchy
from dalenius.measuring.strategies.joint import optimised_cells
from dalenius.measuring.strategies.lines import EachClass
from dalenius.measuring.strategies.marginals import weighted_marginals
from dalenius.measuring.strategies.product_search import best_product
from dalenius.measuring.strategies.products import Products
from dalenius.measuring.strategies.questions import Questions
from dalenius.measuring.strategies.range_factors import AllRange, Prefix
from dalenius.measuring.strategies.residual import residual_parts
from dalenius.measuring.strategies.strategy import sensitivity
from dalenius.measuring.strategies.union import best_union
from dalenius.measuring.strategies.wavelet import wavelet
from dalenius.measuring.strategies.workload import Product, Workload

pytestmark = pytest.mark.statistical

DEVIATIONS = 7
SIZES = (8, 3, 3)
WORKLOAD = Workload(
    SIZES,
    (
        Product({0: Prefix(8), 1: Identity(3)}),
        Product({0: AllRange(8)}),
        Product({1: Identity(3), 2: Identity(3)}, weight=2.0),
        Product({2: Rows.of([[1, 1, 0]])}),
    ),
)
ALONE = Workload((8,), (Product({0: AllRange(8)}),))
STRATEGIES = {
    "questions": lambda norm: Questions.of(WORKLOAD, norm),
    "cells": lambda norm: disjoint_cells(WORKLOAD),
    "hierarchy": lambda norm: Products((8,), {0: hierarchy(8, [(1.0, AllRange(8))], norm)}),
    "wavelet": lambda norm: Products((8,), {0: wavelet(8, [(1.0, AllRange(8))], norm)}),
    "p_identity": lambda norm: best_product(ALONE, norm),
    "products": lambda norm: best_product(WORKLOAD, norm),
    "padded": lambda norm: Products(
        SIZES, {0: hierarchy(8, [(1.0, Prefix(8))], norm), 1: wavelet(3, [(1.0, Prefix(3))], norm), 2: EachClass(3)}
    ),
    "joint": lambda norm: optimised_cells(WORKLOAD, norm),
    "residual": lambda norm: residual_parts(WORKLOAD, norm),
    "marginals": lambda norm: weighted_marginals(WORKLOAD, norm, 10**6),
    "union": lambda norm: best_union(WORKLOAD, norm, 10**6),
}
LAWS = {"l2": ("normal", 2.0), "l1": ("laplace", 5.0)}


class Pooled:
    """All answers of a strategy to its questions, in their predicted deviations."""

    def __init__(self, strategy):
        self.strategy = strategy
        self.products = (ALONE if len(strategy.sizes) == 1 else WORKLOAD).products
        self.deviations = np.sqrt(np.concatenate([strategy.variances(each) for each in self.products]))
        x = np.random.default_rng(21).integers(0, 200, strategy.sizes)
        self.exact = strategy.measure(tables_of(strategy, x)).astype(float)
        self.truth = self.answers(self.exact)

    def answers(self, noisy):
        inferred = self.strategy.infer(noisy)
        return np.concatenate([inferred.answers(each) for each in self.products])

    def errors(self, noise):
        """What this noise does, in predicted deviations of noise of variance 1."""
        return (self.answers(self.exact + noise) - self.truth) / self.deviations

    def concentration(self):
        """The trace of M², from what each measured integer's own noise does."""
        reach = np.stack([self.answers(unit) / self.deviations for unit in np.eye(len(self.exact))])
        form = reach @ reach.T / len(self.deviations)
        assert form.trace() == pytest.approx(1.0, rel=1e-6)
        return float((form * form).sum())


@pytest.mark.parametrize("norm", LAWS)
@pytest.mark.parametrize("name", STRATEGIES)
def test_errors_and_coverage_are_as_predicted(name, norm):
    pooled = Pooled(STRATEGIES[name](norm))
    law, spread = LAWS[norm]
    aim = spread * (DEVIATIONS / 0.05) ** 2 if LONG else 2000
    concentration = pooled.concentration()
    runs = math.ceil(aim * concentration)
    if LONG:
        runs = max(runs, -(-20_000 // len(pooled.deviations)), 6000)
    tolerance = DEVIATIONS * math.sqrt(spread * concentration / runs)
    assert tolerance <= (0.0501 if LONG else 0.36)
    chance = np.random.default_rng([21, len(name), runs])
    size = (runs, len(pooled.exact))
    scale = 3 * math.sqrt(sensitivity(pooled.strategy.change(norm), norm))
    noise = chance.normal(0, scale, size) if law == "normal" else chance.laplace(0, scale / math.sqrt(2), size)
    errors = np.stack([pooled.errors(each) for each in noise]) / scale
    measured = np.square(errors).mean()
    assert measured == pytest.approx(1.0, abs=tolerance)
    assert measured / 0.8**2 > 1 + tolerance  # a noise scale that is 20% off would show
    inside, margin = (np.abs(errors) <= 1.96).mean(), DEVIATIONS * math.sqrt(0.05 * 0.95 / runs)
    assert (0.95 if law == "normal" else 0.938) - margin <= inside <= 0.95 + margin + (0.01 if law == "laplace" else 0)
    if LONG:
        assert 0.93 <= inside <= 0.97
