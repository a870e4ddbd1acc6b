"""Every strategy against its matrix: what is measured, what a row changes, least squares, variances, stored bytes."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import LONG
from tests.dense import matrix_of, padded, question_matrix, some_workload, tables_of

from dalenius.measuring.strategies import written
from dalenius.measuring.strategies.choosing import candidates
from dalenius.measuring.strategies.factors import Identity
from dalenius.measuring.strategies.questions import Questions
from dalenius.measuring.strategies.range_factors import AllRange, Prefix
from dalenius.measuring.strategies.stored import STRATEGIES, strategy_of_json
from dalenius.measuring.strategies.strategy import sensitivity
from dalenius.measuring.strategies.union import best_union
from dalenius.measuring.strategies.workload import Product, Workload

BOUNDED = {"residual", "union"}  # a row changes at most, not exactly, so much


@settings(max_examples=120 if LONG else 8)
@given(st.integers(0, 2**32), st.sampled_from(["l1", "l2"]))
def test_closed_forms_are_those_of_the_matrix(seed, norm):
    workload = some_workload(seed)
    for error, found in candidates(workload, norm):
        strategy = strategy_of_json(json.loads(json.dumps(found.to_json())))
        exact = matrix_of(strategy)
        matrix = exact.astype(float)
        assert len(exact) == strategy.rows == found.rows
        lengths = (exact**2 if norm == "l2" else abs(exact)).sum(axis=0)
        assert max(lengths) <= strategy.change(norm)
        assert max(lengths) == strategy.change(norm) or strategy.kind in BOUNDED
        assert strategy.signed or (exact >= 0).all()
        if strategy.disjoint:
            assert set(exact.ravel()) <= {0, 1}
            assert max(exact.sum(axis=0)) <= 1
        chance = np.random.default_rng(seed)
        x = chance.integers(-50, 50, workload.sizes)
        measured = strategy.measure(tables_of(strategy, x))
        assert (measured.astype(object) == exact @ x.ravel().astype(object)).all()
        noisy = measured + chance.normal(size=strategy.rows) * np.abs(matrix).max()
        exactly, inferred, inverse = strategy.infer(measured), strategy.infer(noisy), np.linalg.pinv(matrix)
        total = 0.0
        for product in workload.products:
            rows = question_matrix(product, workload.sizes)
            assert strategy.determines(product)
            assert np.allclose(exactly.answers(product), rows @ x.ravel(), atol=1e-6)
            variances = strategy.variances(product)
            assert strategy.total_variance(product) == pytest.approx(variances.sum(), rel=1e-7)
            if not padded(strategy):
                assert np.allclose(inferred.answers(product), rows @ inverse @ noisy, atol=1e-5)
                assert np.allclose(variances, np.square(rows @ inverse).sum(axis=1), rtol=1e-5)
            total += product.weight**2 * variances.sum()
        assert error == pytest.approx(total * sensitivity(strategy.change(norm), norm))


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_where_cells_are_many_unions_and_questions_answer_from_what_was_measured(norm, monkeypatch):
    monkeypatch.setattr(written, "FEW", 0)
    questions = (
        Product({0: Prefix(4), 1: Identity(3)}),
        Product({1: AllRange(3), 2: Identity(2)}),
        Product({1: Prefix(3)}),
    )
    workload = Workload((4, 3, 2), questions)
    union = best_union(workload, norm, 10**6)
    assert union is not None
    x = np.random.default_rng(3).integers(0, 50, workload.sizes)
    for strategy in (union, Questions.of(workload, norm)):
        assert not strategy.consistent
        measured = strategy.measure(tables_of(strategy, x))
        units = [strategy.infer(unit) for unit in np.eye(strategy.rows)]
        for product in workload.products:
            assert strategy.determines(product)
            exact = question_matrix(product, workload.sizes) @ x.ravel()
            assert np.allclose(strategy.infer(measured).answers(product), exact)
            reach = np.stack([unit.answers(product) for unit in units])
            assert np.allclose(strategy.variances(product), np.square(reach).sum(axis=0))
            assert strategy.total_variance(product) == pytest.approx(strategy.variances(product).sum())


def test_every_kind_comes_up():
    seen = {strategy.kind for seed in range(5) for _, strategy in candidates(some_workload(seed), "l2")}
    assert seen == {each.kind for each in STRATEGIES}
