"""Which strategy is chosen, and what it gains."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from tests.conftest import LONG

from dalenius.errors import QuestionRefusedError
from dalenius.measuring.strategies.cells import disjoint_cells
from dalenius.measuring.strategies.choosing import candidates, choose
from dalenius.measuring.strategies.factors import Identity, Rows
from dalenius.measuring.strategies.p_identity import optimised_line
from dalenius.measuring.strategies.product_search import best_product
from dalenius.measuring.strategies.questions import Questions, one_by_one
from dalenius.measuring.strategies.range_factors import AllRange, Prefix
from dalenius.measuring.strategies.residual import residual_parts
from dalenius.measuring.strategies.union import best_union
from dalenius.measuring.strategies.workload import Product, Workload

MALE, FEMALE, SLIM = Rows.of([[1, 0]]), Rows.of([[0, 1]]), Rows.of([[1, 0]])
FOUR = Workload((2, 2), tuple(Product({0: sex, **slim}) for sex in (MALE, FEMALE) for slim in ({}, {1: SLIM})))


def pairs(sizes):
    """All 2-way marginals."""
    return Workload(
        tuple(sizes),
        tuple(Product({a: Identity(sizes[a]), b: Identity(sizes[b])}) for a, b in combinations(range(len(sizes)), 2)),
    )


def test_four_counts_cost_128_one_by_one_and_12_through_their_cells():
    """In parts of 1/ε²: Laplace noise at ε has variance 2 at unit sensitivity."""
    assert 2 * one_by_one(FOUR, "l1") == 128
    assert 2 * disjoint_cells(FOUR).expected(FOUR, "l1") == 12
    assert 2 * Questions.of(FOUR, "l1").expected(FOUR, "l1") == pytest.approx(32)  # a row is in two of them
    assert choose(FOUR, "l1").expected(FOUR, "l1") <= 6


def test_the_least_expected_error_is_chosen():
    workload = Workload((16,), (Product({0: AllRange(16)}),))
    for norm in ("l1", "l2"):
        best = choose(workload, norm)
        errors = [error for error, _ in candidates(workload, norm)]
        assert best.expected(workload, norm) == min(errors)


def test_disjoint_cells_win_where_all_others_pay_for_a_units_spread():
    workload = Workload((64,), (Product({0: Prefix(64)}),))
    assert not choose(workload, "l2").disjoint
    assert choose(workload, "l2", spread=10.0).disjoint


def test_entries_below_zero_can_be_made_dearer():
    workload = pairs([3, 3, 3, 3, 3, 3])
    assert choose(workload, "l2").signed
    assert not choose(workload, "l2", signed=2.0).signed


def test_joint_cells_are_not_counted_beyond_the_limit():
    strategy = choose(pairs([10] * 5), "l1", cells_limit=999)
    assert max(math.prod(strategy.sizes[at] for at in own) for own in strategy.tables) <= 999


def test_tables_that_nothing_can_count_are_refused_with_words():
    workload = Workload((100, 100), (Product({0: Identity(100), 1: Identity(100)}),))
    with pytest.raises(QuestionRefusedError, match="too many cells"):
        choose(workload, "l2", cells_limit=9999)


def test_a_weight_makes_its_question_more_exact():
    parts = (Product({0: Identity(8)}), Product({1: Identity(8)}))
    even = residual_parts(Workload((8, 8), parts), "l2")
    assert even is not None
    heavy = residual_parts(Workload((8, 8), (Product(parts[0].factors, 4.0), parts[1])), "l2")
    assert heavy is not None
    ratios = [strategy.total_variance(parts[0]) / strategy.total_variance(parts[1]) for strategy in (even, heavy)]
    assert ratios[0] == pytest.approx(1, rel=1e-3)
    assert ratios[1] < 0.5


def test_residual_parts_have_the_least_error_of_all_for_marginals():
    """Against a descent over all cells, which knows nothing of marginals, and the bound of Li and Miklau 2013."""
    workload = pairs([3, 2, 4, 3])
    gram = np.zeros((72, 72))
    for product in workload.products:
        own = np.ones((1, 1))
        for at, n in enumerate(workload.sizes):
            own = np.kron(own, product.factor(at, n).gram())
        gram += own
    bound = np.sqrt(np.maximum(np.linalg.eigvalsh(gram), 0)).sum() ** 2 / 72
    strategy = residual_parts(workload, "l2")
    assert strategy is not None
    found = strategy.expected(workload, "l2")
    line = optimised_line(gram, "l2")
    descent = line.change("l2") * float(((gram @ line.root) * line.root).sum())
    assert bound * (1 - 1e-9) <= found <= 1.001 * bound
    assert found <= descent * 1.001


def test_eight_attributes_are_within_a_hundredth_of_the_optimum():
    """In closed form: all columns are alike, so that the bound (Σ√eigenvalues)²/cells is reached."""
    sizes = (2, 3, 4, 5, 6, 7, 8, 9)
    workload = pairs(sizes)
    cells = math.prod(sizes)
    # Eigenvalues of WᵀW: of the contrasts in S, each question T ⊇ S adds Π n over all attributes outside T.
    total = math.sqrt(sum(cells / (sizes[a] * sizes[b]) for a, b in combinations(range(8), 2)))
    total += sum(
        (sizes[a] - 1) * math.sqrt(sum(cells / (sizes[a] * sizes[b]) for b in range(8) if b != a)) for a in range(8)
    )
    total += sum(
        (sizes[a] - 1) * (sizes[b] - 1) * math.sqrt(cells / (sizes[a] * sizes[b])) for a, b in combinations(range(8), 2)
    )
    strategy = choose(workload, "l2")
    assert strategy.kind == "residual"
    assert strategy.expected(workload, "l2") == pytest.approx(total**2 / cells, rel=0.01)


def test_many_attributes_need_no_joint_cells():
    attributes = 100 if LONG else 24
    workload = pairs([10] * attributes)
    strategy = choose(workload, "l2")
    assert strategy.kind == "residual"
    table = np.random.default_rng(5).integers(0, 1000, (10, 10))
    table = table + table.T  # the same whichever attribute comes first
    tables = {own: table if len(own) == 2 else table.sum(axis=1) if own else table.sum() for own in strategy.tables}
    inferred = strategy.infer(strategy.measure(tables))
    for product in workload.products:
        assert np.allclose(inferred.answers(product), table.ravel())
        assert strategy.variances(product).shape == (100,)


def test_questions_about_different_attributes_are_not_multiplied():
    workload = Workload((32, 32), (Product({0: Prefix(32)}), Product({1: AllRange(32)})))
    union = best_union(workload, "l2", 10**6)
    assert union is not None
    assert union.tables == ((0,), (1,))
    assert union.expected(workload, "l2") < best_product(workload, "l2").expected(workload, "l2")
    assert (0, 1) not in choose(workload, "l2").tables


@pytest.mark.parametrize("wrong", [(), (Product({0: Identity(3)}),), (Product({}, 0.0),), (Product({}, math.inf),)])
def test_a_workload_is_checked(wrong):
    with pytest.raises(ValueError, match=r"question|classes|weight"):
        Workload((2,), wrong)


def test_answers_that_do_not_follow_are_refused():
    workload = Workload((3, 3), (Product({0: Identity(3)}),))
    for _, strategy in candidates(workload, "l2"):
        other = Product({1: Identity(3)})
        assert not strategy.determines(other)
        with pytest.raises(ValueError, match="determine"):
            strategy.variances(other)


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_weights_that_are_far_apart_do_not_upset_the_choice(norm):
    """Numbers that differ by twelve digits would make least squares, and errors, anything: even less than nothing."""
    products = (Product({0: Prefix(8)}, 1e6), Product({1: Identity(2)}, 1e-6), Product({0: Rows.of([[0] * 8])}))
    workload = Workload((8, 2), products)
    for error, strategy in candidates(workload, norm):
        assert 0 < error < math.inf
        for product in products:
            assert (strategy.variances(product) >= 0).all()
            assert strategy.determines(product)
    alone = Workload((8,), products[:1])
    assert choose(workload, norm).expected(workload, norm) <= choose(alone, norm).expected(alone, norm) * 1.1
