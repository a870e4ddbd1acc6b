"""Workloads on neighbouring data sets: no more changes than is claimed, and planted bugs are caught.

Those of conditions, such as another filter treated as equal, are in `queries/workloads/test_linear.py`.
"""

from __future__ import annotations

import pytest
from tests.conftest import LONG

from dalenius.accounting.neighbors import Neighbors
from dalenius.audit.fuzz import FuzzReport, fuzz
from dalenius.audit.fuzzing.workloads import WorkloadSides
from dalenius.queries.workloads import blocks

SEED = 3


def fuzzed(cases: int, seed: int = SEED) -> FuzzReport:
    return fuzz(cases=cases, seed=seed, sides=WorkloadSides)


def test_no_unit_changes_what_is_measured_by_more_than_is_claimed():
    report = fuzzed(10_000 if LONG else 12)
    assert report.violations == [] and report.compared > 0.7 * report.cases


def test_a_column_norm_too_small_by_one_row_is_caught(monkeypatch):
    right = blocks.Part.change

    def one_row_less(part, norm, neighbors):
        """What one unit changes, were its limit one row, or one step, lower."""
        found = right(part, norm, neighbors)
        less, limit = part.measure.limit - (part.measure.one_row << part.measure.bits), part.measure.limit
        return max(0, found * less // limit if norm == "l1" else found * less**2 // limit**2)

    monkeypatch.setattr(blocks.Part, "change", one_row_less)
    report = fuzzed(200)
    assert [each.kind for each in report.violations] == ["difference"]


def test_the_exchange_of_units_claimed_as_if_one_were_added_is_caught(monkeypatch):
    right = blocks.Part.change
    monkeypatch.setattr(blocks.Part, "change", lambda part, norm, _: right(part, norm, Neighbors.ADD_REMOVE))
    assert [each.kind for each in fuzzed(300).violations] == ["difference"]


@pytest.mark.skipif(not LONG, reason="takes minutes")
def test_the_same_holds_for_joined_tables():
    report = fuzz(cases=1000, seed=SEED, joins=True, sides=WorkloadSides)
    assert report.violations == []
