"""Many questions with small factors, worked on together: the same as one after the other."""

from __future__ import annotations

import numpy as np
import pytest

from dalenius.measuring.strategies.choosing import candidates
from dalenius.measuring.strategies.factors import Identity, Rows, Total
from dalenius.measuring.strategies.hierarchy import hierarchy
from dalenius.measuring.strategies.lines import EachClass
from dalenius.measuring.strategies.p_identity import optimised_line
from dalenius.measuring.strategies.questions import Questions
from dalenius.measuring.strategies.range_factors import Prefix, Ranges
from dalenius.measuring.strategies.strategy import sensitivity
from dalenius.measuring.strategies.workload import Product, Workload


@pytest.fixture(scope="module")
def workload():
    chance, products = np.random.default_rng(18), []
    for number in range(100):
        starts = chance.integers(0, 12, 2)
        factors = (
            Ranges(12, tuple(starts.tolist()), tuple((starts + 1).tolist())),
            Rows.of(chance.integers(0, 2, (1, 12)) | np.eye(1, 12, dtype=int)),
            Identity(12),
            Prefix(12),
            Total(12),
        )
        own = {0: factors[number % 5]}
        if number % 3:
            own[1] = Rows.of(chance.integers(0, 2, (1, 5)))  # some of them count nothing
        products.append(Product(own, weight=1 + number % 2))
    return Workload((12, 5), tuple(products))


def test_sums_are_those_of_each_question(workload):
    asked = workload.asked[0]
    assert len(asked.factors) < len(workload.products)
    lines = (EachClass(12), hierarchy(12, [(1.0, Prefix(12))], "l1"), optimised_line(Prefix(12).gram(), "l2"))
    for line in lines:
        one_by_one = [line.variances(each.factor(0, 12)).sum() for each in workload.products]
        assert line.totals(asked) == pytest.approx(one_by_one)
    squares = [each.factor(0, 12).total_block_squares(4) for each in workload.products]
    assert asked.block_squares(4) == pytest.approx(squares)


def test_what_counts_is_the_weighted_gram(workload):
    counts = np.random.default_rng(19).random(len(workload.products))
    gram = sum(count * factor.gram() for count, factor in workload.asked[0].weighted(counts))
    parts = zip(counts, workload.products, strict=True)
    assert np.allclose(gram, sum(count * each.factor(0, 12).gram() for count, each in parts))


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_expected_errors_are_those_of_all_answers(workload, norm):
    for error, strategy in candidates(workload, norm):
        total = sum(each.weight**2 * strategy.variances(each).sum() for each in workload.products)
        assert error == pytest.approx(sensitivity(strategy.change(norm), norm) * total, rel=1e-6)


def test_where_nothing_is_asked_there_is_a_strategy_all_the_same():
    workload = Workload((3,), (Product({0: Rows.of([[0, 0, 0]])}),))
    for error, strategy in candidates(workload, "l2"):
        assert error == 0
        assert strategy.variances(workload.products[0]) == pytest.approx([0.0])


def test_a_question_that_was_gathered_with_others_is_known_by_its_row():
    """Where cells were many it was measured, and charged, and could not be read."""
    rows = np.random.default_rng(1).integers(0, 2, (12, 2000))
    stacked = Questions.of(Workload((2000,), (Product({0: Rows.of(rows)}),)), "l2")
    assert not stacked.consistent
    inferred = stacked.infer(stacked.measure({(0,): np.arange(2000)}))
    for row in rows:
        alone = Product({0: Rows.of(row)})
        assert stacked.determines(alone) and stacked.variances(alone).tolist() == [1.0]
        assert inferred.answers(alone).tolist() == [float(row @ np.arange(2000))]
    assert not stacked.determines(Product({0: Rows.of(1 - rows[0])}))


def test_matrices_of_many_classes_are_sparse():
    """Of 10⁵ classes a dense one has 80 GB."""
    for factor in (Total(10**5), Identity(10**5), Rows.of(np.ones((1, 10**5), dtype=int))):
        assert factor.matrix().nnz == 10**5
