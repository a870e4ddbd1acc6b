"""Synthetic tables: whatever two neighbours hold, what is measured moves by no more than the limit (`replayed`).

2,000 cases in the long form. Each planted bug is found in the first cases of the same run.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from tests.attack.replayed import run

from dalenius.accounting.neighbors import Neighbors
from dalenius.measuring.measures import change_within
from dalenius.mechanisms.discrete_gaussian import widened
from dalenius.synthesis.fitting import Remembering
from dalenius.synthesis.measurer import Measured
from dalenius.synthesis.rows import Limit, UnitMeasurer
from dalenius.synthesis.scores import Distance
from dalenius.synthesis.unit_counts import count_units

CASES, NEAR = 2_000, 30


def test_one_unit_moves_what_synthesis_measures_by_no_more_than_the_limit(rounds, tmp_path):
    report = run(rounds(CASES), tmp_path)
    assert not report.broken, report.broken[0]
    assert report.cases == rounds(CASES) and report.refused.total() < 0.3 * report.cases
    drawn = report.drawn
    assert drawn["heavy"] > 0.15 * report.cases  # a thousand rows that are all the same
    features = ("nobody", "keys are found", "classes are found", "absent", "add-remove", "substitute")
    for each in (*features, "integer", "number", "category", "date", "boolean", "datetime", "tree", "adaptive"):
        assert drawn[each] > 0.02 * report.cases, (each, drawn)


def no_clipping(patch):
    patch.setattr(Limit, "weigh", lambda limit, held: np.full(len(held), limit.whole, np.int64))


def clipping_by_half(patch):
    """As if each unit had half of its rows."""
    weigh = Limit.weigh
    patch.setattr(Limit, "weigh", lambda limit, held: weigh(limit, (held + 1) // 2))


def noise_of_half_the_variance(patch):
    patch.setattr("dalenius.synthesis.rows.widened", lambda variance: widened(variance / 2))


def noise_of_one_row_where_units_have_many(patch):
    patch.setattr(Limit, "of_table", property(lambda limit: limit.whole**2))


def a_substitution_that_counts_as_one(patch):
    def change(length, norm, _, **more):
        return change_within(length, norm, Neighbors.ADD_REMOVE, **more)

    patch.setattr("dalenius.synthesis.rows.change_within", change)


def scores_of_twice_their_sensitivity(patch):
    of = Distance.of
    patch.setattr(Distance, "of", lambda score, counts: 2 * of(score, counts))


def a_price_that_is_spent_twice(patch):
    patch.setattr(UnitMeasurer, "_spend", lambda *_: None)
    patch.setattr(UnitMeasurer, "left", property(lambda measurer: measurer.rho * 2))


def counts_that_are_never_above_the_number_of_rows(patch):
    """Something exact that passes no mechanism."""
    measure = UnitMeasurer.measure

    def capped(measurer, asked):
        most = int(measurer._weights.sum()) / measurer.limit.whole
        return [Measured(each.view, np.minimum(each.values, most), each.variance) for each in measure(measurer, asked)]

    patch.setattr(Remembering, "measure", capped)


def units_that_are_counted_by_their_rows(patch):
    """A unit of n rows stands n times in the table of units."""

    def counted(held, habits, neighbors, rho):
        return count_units(np.repeat(held, held), np.repeat(habits, held, axis=1), neighbors, Fraction(rho))

    patch.setattr("dalenius.synthesis.kind.count_units", counted)


PLANTED = {
    no_clipping: {"rows"},
    clipping_by_half: {"rows"},
    noise_of_half_the_variance: {"price"},
    noise_of_one_row_where_units_have_many: {"calls"},
    a_substitution_that_counts_as_one: {"calls"},
    scores_of_twice_their_sensitivity: {"calls"},
    a_price_that_is_spent_twice: {"price"},
    counts_that_are_never_above_the_number_of_rows: {"calls", "model"},
    units_that_are_counted_by_their_rows: {"calls"},
}


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_a_planted_bug_is_seen(plant, monkeypatch, tmp_path):
    plant(monkeypatch)
    report = run(NEAR, tmp_path)
    assert report.broken, f"not seen in {report.cases} cases"
    assert report.broken[0].kind in PLANTED[plant]
