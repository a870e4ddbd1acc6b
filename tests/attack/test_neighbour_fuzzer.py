"""The strongest test we know (last paragraph of ATTACKS): no neighbours differ by more than their plan claims."""

from __future__ import annotations

from tests.attack.test_planted_bugs import FAR, SEED

from dalenius.audit.fuzz import QUESTIONS, fuzz

PAIRS = 4  # of tables, from the far one on: the last of them are CSV files


def test_no_neighbours_differ_by_more_than_the_plan_claims(cases):
    far = fuzz(cases=PAIRS * QUESTIONS, seed=SEED, start=FAR)
    assert not far.violations, far.violations[0]
    report = fuzz(cases=cases, seed=SEED)
    assert not report.violations, report.violations[0]
    assert report.cases == cases
    assert report.compared >= 0.75 * report.cases, report.refused
    assert report.drawn["sets"] > 0.05 * report.cases  # and several groupings at once
    # both neighbour relations, both accountings, memory and both kinds of file
    assert report.drawn["found"] > 0.1 * report.cases  # and keys that are not public
    for drawn in ("add-remove", "substitute", "l1", "l2", "memory", "parquet", "csv"):
        assert report.drawn[drawn] + far.drawn[drawn] > 0, drawn
