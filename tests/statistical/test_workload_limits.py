"""Workloads that find their own limits: errors as predicted, and total intervals that cover the raw truth.

4,000 people with Pareto(1.5) rows, at most 400 each, in six wards. Every answer is measured anew, with a limit of its
own. Of 40 that were tried, 2% of the answers lay outside of their total interval on average (13% at worst), and their
law fell faster than an exponential of 4%; the bound is what the mean of so many exceeds with chance 1e-6, the rate of
false alarms. The margin that a preview tells was within 20% of the one that answers had, in the mean of three or more.
"""

from __future__ import annotations

import statistics

import duckdb
import numpy as np
import pytest
from scipy.stats import gamma
from tests.conftest import LONG
from tests.unit.queries.workloads.test_limits import AT_NIGHT, COUNTS, protected

OUTSIDE = 0.04  # of the answers of a workload, on average
ROUNDS = 40 if LONG else 3


@pytest.fixture(scope="module")
def stays(tmp_path_factory):
    """The analyst, and where the rows are."""
    folder = tmp_path_factory.mktemp("stays")
    return protected(folder).analyst("ana"), folder


@pytest.mark.parametrize("asked", [COUNTS, AT_NIGHT])
def test_total_intervals_cover_and_margins_are_those_of_the_preview(stays, asked):
    ana, folder = stays
    database = duckdb.connect()
    database.execute(f"CREATE VIEW stays AS FROM '{folder / 'stays.parquet'}'")  # noqa: S608
    truth = [{tuple(row[:-1]): row[-1] for row in database.execute(each).fetchall()} for each in asked]
    outside, ratios = list[float](), list[float]()
    for number in range(ROUNDS):
        epsilon = 1.0 + number / 1000  # at a little more each time it is measured anew
        expected = ana.preview_many(asked, epsilon=epsilon).expected
        found = ana.ask_many(asked, epsilon=epsilon)
        misses, margins = list[bool](), list[float]()
        for release, own, told in zip(found.releases, truth, expected.questions, strict=True):
            for row, total in zip(release.rows, release.total_interval, strict=True):
                low, high = total[-1]
                misses.append(not low <= own.get(tuple(row[:-1]), 0) <= high)
            errors = [each[-1] for each in release.noise_error]
            margins.append(statistics.median(errors) / told.noise_error[-1])
        outside.append(float(np.mean(misses)))
        ratios.append(statistics.fmean(margins))
    assert np.mean(outside) <= gamma.isf(1e-6, len(outside), scale=OUTSIDE / len(outside))
    assert 0.75 <= statistics.fmean(ratios) <= 1.25, ratios
