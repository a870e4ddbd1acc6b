"""Errors that are carried through an outer part cover as often as they say: shares, differences, quotients, places.

A release is made up again and again: true integers, and noise of the laws that its price buys, drawn from a fixed seed.
What is computed from each is compared with what the true numbers give. The true chance of covering must lie between 93%
and 97%. Of N independent runs the number of covered ones is binomial; it may lie beyond what either end allows by as
much as happens with a chance of 10⁻⁶ at that end (`least`, `most`), so that a right interval fails with a chance of at
most 2·10⁻⁶ for each column, and one that is 20% too short fails in the long form.
"""

from __future__ import annotations

import json
import os

import numpy as np
import pytest
from scipy import stats
from tests.shop import Shop
from tests.unit.queries.outer.conftest import run_inside

from dalenius.queries.answering import Answer, law_to_json
from dalenius.queries.ask import Ask
from dalenius.queries.outer import noise_copies
from dalenius.queries.outer.asking import OuterPlanned, plan_any
from dalenius.queries.outer.showing import show_outer
from dalenius.queries.rules.price import price_plan

LONG = bool(os.environ.get("DALENIUS_LONG"))
RUNS = 2000 if LONG else 15
ALARM = 1e-6
NOISE = noise_copies._noise
WINDOWS = """
SELECT region, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER () AS share, COUNT(*) - LAG(COUNT(*)) OVER (ORDER BY region) AS d,
    SUM(COUNT(*)) OVER (ORDER BY region) AS so_far, AVG(amount) - AVG(AVG(amount)) OVER () AS apart
FROM orders GROUP BY region
"""
OUTER = """
WITH t AS (SELECT region, status, COUNT(*) AS n FROM orders GROUP BY region, status)
SELECT region, SUM(n) FILTER (WHERE status = 'open') * 1.0 / SUM(n) AS share, MAX(n) - MIN(n) AS d
FROM t GROUP BY region
"""
QUOTIENTS = """
WITH t AS (SELECT region, COUNT(*) AS n, SUM(amount) AS s FROM orders GROUP BY region)
SELECT region, s / n AS mean, SUM(s) OVER () / SUM(n) OVER () AS ratio, AVG(n) OVER () AS average,
    100.0 * (n - LAG(n) OVER w) / LAG(n) OVER w AS percent
FROM t WINDOW w AS (ORDER BY region)
"""
OF_ALL = """
SELECT 'all', AVG(n) AS average, SUM(s) / SUM(n) AS ratio, SUM(n) AS n
FROM (SELECT region, COUNT(*) AS n, SUM(amount) AS s FROM orders GROUP BY region)
"""
PLACES = """
SELECT region, RANK() OVER (ORDER BY COUNT(*)) AS a, ROW_NUMBER() OVER (ORDER BY COUNT(*) DESC) AS b,
    DENSE_RANK() OVER (ORDER BY COUNT(*) DESC) AS c FROM orders GROUP BY region
"""
WITHOUT = """
SELECT region, COUNT(*) > AVG(COUNT(*)) OVER () AS above, CASE RANK() OVER (ORDER BY COUNT(*)) WHEN 1 THEN 'last' END
FROM orders GROUP BY region
"""


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    return Shop.protected(tmp_path_factory.mktemp("coverage"), rows=3)


def planned(shop, sql) -> OuterPlanned:
    found = plan_any(shop.ana._asker, Ask(sql, epsilon=1.0))
    assert isinstance(found, OuterPlanned) and len(found.inners) == 1
    return found


def stored(plan, priced, truth, chance) -> bytes:
    """A release of these true integers; without ``chance``, of what would be there without noise."""
    measures = []
    for measure, mechanism, values in zip(plan.measures, priced.mechanisms, truth, strict=True):
        noise = np.zeros(len(values)) if chance is None else NOISE(mechanism.noise, len(values), chance)
        noisy = [(value << measure.bits) + int(each) for value, each in zip(values, noise, strict=True)]
        law = law_to_json(mechanism.noise)
        measures.append({"law": law, "values": [str(each) for each in noisy], "bits": measure.bits})
    body = {"format": 3, "epsilon": priced.epsilon, "delta": 0.0, "rho": priced.rho, "measures": measures}
    return json.dumps(body).encode()


