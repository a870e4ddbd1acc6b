"""Each generator's rows are right on columns that it never measured together.

A root decides about four other columns, which have nothing else in common: brothers. A generator measures each with the
root, and need not measure brothers with one another. If rows of one value of the root get their brothers' values in the
same order, each is right with the root, and brothers agree with one another row by row.
"""

from __future__ import annotations

from fractions import Fraction
from functools import reduce
from itertools import combinations

import numpy as np
import pytest
from bench.synthetic.counts import InMemory
from tests.seeded_noise import seeded_noise

from dalenius.synthesis import GENERATORS, sampling
from dalenius.synthesis.domain import sized
from dalenius.synthesis.models.pool import Pool

ROWS, VALUES, BROTHERS = 12_000, 4, 4
SIZES = (2,) + (VALUES,) * BROTHERS
LAW = np.array([[0.55, 0.25, 0.15, 0.05], [0.05, 0.15, 0.25, 0.55]])  # of a brother, by the root's value
RHO = Fraction(1, 50)  # with less noise `adaptive` measures nearly all pairs
# By how many columns. A plain draw is about 0.8·√(cells/n) off on average: 0.03, and 0.06; and 0.05 more with a chance
# below 1e-6 (McDiarmid: exp(−n·0.05²/2)). Noise in the pairs with the root is less than that.
MOST = {2: 0.1, 3: 0.13}


class Noting(InMemory):
    """Notes which columns are measured together."""

    together: frozenset[tuple[int, ...]] = frozenset()

    def measure(self, asked):
        self.together |= {view.columns for view, _ in asked}
        return super().measure(asked)


def people(name):
    """The root and its brothers. Where each column is drawn by itself, the root decides about nothing."""
    chance, law = np.random.default_rng(24), np.full_like(LAW, 1 / VALUES) if name == "histogram" else LAW
    brothers = [np.concatenate([chance.choice(VALUES, ROWS // 2, p=each) for each in law]) for _ in range(BROTHERS)]
    return np.column_stack([np.repeat([0, 1], ROWS // 2), *brothers]).astype(np.int32), law


def off(name, seed=5):
    """How far the rows are off, at most, on so many brothers that were not measured together."""
    table, law = people(name)
    measurer, rng = Noting(sized(SIZES), table, RHO), np.random.default_rng(seed)
    star = {"tables": [("c0", f"c{at}") for at in range(1, len(SIZES))]} if name == "marginals" else {}
    with seeded_noise(seed):
        found = GENERATORS[name](measurer, rng, **star).sample(ROWS, rng)
    most = dict[int, float]()
    for ways in MOST:
        expected = sum(0.5 * reduce(np.multiply.outer, [each] * ways) for each in law)
        for columns in combinations(range(1, len(SIZES)), ways):
            if columns not in measurer.together:
                cells = np.ravel_multi_index(tuple(found[:, columns].T), (VALUES,) * ways)
                counts = np.bincount(cells, minlength=VALUES**ways).reshape(expected.shape)
                most[ways] = max(most.get(ways, 0.0), float(np.abs(counts / ROWS - expected).sum()))
    return most


@pytest.mark.parametrize("name", GENERATORS)
def test_rows_are_right_on_columns_that_were_not_measured_together(name):
    found = off(name)
    assert set(found) == set(MOST)  # there are such pairs, and such triples
    assert all(found[ways] < MOST[ways] for ways in MOST), found


@pytest.mark.parametrize("name", GENERATORS)
def test_brothers_that_stand_in_the_same_order_are_caught(name, monkeypatch):
    """The planted bug: rows of one parent get their values in order. `adaptive` sees that its pairs are wrong, and
    measures them: its triples show it, since no weights help where rows are missing."""
    monkeypatch.setattr(sampling, "_shuffled", lambda parent, *_: np.argsort(parent, kind="stable"))
    found = off(name)
    assert 3 in found and all(each > 0.5 for each in found.values()), found


def a_pool_whose_columns_are_drawn_by_themselves(monkeypatch):
    """What any sampler does that forgets which row a value belongs to, in order."""
    sample = Pool.sample
    monkeypatch.setattr(Pool, "sample", lambda pool, rows, rng: np.sort(sample(pool, rows, rng), axis=0))


@pytest.mark.parametrize("name", ["marginals", "adaptive"])
def test_rows_of_a_pool_that_fall_apart_are_caught(name, monkeypatch):
    a_pool_whose_columns_are_drawn_by_themselves(monkeypatch)
    assert min(off(name).values()) > 0.5
