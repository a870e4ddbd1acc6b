"""Every generator spends just what was typed, keeps to its domain, and finds what columns have in common."""

from fractions import Fraction
from inspect import signature

import numpy as np
import pytest
from bench.synthetic.counts import InMemory

from dalenius.errors import BudgetError, InputError
from dalenius.synthesis import GENERATORS, errors
from dalenius.synthesis.domain import sized
from dalenius.synthesis.generators.marginals import marginals
from dalenius.synthesis.generators.privbayes import privbayes
from dalenius.synthesis.measurer import shares
from dalenius.synthesis.scores import Distance
from dalenius.synthesis.views import whole

SIZES = (6, 40, 3, 2, 5)
NAMES = tuple(GENERATORS)


def people(rows=4000):
    """Columns in a chain, with one that has nothing to do with the others."""
    rng = np.random.default_rng(11)
    first = rng.choice(6, rows, p=[0.4, 0.2, 0.2, 0.1, 0.05, 0.05])
    second = np.clip(6 * first + rng.poisson(3, rows), 0, 39)
    third = np.where(rng.random(rows) < 0.9, second % 3, rng.integers(0, 3, rows))
    fourth = (rng.random(rows) < 0.1 + 0.16 * first).astype(int)
    return np.column_stack([first, second, third, fourth, rng.integers(0, 5, rows)]).astype(np.int32)


def measurer(table, epsilon, sizes=SIZES):
    return InMemory.at(sized(sizes, [at == 1 for at in range(len(sizes))]), table, epsilon, 1e-9)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 50.0])
def test_the_price_is_what_was_typed_and_values_are_in_the_domain(name, epsilon):
    asked = measurer(people(300), epsilon)
    rng = np.random.default_rng(1)
    model = GENERATORS[name](asked, rng)
    assert asked.spent == asked.rho
    found = model.sample(500, rng)
    assert found.shape == (500, len(SIZES))
    assert found.min() >= 0 and np.all(found.max(axis=0) < SIZES)
    assert model.sample(None, rng).shape[0] == round(model.rows)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("sizes", [(1,), (4,), (1, 1), (3, 1, 2)])
def test_narrow_and_empty_tables_give_sensible_rows(name, sizes):
    asked = measurer(np.zeros((0, len(sizes)), np.int32), 1.0, sizes)
    rng = np.random.default_rng(1)
    found = GENERATORS[name](asked, rng).sample(20, rng)
    assert found.shape == (20, len(sizes)) and asked.spent == asked.rho


@pytest.mark.parametrize("name", [name for name in NAMES if name != "histogram"])
def test_with_little_noise_pairs_are_far_better_than_independent(name):
    table, rng = people(), np.random.default_rng(2)
    found = GENERATORS[name](measurer(table, 20.0), rng).sample(4000, rng)
    alone = GENERATORS["histogram"](measurer(table, 20.0), rng).sample(4000, rng)
    pairs, without = (errors(table, each, SIZES, [2]).ways[2] for each in (found, alone))
    assert without > 0.3
    assert pairs < 0.5 * without


def test_only_generators_that_can_use_a_target_take_one():
    assert [name for name in NAMES if "target" in signature(GENERATORS[name]).parameters] == ["adaptive"]


def test_a_target_is_a_column():
    with pytest.raises(InputError, match="income"):
        GENERATORS["adaptive"](measurer(people(300), 1.0), np.random.default_rng(1), target="income")


def test_named_tables_are_those_that_are_measured():
    table, rng = people(), np.random.default_rng(3)
    found = marginals(measurer(table, 20.0), rng, [("c0", "c3")]).sample(4000, rng)
    each = errors(table, found, SIZES, [2]).each
    assert each[0, 3] < 0.05
    assert each[0, 1] > 0.2


def test_refusals_come_before_anything_is_spent():
    asked = measurer(people(300), 1.0)
    with pytest.raises(InputError):
        privbayes(asked, np.random.default_rng(1), parents=0)
    big = measurer(np.zeros((10, 6), np.int32), 1.0, (20,) * 6)
    with pytest.raises(InputError, match="cells"):
        marginals(big, np.random.default_rng(1), [tuple(f"c{at}" for at in range(6))])
    assert asked.spent == 0 and big.spent == 0


def test_shares_add_up_to_all_of_it():
    total = Fraction(0.0123)
    assert sum(shares(total, [0.1, 3.7, 1e-3])) == total
    with pytest.raises(InputError):
        shares(total, [1.0, 0.0])


def test_no_more_is_answered_than_was_paid():
    asked = measurer(people(300), 1.0)
    view = whole([0], SIZES)
    asked.measure([(view, asked.rho)])
    for call in (
        lambda: asked.measure([(view, Fraction(1, 10**9))]),
        lambda: asked.scores([Distance(view, np.zeros(6, np.int64))], Fraction(1, 10**9)),
        lambda: asked.choose([Distance(view, np.zeros(6, np.int64))], Fraction(1, 10**9)),
    ):
        with pytest.raises(BudgetError):
            call()