def covered(shop, sql, epsilon, truth, seed):
    """How often each cell of each column was covered, by the row's key and the number of the column."""
    found = planned(shop, sql)
    plan = found.inners[0].plan
    priced, chance = price_plan(plan, epsilon), np.random.default_rng(seed)
    integers = truth(plan)

    def shown(content):
        return show_outer(found, [Answer.read(plan, content, 0.95)], [content], sql, 0.95).table

    right = {row[0]: row for row in shown(stored(plan, priced, integers, None)).rows}
    hits: dict[tuple[str, int], int] = {}
    for _ in range(RUNS):
        table = shown(stored(plan, priced, integers, chance))
        for at, row in enumerate(table.rows):
            for place, key in enumerate(table.keys):
                if not key and row[place] is not None:
                    low, high = table.interval[at][place]
                    hits[row[0], place] = hits.get((row[0], place), 0) + (low <= right[row[0]][place] <= high)
    return hits


def check(hits, *, at_most=True):
    least = stats.binom.ppf(ALARM, RUNS, 0.93)
    most = stats.binom.isf(ALARM, RUNS, 0.97) if at_most else RUNS
    assert hits and all(least <= each <= most for each in hits.values()), {k: v / RUNS for k, v in hits.items()}


def counts(plan):
    """Groups of 300 rows and more; what is added up is of such a size, too."""
    sizes = [300 + 170 * at for at in range(len(plan.cells))]
    return [[size * (1 if each.kind == "rows" else 7) for size in sizes] for each in plan.measures]


@pytest.mark.usefixtures("_inside")
def test_shares_differences_and_running_sums_are_covered(shop):
    check(covered(shop, WINDOWS, 2.0, counts, 1))


@pytest.mark.usefixtures("_inside")
def test_what_an_outer_select_makes_of_groups_is_covered(shop):
    check(covered(shop, OUTER, 2.0, counts, 2))


def large(plan):
    """The same, and sums that are large beside their noise: a quotient then moves as its parts do."""
    sizes = [300 + 170 * at for at in range(len(plan.cells))]
    return [[size * (1 if each.kind == "rows" else 300) for size in sizes] for each in plan.measures]


def close(plan):
    """Groups of nearly the same size, less apart than the noise moves them."""
    return [[300 + 5 * at for at in range(len(plan.cells))] for _ in plan.measures]


@pytest.mark.usefixtures("_inside")
def test_quotients_averages_and_changes_in_percent_are_covered(shop):
    check(covered(shop, QUOTIENTS, 2.0, large, 4))


@pytest.mark.usefixtures("_inside")
def test_what_is_gathered_from_all_groups_is_covered(shop):
    check(covered(shop, OF_ALL, 2.0, large, 5))


@pytest.mark.usefixtures("_inside")
@pytest.mark.parametrize("truth", [counts, close], ids=["apart", "close"])
def test_places_in_an_order_are_covered(shop, truth):
    """A place is one of few, and steps are large: it may be covered more often than it says, but not less."""
    check(covered(shop, PLACES, 2.0, truth, 6), at_most=False)


@pytest.mark.usefixtures("_inside")
def test_what_is_no_number_says_that_it_has_no_margin(shop):
    found = planned(shop, WITHOUT)
    plan = found.inners[0].plan
    content = stored(plan, price_plan(plan, 2.0), close(plan), np.random.default_rng(7))
    shown = show_outer(found, [Answer.read(plan, content, 0.95)], [content], WITHOUT, 0.95)
    assert all(each is None for row in shown.table.interval for each in row)
    assert any("above" in note and "not being numbers, they have no margin" in note for note in shown.notes)


@pytest.mark.usefixtures("_inside")
@pytest.mark.skipif(not LONG, reason="few runs would not show it")
def test_intervals_that_are_a_fifth_too_short_fail(shop, monkeypatch):
    read = noise_copies._read

    def with_less(*arguments):
        with monkeypatch.context() as patch:
            patch.setattr(noise_copies, "_noise", lambda *a: np.rint(0.8 * NOISE(*a)))
            return read(*arguments)

    monkeypatch.setattr(noise_copies, "_read", with_less)
    with pytest.raises(AssertionError):
        check(covered(shop, WINDOWS, 2.0, counts, 3))


@pytest.fixture
def _inside(monkeypatch):
    run_inside(monkeypatch)
    monkeypatch.setattr("dalenius.queries.outer.computing.CARRY_SECONDS", 60.0)
