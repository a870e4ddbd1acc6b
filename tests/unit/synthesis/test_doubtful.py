"""Absent values, and the rest of the keys, are drawn only where their noisy count is above its margin."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np
import pytest
from bench.synthetic.counts import InMemory
from tests.seeded_noise import seeded_noise

from dalenius.accounting.conversions import zcdp_rho
from dalenius.synthesis import GENERATORS
from dalenius.synthesis.domain import Codes, Column, Domain
from dalenius.synthesis.measurer import Measured
from dalenius.synthesis.start import MARGIN
from dalenius.synthesis.views import View

DOMAIN = Domain(
    (
        Column("none", keys=("a", "b", "c"), absent=True),
        Column("few", classes=8, absent=True, ordered=True),
        Column("many", keys=(1, 2), absent=True),
        Column("declared", keys=("x", "y")),
        Column("others", keys=("p", "q"), rest=True, absent=True),
    )
)
DOUBTFUL = [(at, code) for at, column in enumerate(DOMAIN) for code in column.doubtful]


@pytest.fixture(autouse=True)
def same_noise() -> Iterator[None]:
    with seeded_noise(6):
        yield


def people(rows: int = 1500) -> Codes:
    rng = np.random.default_rng(5)
    first = rng.integers(0, 3, rows)
    few = np.where(rng.random(rows) < 0.003, 8, (2 * first + rng.integers(0, 3, rows)) % 8)
    many = np.where(rng.random(rows) < 0.4, 2, first % 2)
    others = rng.choice(4, rows, p=[0.5, 0.4, 0.1, 0.0])
    return np.column_stack([first, few, many, first > 1, others]).astype(np.int32)


class Kept(InMemory):
    """Remembers the one-way tables that were measured, in order."""

    def measure(self, asked: Sequence[tuple[View, Fraction]]) -> list[Measured]:
        found = super().measure(asked)
        self.one_ways = [*getattr(self, "one_ways", []), *(each for each in found if len(each.view.columns) == 1)]
        return found

    def stands_out(self, at: int, code: int) -> bool:
        """Whether the noisy count of a code was above its margin, in the first table or in all of them together."""
        tables = [each for each in self.one_ways if each.view.columns == (at,)]
        for told in (tables[:1], tables):
            weights = np.array([1 / each.variance for each in told])
            mean = float(np.average([each.values[code] for each in told], weights=weights))
            if mean > MARGIN / weights.sum() ** 0.5:
                return True
        return False


@pytest.mark.parametrize("name", GENERATORS)
def test_a_value_that_nobody_declared_is_there_only_where_its_count_is_above_its_margin(name: str):
    rng, hidden = np.random.default_rng(1), 0
    for table in (people(), people()[:60], people()[:0]):
        for epsilon in (0.05, 1.0, 30.0):
            asked = Kept(DOMAIN, table, Fraction(zcdp_rho(epsilon, 1e-9)))
            drawn = GENERATORS[name](asked, rng).sample(3000, rng)
            for at, code in DOUBTFUL:
                out = asked.stands_out(at, code)
                hidden += not out
                assert out or not np.any(drawn[:, at] == code), (epsilon, DOMAIN.names[at], code)
    assert hidden > 20  # so that there was something to be wrong about


@pytest.mark.parametrize("name", GENERATORS)
def test_where_it_is_clearly_there_it_is_drawn(name: str):
    """0.4 and 0.1 of 1,500 rows, against a noise of less than ten."""
    rng = np.random.default_rng(1)
    model = GENERATORS[name](InMemory.at(DOMAIN, people(), 30.0, 1e-9), rng)
    drawn = model.sample(3000, rng)
    assert np.mean(drawn[:, 2] == 2) == pytest.approx(0.4, abs=0.05)
    assert np.mean(drawn[:, 4] == 2) == pytest.approx(0.1, abs=0.04)
    assert not np.any(drawn[:, [0, 4]] == 3)
