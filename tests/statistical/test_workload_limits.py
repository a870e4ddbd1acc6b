"""Workloads that find their own limits: errors as predicted, and total intervals that cover the raw truth.

4,000 people with Pareto(1.5) rows, at most 400 each, in six wards. Every answer is measured anew, with a limit of its
own. Of 40 that were tried, 2% of the answers lay outside of their total interval on average (13% at worst), and their
law fell faster than an exponential of 4%; the bound is what the mean of so many exceeds with chance 1e-6, the rate of
false alarms. The margin that a preview tells was within 20% of the one that answers had, in the mean of three or more.
"""

from __future__ import annotations

import statistics
from pathlib import Path

import duckdb
import numpy as np
from scipy.stats import gamma
from tests.conftest import LONG
from tests.unit.queries.workloads.test_limits import AT_NIGHT, protected

OUTSIDE = 0.04  # of the answers of a workload, on average
ROUNDS = 40 if LONG else 3


def measured(tmp_path: Path, tail: float) -> tuple[list[float], list[float]]:
    """Of each answer to a workload: the share of its numbers outside, and its margin over that of the preview."""
    ana, database = protected(tmp_path, tail=tail).analyst("ana"), duckdb.connect()
    database.execute(f"CREATE VIEW stays AS FROM '{tmp_path / 'stays.parquet'}'")
    truth = [{tuple(row[:-1]): row[-1] for row in database.execute(each).fetchall()} for each in AT_NIGHT]
    outside, ratios = list[float](), list[float]()
    for number in range(ROUNDS):
        epsilon = 1.0 + number / 1000  # at a little more each time it is measured anew
        expected = ana.preview_many(AT_NIGHT, epsilon=epsilon).expected
        assert expected.parts  # and no question beside
        found = ana.ask_many(AT_NIGHT, epsilon=epsilon)
        misses, margins = list[bool](), list[float]()
        for release, own, told in zip(found.releases, truth, expected.questions, strict=True):
            assert release.limits
            for row, (*_, (low, high)) in zip(release.rows, release.total_interval, strict=True):
                misses.append(not low <= own.get(tuple(row[:-1]), 0) <= high)
            margins.append(statistics.median(each[-1] for each in release.noise_error) / told.noise_error[-1])
        outside.append(float(np.mean(misses)))
        ratios.append(statistics.fmean(margins))
    return outside, ratios


def test_total_intervals_of_a_heavy_tail_cover_the_raw_truth(tmp_path):
    outside, _ = measured(tmp_path, 1.5)
    assert np.mean(outside) <= gamma.isf(1e-6, len(outside), scale=OUTSIDE / len(outside)), outside


def test_margins_are_those_of_the_preview(tmp_path):
    _, ratios = measured(tmp_path, 4.0)
    assert 0.75 <= statistics.fmean(ratios) <= 1.25, ratios
