"""Total intervals cover the raw truth of a heavy-tailed table, which the noise's own do not.

20,000 people with Pareto(1.3) rows, at most 3,000 each, have a home in one of 24 wards and come on any weekday; the
question finds its own limit. Cells of one answer share its limit and its counts of people, so answers are what is
independent. Of 60 that were tried, 6% of the cells lay outside on average (17% at worst), and their law fell faster
than an exponential of that mean; the bound is what the mean of so many exceeds with chance 1e-5, the rate of false
alarms: 25% of five answers, 9% of a hundred. The noise alone left out 23% of the cells or more in each.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import gamma

from dalenius.curator import Curator

PEOPLE = 20_000
OUTSIDE = 0.06  # of the cells of an answer, on average
POLICY = """
[table]
name = "stays"
source = "stays.parquet"
unit = "person"
[budget]
epsilon = 1000
delta = 1e-6
[analysts.ana]
epsilon = 1000
[columns.ward]
type = "integer"
bounds = [1, 24]
[columns.weekday]
type = "integer"
bounds = [1, 7]
"""


@pytest.fixture(scope="module")
def stays(tmp_path_factory):
    """The analyst, and the true counts."""
    folder = tmp_path_factory.mktemp("stays")
    chance = np.random.default_rng(18)
    rows = np.minimum(np.floor(chance.random(PEOPLE) ** (-1 / 1.3)), 3000).astype(int)
    person = np.repeat(np.arange(PEOPLE), rows)
    ward, weekday = chance.integers(1, 25, PEOPLE)[person], chance.integers(1, 8, len(person))
    pq.write_table(pa.table({"person": person, "ward": ward, "weekday": weekday}), folder / "stays.parquet")
    (folder / "stays.toml").write_text(POLICY)
    curator = Curator(folder / "home")
    curator.protect(folder / "stays.toml")
    return curator.analyst("ana"), np.histogram2d(ward, weekday, (np.arange(1, 26), np.arange(1, 9)))[0]


def test_total_intervals_cover_what_the_noise_alone_does_not(stays, rounds):
    ana, truth = stays
    alone, total = list[float](), list[float]()
    for number in range(rounds(100)):
        # Asked at a little more each time it is measured anew, with a limit of its own.
        epsilon = 0.5 + number / 1000
        release = ana.ask("SELECT ward, weekday, COUNT(*) FROM stays GROUP BY ward, weekday", epsilon=epsilon)
        raw = [truth[int(ward) - 1, int(day) - 1] for ward, day, _ in release.rows]
        for found, intervals in ((alone, release.interval), (total, release.total_interval)):
            found.append(np.mean([low <= each <= high for each, (*_, (low, high)) in zip(raw, intervals, strict=True)]))
    assert 1 - np.mean(total) <= gamma.isf(1e-5, len(total), scale=OUTSIDE / len(total))
    assert max(alone) < 0.9
